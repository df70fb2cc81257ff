// Limits for bodies: requests of the rate limit, and bytes while a body is read, queued or in flight; bytes are released once.
// Source: ADR 42.

import { once } from 'node:events';
import { connect } from 'node:net';
import * as assert from 'uvu/assert';
import { ANONYMOUS, type Principal } from '../../../src/domain/accounts/principal.ts';
import { hasCode } from '../../../src/domain/errors/errors.ts';
import { UserShares } from '../../../src/domain/memory/user-shares.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { TaskScheduler } from '../../../src/domain/time/task-scheduler.ts';
import { HeldBodies } from '../../../src/http/body/held-bodies.ts';
import { readDirect } from '../../../src/http/body/readers.ts';
import { ClientGone } from '../../../src/http/client-gone.ts';
import type { HttpMiddleware } from '../../../src/http/context.ts';
import { body } from '../../../src/http/middleware/body.ts';
import { HeldTool, serving } from '../../helpers/backends/function-backend.ts';
import { MCP_TYPES, modern, openSession, rpc } from '../../helpers/clients/mcp-messages.ts';
import { head, openRaw, readUntil } from '../../helpers/clients/raw-http.ts';
import { until } from '../../helpers/eventually.ts';
import {
  type AccountsFixture,
  type Credentials,
  PASSWORD,
  startWithAccounts,
} from '../../helpers/http/accounts.ts';
import type { Answer } from '../../helpers/http/app.ts';
import { startMiddlewares } from '../../helpers/http/middlewares.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('body limits');
const KB = 1024;

/** A call of `name` whose arguments have so many bytes. */
const call = (bytes: number, name = 'name') => ({ name, arguments: { text: 'x'.repeat(bytes) } });
const rest = (app: AccountsFixture, credentials: Credentials, body: object): Promise<Answer> =>
  app.as(credentials, 'POST', '/mcp/demo/tools/call', { body });
const mcp = (app: AccountsFixture, credentials: Credentials, params: { name: string }): Promise<Answer> =>
  app.as(credentials, 'POST', '/mcp/demo', modern('tools/call', params));
/** As `rest`, without a Content-Length. */
const chunked = (app: AccountsFixture, credentials: Credentials, body: object): Promise<Response> =>
  fetch(`${app.url}/mcp/demo/tools/call`, {
    ...{ method: 'POST', duplex: 'half', headers: { ...credentials, 'content-type': 'application/json' } },
    body: new Blob([JSON.stringify(body)]).stream(),
  });

/** Sends the head of a request and `sent` bytes of its body; without `length` the body is chunked. */
async function begin(
  app: AccountsFixture,
  credentials: Credentials,
  path: string,
  length?: number,
  sent = 0,
) {
  const framing: Record<string, string> =
    length === undefined ? { 'transfer-encoding': 'chunked' } : { 'content-length': String(length) };
  const socket = await openRaw(app.port);
  socket.on('error', () => {});
  socket.write(head(`POST ${path}`, { ...credentials, ...MCP_TYPES, ...framing }));
  const bytes = 'x'.repeat(sent);
  if (sent > 0) socket.write(length === undefined ? `${sent.toString(16)}\r\n${bytes}\r\n` : bytes);
  return socket;
}

test('of a login without a length count as much as was sent: slow ones do not keep others out', async () => {
  const app = await startWithAccounts({
    ...{ maxBodyBytes: 64 * KB, gateway: { requestBounds: { totalBytes: 64 * KB, ownerBytes: 64 * KB } } },
  });
  const slow = await begin(app, {}, '/auth/login', undefined, 10);
  const login = { username: 'ada', password: PASSWORD };
  const { status } = await fetch(`${app.url}/auth/login`, {
    ...{ method: 'POST', duplex: 'half', headers: { 'content-type': 'application/json' } },
    body: new Blob([JSON.stringify(login)]).stream(),
  });
  assert.is(status, 200);
  slow.destroy();
  await app.close();
});

test('count one request for each started 64 kB, over REST and MCP', async () => {
  const app = await startWithAccounts();
  await app.serve('demo', 'one');
  let left = 1_000;
  for (const send of [rest, mcp, chunked]) {
    for (const [bytes, requests] of [
      [10, 1],
      [60 * KB, 1],
      [65 * KB, 2],
      [250 * KB, 4],
    ] as const) {
      const answer = await send(app, app.user, call(bytes));
      left -= requests;
      assert.equal(
        [answer.status, answer.headers.get('x-ratelimit-remaining')],
        [200, String(left)],
        `${bytes}`,
      );
    }
  }
  await app.close();
});

