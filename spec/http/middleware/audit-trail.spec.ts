import * as assert from 'uvu/assert';
import type { Auth } from '../../../src/auth/auth.ts';
import type { Principal } from '../../../src/domain/account.ts';
import { ANONYMOUS } from '../../../src/domain/account.ts';
import { insufficientPermissions, rateLimitExceeded } from '../../../src/domain/error-catalogue.ts';
import type { GatewayError } from '../../../src/domain/errors.ts';
import { HTTP_LIMITS } from '../../../src/http/limits.ts';
import { auditTrail } from '../../../src/http/middleware/audit-trail.ts';
import { json } from '../../../src/http/reply.ts';
import type { Trail } from '../../../src/http/request.ts';
import { ClientGone } from '../../../src/http/request.ts';
import { respond } from '../../../src/http/respond.ts';
import type { Method } from '../../../src/http/route.ts';
import { ROUTES } from '../../../src/http/routes/index.ts';
import { startRoute } from '../../helpers/http-middlewares.ts';
import { head, openRaw } from '../../helpers/http-raw.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the audit trail');

type Entry = Parameters<Auth['audit']['record']>[0];
const ADA: Principal = { ...ANONYMOUS, id: 'user:1', kind: 'user', name: 'ada' };

/** An app with one recorded route; `work` is what comes after the recording. */
const NO_CALLS = { recordsCalls: false, recordCall: () => {}, list: () => Promise.resolve([]) };

async function serve(
  work: (state: { principal?: Principal; trail?: Trail }) => void,
  { method = 'POST', now = () => 0 }: { method?: Method; now?: () => number } = {},
) {
  const entries: Entry[] = [];
  const audit = { ...NO_CALLS, record: (entry: Entry) => entries.push(entry) };
  const trail = auditTrail(audit, { address: () => '192.0.2.7' }, now);
  const route = { method, path: '/servers/:server_id', scope: 'gateway:write' } as const;
  const app = await startRoute('/servers/:server_id', ...trail(route), (context) => {
    work(context.state);
    respond(context, json(200, {}));
  });
  return { entries, ...app };
}

test('records a client that left as 499', async () => {
  const app = await serve(() => {
    throw new ClientGone();
  });
  const socket = await openRaw(app.port);
  socket.write(head('POST /servers/one'));
  while (app.entries.length === 0) await new Promise(setImmediate);
  assert.is(app.entries[0]?.status, 499);
  socket.destroy();
  app.close();
});

test('limits the entries of unknown callers per minute, not those of others', async () => {
  let nowMs = 0;
  let principal: Principal | undefined;
  const app = await serve(
    (state) => {
      if (principal !== undefined) state.principal = principal;
    },
    { now: () => nowMs },
  );
  const most = HTTP_LIMITS.recordedRefusalsPerMinute;
  const ask = async (times: number) => {
    for (let time = 0; time < times; time += 1) await app.ask('POST', '/servers/one');
    return app.entries.length;
  };
  assert.is(await ask(most + 5), most);
  nowMs = 59_999;
  assert.is(await ask(1), most);
  principal = ADA;
  assert.is(await ask(3), most + 3);
  principal = undefined;
  nowMs = 60_000;
  assert.is(await ask(2), most + 5);
  app.close();
});

test('limits the refusals of one caller per minute, not its changes, and records none over the rate limit', async () => {
  let error: GatewayError | undefined;
  let principal: Principal = ADA;
  const app = await serve(
    (state) => {
      state.principal = principal;
      if (error !== undefined) throw error;
    },
    { now: () => 0 },
  );
  const most = HTTP_LIMITS.recordedRefusalsPerMinute;
  const ask = async (times: number) => {
    for (let time = 0; time < times; time += 1) await app.ask('POST', '/servers/one');
    return app.entries.length;
  };
  error = insufficientPermissions(['admin']);
  assert.is(await ask(most + 5), most);
  error = rateLimitExceeded(1_000, 60);
  assert.is(await ask(3), most);
  error = undefined;
  assert.is(await ask(3), most + 3);
  error = insufficientPermissions(['admin']);
  principal = { ...ADA, id: 'user:other' };
  assert.is(await ask(1), most + 4);
  app.close();
});

test('has the routes that change something, and logins', () => {
  const trail = auditTrail({ ...NO_CALLS, record: () => {} }, { address: () => undefined });
  assert.equal(
    ROUTES.filter((route) => trail(route).length > 0)
      .map(({ method, path }) => `${method} ${path}`)
      .sort(),
    [
      ...['DELETE /auth/api-keys/:key_id', 'DELETE /auth/users/:user_id'],
      'DELETE /gateway/deregister/:template/:instance_id',
      'DELETE /gateway/sessions/:session_id',
      'DELETE /gateway/templates/:template',
      'DELETE /servers/:server_id',
      ...['PATCH /auth/users/:user_id', 'PATCH /gateway/instances/:template/:instance_id'],
      ...[
        'PATCH /gateway/log-level',
        'PATCH /gateway/templates/:template',
        'POST /auth/api-keys',
        'POST /auth/login',
        'POST /auth/logout',
        'POST /auth/users',
      ],
      'POST /gateway/instances/:template/:instance_id/drain',
      'POST /gateway/instances/:template/:instance_id/restart',
      'POST /gateway/instances/:template/:instance_id/resume',
      ...['POST /gateway/register', 'POST /gateway/sync', 'POST /gateway/test', 'POST /servers'],
    ],
  );
});

test.run();
