import { Writable } from 'node:stream';
import { pino } from 'pino';
import * as assert from 'uvu/assert';
import {
  backendUnavailable,
  payloadTooLarge,
  rateLimitExceeded,
  sessionNotFound,
} from '../../../src/domain/error-catalogue.ts';
import { atInstance } from '../../../src/domain/errors.ts';
import { rpcErrors } from '../../../src/http/middleware/errors.ts';
import { ClientGone } from '../../../src/http/request.ts';
import { RpcFailure } from '../../../src/protocol/rpc.ts';
import { startMiddlewares, startRoute } from '../../helpers/http-middlewares.ts';
import { head, openRaw, readAll } from '../../helpers/http-raw.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the error exit of routes that speak JSON-RPC');

async function answerTo(thrown: unknown, log: Record<string, unknown>[] = []) {
  const sink = new Writable({
    write: (chunk, _encoding, done) => {
      log.push(JSON.parse(String(chunk)));
      done();
    },
  });
  const app = await startRoute('/', rpcErrors(pino(sink)), () => {
    throw thrown;
  });
  const answer = await app.ask('POST', '/', { headers: { 'x-request-id': 'r1' } });
  app.close();
  return answer;
}

test('answers with a message and the status that belongs to it', async () => {
  const { status, headers, body } = await answerTo(sessionNotFound());
  const error = {
    code: -32_001,
    message: 'There is no such session. Initialize again.',
    data: { error_code: 'SESSION_NOT_FOUND' },
  };
  assert.equal([status, body], [404, { jsonrpc: '2.0', id: null, error }]);
  assert.equal(
    ['content-type', 'x-request-id', 'retry-after'].map((name) => headers.get(name)),
    ['application/json', 'r1', null],
  );
});

test('tells the log the code, unless it knows of an earlier error', async () => {
  for (const [known, logged] of [
    [undefined, -32_001],
    [-32_602, -32_602],
  ]) {
    let code: number | undefined;
    const app = await startRoute(
      '/',
      async (context, next) => {
        await next();
        code = context.state.rpcError;
      },
      rpcErrors(pino({ level: 'silent' })),
      (context) => {
        if (known !== undefined) context.state.rpcError = known;
        throw sessionNotFound();
      },
    );
    await app.ask('POST', '/');
    app.close();
    assert.is(code, logged);
  }
});

test('keeps the id and the headers of a failure that the endpoint made', async () => {
  const failure = new RpcFailure(405, { code: -32_000, message: 'Not here' }, 7, ['Allow', 'POST']);
  const { status, headers, body } = await answerTo(failure);
  assert.equal([status, headers.get('allow'), body.id], [405, 'POST', 7]);
});

test('says when to come back, and names the instance that failed', async () => {
  const over = await answerTo(rateLimitExceeded(5, 99));
  assert.equal([over.status, over.headers.get('retry-after')], [429, '99']);
  const failed = await answerTo(atInstance(backendUnavailable('it broke', { delivered: 'unknown' }), 'one'));
  assert.equal(
    [failed.status, failed.headers.get('x-instance-id'), failed.headers.get('retry-after')],
    [503, 'one', null],
  );
  assert.is((await answerTo(payloadTooLarge(1))).status, 413);
});

test('logs what it does not tell', async () => {
  const log: Record<string, unknown>[] = [];
  const { status, text } = await answerTo(new TypeError('a secret'), log);
  assert.is(status, 500);
  assert.not.match(text, /secret/);
  assert.match(JSON.stringify(log), /"request_id":"r1".*a secret|a secret.*"request_id":"r1"/);
  const quiet: Record<string, unknown>[] = [];
  await answerTo(sessionNotFound(), quiet);
  assert.equal(quiet, []);
});

test('leaves a client alone that is gone, and breaks off half an answer', async () => {
  const quiet = pino({ level: 'silent' });
  const app = await startMiddlewares(async (context) => {
    const { res: response, path } = context;
    if (path === '/half') {
      response.writeHead(200, { 'Content-Length': '10' });
      response.write('half');
    }
    const gone = path === '/gone' ? new ClientGone() : new Error('broken');
    const passed = await Promise.resolve(
      rpcErrors(quiet)(Object.assign(context, { params: {} }), () => Promise.reject(gone)),
    ).catch((thrown: unknown) => thrown);
    if (path === '/gone') {
      assert.is(passed, gone);
      response.destroy();
    }
  });
  for (const path of ['/half', '/gone']) {
    const socket = await openRaw(app.port);
    socket.write(head(`POST ${path}`));
    const text = await readAll(socket);
    assert.is(path === '/half' ? text.endsWith('half') : text === '', true, path);
  }
  app.close();
});

test.run();