test('count per user and per API key, not per token', async () => {
  const app = await startWithAccounts({ limits: { userHourlyLimit: 10, apiKeyHourlyLimit: 20 } });
  await app.createUser('eve');
  const [ada, other, eve] = [app.user, await app.login('ada'), await app.login('eve')];
  const [one, two] = [await app.key(['gateway:read']), await app.key(['gateway:read'])];
  const left = [];
  for (const credentials of [ada, other, eve, one, one, two, ada])
    left.push((await app.as(credentials, 'GET', '/stats')).headers.get('x-ratelimit-remaining'));
  assert.equal(left, ['9', '8', '9', '19', '18', '19', '7']);
  await app.close();
});

test('refuse a large body unread when the rate limit is used up, and still accept a notification', async () => {
  const app = await startWithAccounts({ limits: { userHourlyLimit: 2, apiKeyHourlyLimit: 2 } });
  await app.serve('demo', 'one');
  for (let time = 0; time < 2; time += 1) await rest(app, app.user, call(1));
  for (const path of ['/mcp/demo/tools/call', '/mcp/demo']) {
    const socket = await begin(app, app.user, path, 200 * KB);
    assert.match(await readUntil(socket, '\r\n\r\n'), /^HTTP\/1.1 429 [\s\S]*retry-after/i, path);
    socket.destroy();
  }
  const endless = await begin(app, app.user, '/mcp/demo', undefined, 66 * KB);
  assert.match(await readUntil(endless, '\r\n\r\n'), /^HTTP\/1.1 429 /);
  endless.destroy();
  const { id: _, ...notification } = modern('notifications/x').body;
  const free = await app.as(app.user, 'POST', '/mcp/demo', { body: notification, headers: MCP_TYPES });
  assert.is(free.status, 202, free.text);
  await app.close();
});

test('let one caller send 16 large bodies at a time', async () => {
  const app = await startWithAccounts();
  await app.serve('demo', 'one');
  const other = await app.key(['tools:call']);
  const sockets = await Promise.all(
    Array.from({ length: 16 }, () => begin(app, app.user, '/mcp/demo/tools/call', 100 * KB, 1)),
  );
  // One more body is accepted until the gateway has read the heads of all 16.
  let refused = await rest(app, app.user, call(100 * KB));
  while (refused.status === 200) refused = await rest(app, app.user, call(100 * KB));
  assert.equal([refused.outcome, refused.headers.get('retry-after')], ['429 QUEUE_FULL', '1']);
  assert.is((await rest(app, app.user, call(10 * KB))).status, 200);
  assert.is((await rest(app, other, call(100 * KB))).status, 200);
  for (const socket of sockets) socket.destroy();
  let served = await rest(app, app.user, call(100 * KB));
  while (served.status === 429) served = await rest(app, app.user, call(100 * KB));
  assert.is(served.status, 200);
  await app.close();
});

test('bound the bytes of one caller and of all callers while calls are in flight', async () => {
  const requestBounds = { totalBytes: 250 * KB, ownerBytes: 100 * KB };
  const app = await startWithAccounts({ gateway: { requestBounds }, maxBodyBytes: 100 * KB });
  const held = new HeldTool();
  await app.serve('demo', 'one', serving({ name: held.body }));
  const inFlight = (count: number) => until(() => held.waiting >= count, `${count} are in flight`);
  const first = rest(app, app.user, call(60 * KB));
  await inFlight(1);
  assert.is((await rest(app, app.user, call(60 * KB))).outcome, '429 QUEUE_FULL');
  const overAtMcp = await mcp(app, app.user, call(60 * KB));
  assert.equal([overAtMcp.status, Object(overAtMcp.body.error).data.error_code], [429, 'QUEUE_FULL']);
  assert.is((await chunked(app, app.user, call(60 * KB))).status, 429);
  const second = mcp(app, await app.key(['tools:call']), call(90 * KB));
  const third = rest(app, await app.key(['tools:call']), call(90 * KB));
  await inFlight(3);
  assert.is((await rest(app, await app.key(['tools:call']), call(60 * KB))).outcome, '429 QUEUE_FULL');
  held.answerAll();
  const found = (await Promise.all([first, second, third])).map(({ status }) => status);
  assert.equal(found, [200, 200, 200]);
  const next = rest(app, app.user, call(60 * KB));
  await inFlight(1);
  held.answer();
  assert.is((await next).status, 200);
  await app.close();
});

