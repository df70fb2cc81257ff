import * as assert from 'uvu/assert';
import type { Auth } from '../../../src/auth/auth.ts';
import type { Principal } from '../../../src/domain/accounts/principal.ts';
import { ANONYMOUS } from '../../../src/domain/accounts/principal.ts';
import { insufficientPermissions, rateLimitExceeded } from '../../../src/domain/errors/account-errors.ts';
import type { GatewayError } from '../../../src/domain/errors/errors.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { ClientGone } from '../../../src/http/client-gone.ts';
import type { Trail } from '../../../src/http/context.ts';
import { auditTrail } from '../../../src/http/middleware/audit-trail.ts';
import { json } from '../../../src/http/replies/reply.ts';
import { respond } from '../../../src/http/replies/respond.ts';
import { ROUTES } from '../../../src/http/routes/index.ts';
import { head, openRaw } from '../../helpers/clients/raw-http.ts';
import { until } from '../../helpers/eventually.ts';
import { startRoute } from '../../helpers/http/middlewares.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the audit trail');

type Entry = Parameters<Auth['audit']['record']>[0];
const ADA: Principal = { ...ANONYMOUS, id: 'user:1', kind: 'user', name: 'ada' };

/** An app with one recorded route; `work` runs behind the audit trail. */
async function serve(work: (state: { principal?: Principal; trail?: Trail }) => void, now = () => 0) {
  const entries: Entry[] = [];
  const suppressed: Entry[] = [];
  const audit = {
    record: (entry: Entry) => entries.push(entry),
    suppress: (entry: Entry) => suppressed.push(entry),
  };
  const trail = auditTrail(audit, { address: () => '192.0.2.7' }, now);
  const route = { method: 'POST', path: '/servers/:server_id', scope: 'gateway:write' } as const;
  const app = await startRoute('/servers/:server_id', ...trail(route), (context) => {
    work(context.state);
    respond(context, json(200, {}));
  });
  /** Sends so many requests; the number of entries after that. */
  const ask = async (times: number) => {
    for (let time = 0; time < times; time += 1) await app.ask('POST', '/servers/one');
    return entries.length;
  };
  return { ...app, entries, suppressed, ask };
}

const MOST = LIMITS.recordedRefusalsPerMinute;

test('records a client that disconnected as 499', async () => {
  const app = await serve(() => {
    throw new ClientGone();
  });
  const socket = await openRaw(app.port);
  socket.write(head('POST /servers/one'));
  await until(() => app.entries.length !== 0);
  assert.is(app.entries[0]?.status, 499);
  socket.destroy();
  app.close();
});

test('limits the entries of unknown callers per minute, not those of known callers', async () => {
  let nowMs = 0;
  let principal: Principal | undefined;
  const app = await serve(
    (state) => {
      if (principal !== undefined) state.principal = principal;
    },
    () => nowMs,
  );
  assert.is(await app.ask(MOST + 5), MOST);
  nowMs = 59_999;
  assert.is(await app.ask(1), MOST);
  const { action, address, status } = app.suppressed.at(-1) as Entry;
  assert.equal(
    [app.suppressed.length, action, address, status],
    [6, 'POST /servers/:server_id', '192.0.2.7', 200],
  );
  principal = ADA;
  assert.is(await app.ask(3), MOST + 3);
  principal = undefined;
  nowMs = 60_000;
  assert.is(await app.ask(2), MOST + 5);
  app.close();
});

test('limits the refusals of one caller per minute, not its changes, and records none over the rate limit', async () => {
  let error: GatewayError | undefined;
  let principal: Principal = ADA;
  const app = await serve((state) => {
    state.principal = principal;
    if (error !== undefined) throw error;
  });
  error = insufficientPermissions(['admin']);
  assert.is(await app.ask(MOST + 5), MOST);
  error = rateLimitExceeded(1_000, 60);
  assert.is(await app.ask(3), MOST);
  assert.equal(app.suppressed, []);
  error = undefined;
  assert.is(await app.ask(3), MOST + 3);
  error = insufficientPermissions(['admin']);
  principal = { ...ADA, id: 'user:other' };
  assert.is(await app.ask(1), MOST + 4);
  app.close();
});

test('limits the entries of a caller without the right to change the gateway, too, and counts the others', async () => {
  let isRefused = true;
  const principal: Principal = { ...ADA, scopes: new Set(['gateway:read', 'tools:call']) };
  const app = await serve((state) => {
    state.principal = principal;
    if (isRefused) throw insufficientPermissions(['admin']);
  });
  assert.is(await app.ask(MOST + 5), MOST);
  isRefused = false;
  assert.is(await app.ask(MOST + 5), 2 * MOST);
  assert.equal(
    app.suppressed.map(({ actor, status }) => `${actor} ${status}`),
    Array(5).fill('user:1 200'),
  );
  app.close();
});

test('covers exactly the routes that change something, logins and logouts', () => {
  const trail = auditTrail({ record: () => {}, suppress: () => {} }, { address: () => undefined }, () => 0);
  assert.equal(
    ROUTES.filter((route) => trail(route).length > 0)
      .map(({ method, path }) => `${method} ${path}`)
      .sort(),
    [
      ...[
        'DELETE /auth/api-keys/:key_id',
        'DELETE /auth/clients/:client_id',
        'DELETE /auth/grants/:grant_id',
      ],
      ...['DELETE /auth/users/:user_id', 'DELETE /auth/users/:user_id/link'],
      'DELETE /gateway/connections/:connection_id',
      'DELETE /gateway/deregister/:template/:instance_id',
      ...['DELETE /gateway/sessions/:session_id', 'DELETE /gateway/templates/:template'],
      'DELETE /gateway/templates/:template/definition',
      'DELETE /gateway/views/:view',
      'DELETE /servers/:server_id',
      'PATCH /auth/api-keys/:key_id',
      ...['PATCH /auth/users/:user_id', 'PATCH /gateway/instances/:template/:instance_id'],
      ...['PATCH /gateway/log-level', 'PATCH /gateway/templates/:template'],
      ...['POST /auth/api-keys', 'POST /auth/clients', 'POST /auth/login'],
      ...['POST /auth/logout', 'POST /auth/users', 'POST /auth/users/:user_id/link'],
      ...['POST /gateway/connections', 'POST /gateway/connections/confirm'],
      'POST /gateway/instances/:template/:instance_id/drain',
      'POST /gateway/instances/:template/:instance_id/restart',
      'POST /gateway/instances/:template/:instance_id/resume',
      ...['POST /gateway/nodes/:node_id/drain', 'POST /gateway/nodes/:node_id/resume'],
      ...['POST /gateway/register', 'POST /gateway/sync', 'POST /gateway/templates/:template/tools/approve'],
      ...['POST /gateway/test', 'POST /gateway/views/:view/tools/approve', 'POST /servers'],
      'PUT /gateway/templates/:template/definition',
      'PUT /gateway/views/:view',
    ],
  );
});

test.run();
