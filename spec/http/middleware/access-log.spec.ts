import { once } from 'node:events';
import { Writable } from 'node:stream';
import { pino } from 'pino';
import * as assert from 'uvu/assert';
import { sessionFingerprint } from '../../../src/actors/session-fingerprint.ts';
import { newKey } from '../../../src/auth/api-keys.ts';
import { ANONYMOUS, NO_PRINCIPAL } from '../../../src/domain/account.ts';
import { accessLog } from '../../../src/http/middleware/access-log.ts';
import { json } from '../../../src/http/reply.ts';
import { respond } from '../../../src/http/respond.ts';
import { startMiddlewares } from '../../helpers/http-middlewares.ts';
import { head, openRaw } from '../../helpers/http-raw.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the access log');

/** Resolves with the next line. */
function listen() {
  const first = Promise.withResolvers<Record<string, unknown>>();
  const sink = new Writable({
    write: (chunk, _encoding, done) => {
      first.resolve(JSON.parse(String(chunk)));
      done();
    },
  });
  return { sink, line: first.promise };
}

test('writes one line with what happened and no secrets', async () => {
  const { sink, line } = listen();
  const app = await startMiddlewares(accessLog(pino(sink)), (context) => {
    context.state.template = 'demo';
    respond(context, json(201, { secret: 1 }, { instanceId: 'one' }));
  });
  await app.ask('POST', '/some/path?token=secret', {
    headers: { authorization: 'secret', 'x-request-id': 'r1' },
  });
  const { ms, time, pid, hostname, ...rest } = await line;
  assert.type(ms, 'number');
  assert.equal(rest, {
    level: 30,
    method: 'POST',
    path: '/some/path',
    status: 201,
    request_id: 'r1',
    template: 'demo',
    instance_id: 'one',
    msg: 'request',
  });
  app.close();
});

test('names the key of somebody who was not let in by its id, and nothing that is no key', async () => {
  const { key, id } = newKey();
  const notLetIn = (headers: Record<string, string>, code = 401) => lineFor(code, headers);
  for (const headers of [
    { 'x-api-key': key },
    { authorization: `Bearer ${key}` },
    { authorization: `bearer ${key}` },
  ] as const)
    assert.is((await notLetIn(headers)).refused_key, id);
  assert.is((await notLetIn({ 'x-api-key': key }, 403)).refused_key, undefined);
  const others = ['', 'foo', `${key}x`, key.slice(1), key.toUpperCase(), 'x'.repeat(10_000)];
  for (const other of others)
    for (const headers of [{ 'x-api-key': other }, { authorization: `Bearer ${other}` }] as const)
      assert.is((await notLetIn(headers)).refused_key, undefined);
  assert.is((await notLetIn({ authorization: 'Basic Zm9vOmJhcg==' })).refused_key, undefined);

  async function lineFor(code: number, headers: Record<string, string>) {
    const { sink, line } = listen();
    const app = await startMiddlewares(accessLog(pino(sink)), (context) => respond(context, json(code, {})));
    await app.ask('GET', '/', { headers });
    app.close();
    const seen = await line;
    assert.not.match(JSON.stringify(seen), key.slice(-43));
    return seen;
  }
});

test('writes what was said to the MCP endpoint, and names a session without its id', async () => {
  const id = 'a-session-id-that-is-a-credential';
  for (const [said, sent] of [
    [undefined, id],
    [id, 'another one'],
  ] as const) {
    const { sink, line } = listen();
    const app = await startMiddlewares(accessLog(pino(sink)), (context) => {
      const { state } = context;
      Object.assign(state, { rpcMethod: 'm'.repeat(1_000), rpcMessages: 3, rpcError: -32_601 });
      if (said !== undefined) state.sessionId = said;
      respond(context, json(200, {}));
    });
    await app.ask('POST', '/', { headers: { 'mcp-session-id': sent } });
    const seen = await line;
    assert.equal([seen.rpc_messages, seen.rpc_error, seen.session], [3, -32_601, sessionFingerprint(id)]);
    assert.is(String(seen.rpc_method).length, 512);
    assert.not.match(JSON.stringify(seen), 'credential');
    app.close();
  }
});

test('writes 499 when the client left before the answer', async () => {
  const { sink, line } = listen();
  const waiting = Promise.withResolvers<void>();
  const app = await startMiddlewares(accessLog(pino(sink)), async (context) => {
    waiting.resolve();
    await once(context.res, 'close');
  });
  const socket = await openRaw(app.port);
  socket.write(head('GET /slow'));
  await waiting.promise;
  socket.destroy();
  const { status, cut } = await line;
  assert.equal({ status, cut }, { status: 499, cut: true });
  app.close();
});

test('listens to nothing when its level is off', async () => {
  let listeners = -1;
  const app = await startMiddlewares(
    async (context, next) => {
      const before = context.res.listenerCount('close');
      await next();
      listeners = context.res.listenerCount('close') - before;
    },
    accessLog(pino({ level: 'warn' })),
    (context) => respond(context, json(200, {})),
  );
  await app.ask('GET', '/');
  assert.is(listeners, 0);
  app.close();
});

test('clips what a client may make as long as he likes', async () => {
  const { sink, line } = listen();
  const app = await startMiddlewares(accessLog(pino(sink)), (context) => respond(context, json(200, {})));
  await app.ask('GET', `/${'x'.repeat(10_000)}`);
  assert.is(String((await line).path).length, 512);
  app.close();
});

test('names the caller by id, when somebody is known', async () => {
  for (const [principal, shown] of [
    [ANONYMOUS, 'anonymous'],
    [NO_PRINCIPAL, undefined],
  ] as const) {
    const { sink, line } = listen();
    const app = await startMiddlewares(accessLog(pino(sink)), (context) => {
      context.state.principal = principal;
      respond(context, json(200, {}));
    });
    await app.ask('GET', '/');
    assert.is((await line).principal, shown);
    app.close();
  }
});

test.run();