test('count the body of a legacy call whose client disconnected until the call ends', async () => {
  const app = await startWithAccounts({
    gateway: { requestBounds: { totalBytes: 100 * KB, ownerBytes: 100 * KB } },
    maxBodyBytes: 100 * KB,
  });
  const held = new HeldTool();
  await app.serve('demo', 'one', serving({ name: held.body }));
  const session = await openSession(app, '/mcp/demo', { credentials: app.user, version: '2025-06-18' });
  const body = JSON.stringify(rpc('tools/call', call(60 * KB)));
  const socket = await begin(app, session, '/mcp/demo', body.length);
  socket.write(body);
  await until(() => held.waiting === 1, 'the call is there');
  socket.destroy();
  await once(socket, 'close');
  for (let time = 0; time < 5; time += 1) assert.is((await rest(app, app.user, call(60 * KB))).status, 429);
  held.answer();
  let after = await rest(app, app.user, call(60 * KB, 'none'));
  while (after.status === 429) after = await rest(app, app.user, call(60 * KB, 'none'));
  assert.is(after.outcome, '404 TOOL_NOT_FOUND');
  await app.close();
});

test('a message without an answer is refused while waiting messages of its caller hold all they may', async () => {
  const requestBounds = { totalBytes: 200 * KB, ownerBytes: 100 * KB };
  const app = await startWithAccounts({ gateway: { requestBounds }, maxBodyBytes: 100 * KB });
  await app.serve('demo', 'one');
  const headers = await openSession(app, '/mcp/demo', { credentials: app.user });
  const others = await openSession(app, '/mcp/demo', { credentials: await app.key(['tools:call']) });
  const { requestBytes } = app.gateway.internals;
  const [ada = ''] = app.gateway.openCallers();
  const messages = [
    { jsonrpc: '2.0', method: 'notifications/custom' },
    { jsonrpc: '2.0', id: 7, result: {} },
  ];
  const send = (body: object, headers: Credentials) => app.ask('POST', '/mcp/demo', { body, headers });
  requestBytes.add(ada, 100 * KB);
  for (const message of messages) {
    const refused = await send(message, headers);
    assert.equal([refused.status, Object(refused.body.error).data.error_code], [429, 'QUEUE_FULL']);
    assert.is((await send(message, others)).status, 202);
  }
  requestBytes.add(ada, -100 * KB);
  for (const message of messages) assert.is((await send(message, headers)).status, 202);
  await app.close();
});

test.run();

const heldBodies = suite('held bodies');
const BYTES = 200 * KB;
const KEY = {
  kind: 'api-key',
  id: 'k',
  name: 'k',
  scopes: new Set(),
  hourlyLimit: 100,
} as const satisfies Principal;
const WINDOW = { limit: 100, remaining: 50, resetAtSeconds: 0 };

heldBodies(
  'release the bytes of a client that disconnects before the read or while the rate limit is consumed',
  async () => {
    for (const leavesAt of ['before', 'charge'] as const) {
      const held = new HeldBodies(new UserShares(1_000 * KB, 1_000 * KB));
      const { promise: thrown, resolve } = Promise.withResolvers<unknown>();
      const { promise: arrived, resolve: arrive } = Promise.withResolvers<void>();
      let gone: Promise<unknown> = Promise.resolve();
      const limiter = {
        take: async () => {
          if (leavesAt === 'charge') await gone;
          return WINDOW;
        },
        peek: () => WINDOW,
      };
      const first: HttpMiddleware = async (context, next) => {
        context.state.principal = KEY;
        gone = once(context.res, 'close');
        arrive();
        if (leavesAt === 'before') await gone;
        try {
          await next();
        } catch (reason) {
          resolve(reason);
          throw reason;
        }
      };
      const costs = { held, limiter, scheduler: new TaskScheduler(), clock: systemClock };
      const app = await startMiddlewares(first, body(readDirect, { kind: 'bytes', maxBytes: BYTES }, costs));
      const socket = connect(app.port, '127.0.0.1');
      socket.write(head('POST /', { 'Content-Type': 'application/json', 'Content-Length': String(BYTES) }));
      await arrived;
      socket.destroy();
      assert.instance(await thrown, ClientGone, leavesAt);
      assert.is(held.bytes, 0, leavesAt);
      for (let upload = 0; upload < 2; upload += 1) held.upload(KEY)();
      await app.close();
    }
  },
);

heldBodies('release a body once that is kept after its response, and count anonymous ones apart', () => {
  const held = new HeldBodies(new UserShares(2_000, 1_000));
  const one = held.open(KEY);
  one.add(600);
  one.release();
  const release = one.keep();
  release();
  release();
  assert.is(held.bytes, 0);
  held.open(KEY).add(600);
  assert.throws(
    () => held.open(KEY).add(600),
    (thrown: unknown) => hasCode(thrown, 'QUEUE_FULL'),
  );
  // Without authentication, one caller does not use up the share of all.
  for (let body = 0; body < 2; body += 1) held.open(ANONYMOUS).add(600);
});

heldBodies.run();
