import { Writable } from 'node:stream';
import { pino } from 'pino';
import * as assert from 'uvu/assert';
import { toolExecutionFailed } from '../../../src/domain/answer-errors.ts';
import {
  authenticationRequired,
  backendTimeout,
  backendUnavailable,
  insufficientPermissions,
  invalidCredentials,
  methodNotAllowed,
  noHealthyInstance,
  queueFull,
  tokenExpired,
  tooManyAttempts,
  validationFailed,
} from '../../../src/domain/error-catalogue.ts';
import { atInstance, databaseUnavailable } from '../../../src/domain/errors.ts';
import { errors } from '../../../src/http/middleware/errors.ts';
import { ClientGone } from '../../../src/http/request.ts';
import { startMiddlewares } from '../../helpers/http-middlewares.ts';
import { head, openRaw, readAll } from '../../helpers/http-raw.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the error exit');

async function answerTo(thrown: unknown, log: Record<string, unknown>[] = []) {
  const sink = new Writable({
    write: (chunk, _encoding, done) => {
      log.push(JSON.parse(String(chunk)));
      done();
    },
  });
  const app = await startMiddlewares(errors(pino(sink)), () => {
    throw thrown;
  });
  const answer = await app.ask('GET', '/', { headers: { 'x-request-id': 'r1' } });
  app.close();
  return answer;
}

test('names the instance that failed', async () => {
  const failed = backendUnavailable('it broke', { delivered: 'unknown' });
  const answer = await answerTo(atInstance(failed, 'demo-1'));
  assert.is(answer.headers.get('x-instance-id'), 'demo-1');
  assert.is((await answerTo(failed)).headers.get('x-instance-id'), null);
});

test('answers a known error with its status, code and request id', async () => {
  const answer = await answerTo(noHealthyInstance('demo'));
  assert.is(answer.status, 503);
  assert.is(answer.headers.get('content-type'), 'application/json');
  assert.equal(answer.body, {
    detail: 'No instance of "demo" is healthy right now.',
    error_code: 'NO_HEALTHY_INSTANCE',
    request_id: 'r1',
  });
});

test('tells when to try again only if the call certainly did not happen', async () => {
  assert.is((await answerTo(noHealthyInstance('demo'))).headers.get('retry-after'), '2');
  assert.is((await answerTo(queueFull('demo'))).headers.get('retry-after'), '1');
  const refused = await answerTo(backendUnavailable('refused', { delivered: 'no' }));
  assert.is(refused.headers.get('retry-after'), '1');
  assert.is(refused.body.delivered, undefined);
  const lost = await answerTo(backendUnavailable('reset', { delivered: 'unknown' }));
  assert.is(lost.headers.get('retry-after'), null);
  assert.is(lost.body.delivered, 'unknown');
  assert.is((await answerTo(backendTimeout(1_000))).body.delivered, 'unknown');
});

test('lists the methods with a 405', async () => {
  const answer = await answerTo(methodNotAllowed('PUT', '/x', ['GET', 'HEAD']));
  assert.is(answer.status, 405);
  assert.is(answer.headers.get('allow'), 'GET, HEAD');
});

test('shows issues as the detail', async () => {
  const item = { loc: ['body', 'name'], msg: 'Field required', type: 'missing' };
  const answer = await answerTo(validationFailed([item]));
  assert.is(answer.status, 422);
  assert.equal(answer.body.detail, [item]);
});

test('passes on what the backend said', async () => {
  const backendError = { code: -32000, message: 'broken', data: { why: 'it is' } };
  assert.equal((await answerTo(toolExecutionFailed('t', { backendError }))).body.backend_error, backendError);
  const result = { content: [], isError: true };
  assert.equal((await answerTo(toolExecutionFailed('t', { result }))).body.result, result);
});

test('tells nothing about an unknown error, and logs it with the request id', async () => {
  const log: Record<string, unknown>[] = [];
  const answer = await answerTo(new Error('the secret is 42'), log);
  assert.is(answer.status, 500);
  assert.equal(answer.body, {
    detail: 'Something went wrong inside the gateway.',
    error_code: 'INTERNAL_ERROR',
    request_id: 'r1',
  });
  assert.is(log.length, 1);
  assert.is(log[0]?.request_id, 'r1');
  assert.match(JSON.stringify(log[0]?.err), /the secret is 42/);
});

test('answers what is no Error at all', async () => {
  assert.is((await answerTo('a string')).body.error_code, 'INTERNAL_ERROR');
  assert.is((await answerTo(undefined)).body.error_code, 'INTERNAL_ERROR');
});

test('breaks the connection when half an answer is out', async () => {
  const app = await startMiddlewares((context) => {
    context.respond = false;
    context.res.writeHead(200, { 'content-length': '100' });
    context.res.write('half');
    throw new Error('too late');
  });
  const socket = await openRaw(app.port);
  socket.write(head('GET /'));
  const received = await readAll(socket);
  assert.not.match(received, /INTERNAL_ERROR/);
  app.close();
});

test('says nothing to a client that has gone', async () => {
  const log: Record<string, unknown>[] = [];
  const over = Promise.withResolvers<void>();
  const app = await startMiddlewares(
    async (context, next) => {
      await next();
      assert.is(context.res.headersSent, false);
      over.resolve();
      context.res.end();
    },
    errors(pino(new Writable({ write: (chunk, _encoding, done) => done(void log.push(JSON.parse(chunk))) }))),
    () => {
      throw new ClientGone();
    },
  );
  await app.ask('GET', '/');
  await over.promise;
  assert.equal(log, []);
  app.close();
});

test('challenges where other credentials would help, and only there', async () => {
  for (const [error, challenge] of [
    [authenticationRequired(), 'Bearer'],
    [invalidCredentials(), 'Bearer'],
    [tokenExpired(), 'Bearer'],
    [insufficientPermissions(['admin']), null],
    [tooManyAttempts(3), null],
  ] as const) {
    assert.is((await answerTo(error)).headers.get('www-authenticate'), challenge, error.code);
  }
});

test('says when to try again after too many attempts, and when the database is away', async () => {
  assert.is((await answerTo(tooManyAttempts(7))).headers.get('retry-after'), '7');
  const away = await answerTo(databaseUnavailable(new Error('secret')));
  assert.equal([away.status, away.headers.get('retry-after')], [503, '5']);
  assert.not.match(away.text, /secret|delivered/);
  const perhaps = await answerTo(databaseUnavailable(new Error('secret'), 'unknown'));
  assert.equal([perhaps.status, perhaps.headers.get('retry-after')], [503, null]);
  assert.is(JSON.parse(perhaps.text).delivered, 'unknown');
});

test.run();
