import * as assert from 'uvu/assert';
import { RateLimiter, type SharedCounter } from '../../../src/auth/limits/rate-limiter.ts';
import type { Scope } from '../../../src/domain/accounts/account.ts';
import type { Principal } from '../../../src/domain/accounts/principal.ts';
import { mayUse } from '../../../src/domain/accounts/rights.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { authorize, localAccounts } from '../../../src/http/middleware/authorize.ts';
import { json } from '../../../src/http/replies/reply.ts';
import { respond } from '../../../src/http/replies/respond.ts';
import { ROUTES } from '../../../src/http/routes/index.ts';
import { headersOf } from '../../helpers/http/app.ts';
import { startRoute } from '../../helpers/http/middlewares.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('authorization of a route');

const ADA: Principal = {
  ...{ id: 'user:1', kind: 'user', name: 'ada', userId: '1' },
  ...{ scopes: new Set<Scope>(['tools:call']), templates: new Set(['demo']), hourlyLimit: 2 },
};

type KnownCaller = Parameters<typeof authorize>[1]['auth'];
const PROXIES = { address: () => undefined, host: () => undefined };

// Callers that are known at once: scopes.spec.ts. A gateway during its start: routes/gateway/health.spec.ts.
test('waits for credentials and a shared rate limit, and consumes the limit before it refuses', async () => {
  let taken = 0;
  const shared: SharedCounter = {
    add: async (_, count) => {
      taken += count;
      return { count: taken, endsInMs: 99_000 };
    },
    close: () => {},
  };
  const limiter = new RateLimiter({ ...systemClock, wall: () => 1_800_000_000_000, now: () => 0 }, shared);
  const known: KnownCaller = { limiter, authenticate: async () => ADA };
  const app = await startRoute(
    '/:template',
    authorize(
      { path: '/:template', scope: 'tools:call' },
      { auth: known, proxies: PROXIES, mayUsePath: mayUse },
    ),
    (context) => respond(context, json(200, {})),
  );
  for (const [path, status, remaining] of [
    ['/demo', 200, '1'],
    ['/other', 404, '0'],
    ['/demo', 429, '0'],
  ] as const) {
    const answer = await app.ask('GET', path);
    assert.is(answer.status, status);
    const window = headersOf(answer, 'x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset');
    assert.equal(window, ['2', remaining, '1800000099']);
    assert.is(answer.headers.get('retry-after'), status === 429 ? '99' : null);
  }
  app.close();
});

test('calls the next step synchronously when the credentials are cached and the rate limit is local', async () => {
  const known: KnownCaller = {
    limiter: new RateLimiter(systemClock),
    authenticate: () => ADA,
  };
  let isInside = false;
  const app = await startRoute(
    '/:template',
    (context, next) => {
      const entered = authorize(
        { path: '/:template', scope: 'tools:call' },
        { auth: known, proxies: PROXIES, mayUsePath: mayUse },
      )(context, next);
      assert.ok(isInside, 'nothing was waited for');
      return entered;
    },
    (context) => {
      isInside = true;
      respond(context, json(200, {}));
    },
  );
  const answer = await app.ask('GET', '/demo');
  assert.equal([answer.status, answer.headers.get('x-ratelimit-remaining')], [200, '1']);
  app.close();
});

// What it refuses: routes/accounts/accounts.spec.ts.
test('without accounts requires a local caller for every route that changes an account, an API key or a client', () => {
  const guarded = (isEnabled: boolean) =>
    ROUTES.filter((route) => localAccounts(route, isEnabled, { isLocal: () => false }).length > 0).map(
      ({ method, path }) => `${method} ${path}`,
    );
  assert.equal(guarded(false).sort(), [
    'DELETE /auth/api-keys/:key_id',
    'DELETE /auth/clients/:client_id',
    'DELETE /auth/users/:user_id',
    'DELETE /auth/users/:user_id/link',
    'PATCH /auth/api-keys/:key_id',
    'PATCH /auth/users/:user_id',
    'POST /auth/api-keys',
    'POST /auth/clients',
    'POST /auth/users',
    'POST /auth/users/:user_id/link',
  ]);
  assert.equal(guarded(true), []);
});

test.run();
