// The two error middlewares: of ordinary routes, and of routes that speak JSON-RPC. How a known error is answered, and which
// details callers do not see.

import { type Logger, pino } from 'pino';
import { Compile } from 'typebox/compile';
import * as assert from 'uvu/assert';
import type { Scope } from '../../../src/domain/accounts/account.ts';
import { ANONYMOUS, type Principal } from '../../../src/domain/accounts/principal.ts';
import { toolExecutionFailed } from '../../../src/domain/calls/answer-errors.ts';
import {
  authenticationRequired,
  insufficientPermissions,
  invalidCredentials,
  rateLimitExceeded,
  tokenExpired,
  tooManyAttempts,
} from '../../../src/domain/errors/account-errors.ts';
import {
  backendTimeout,
  backendUnavailable,
  noHealthyInstance,
  queueFull,
} from '../../../src/domain/errors/backend-errors.ts';
import { atInstance, openingFailed } from '../../../src/domain/errors/errors.ts';
import { databaseUnavailable } from '../../../src/domain/errors/gateway-errors.ts';
import {
  methodNotAllowed,
  payloadTooLarge,
  validationFailed,
} from '../../../src/domain/errors/request-errors.ts';
import { sessionNotFound } from '../../../src/domain/errors/session-errors.ts';
import { JsonText } from '../../../src/domain/json/json.ts';
import { ClientGone } from '../../../src/http/client-gone.ts';
import type { HttpMiddleware } from '../../../src/http/context.ts';
import { errors, rpcErrors } from '../../../src/http/middleware/error-answers.ts';
import { ErrorBody, errorBody } from '../../../src/http/replies/error-reply.ts';
import { RpcFailure } from '../../../src/protocol/rpc.ts';
import type { Json } from '../../fixtures/wire.ts';
import { head, openRaw, readAll } from '../../helpers/clients/raw-http.ts';
import { lineSink } from '../../helpers/http/app.ts';
import { startMiddlewares } from '../../helpers/http/middlewares.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the error middlewares');
const isErrorBody = Compile(ErrorBody);

type Exit = (log: Logger) => HttpMiddleware;
const rpc: Exit = (log) => (context, next) => rpcErrors(log)(Object.assign(context, { params: {} }), next);

/** The answer and the log lines when the handler throws this. */
async function answerTo(thrown: unknown, exit: Exit = errors, method = 'POST', sent = {}) {
  const logged: Json[] = [];
  const app = await startMiddlewares(exit(pino(lineSink(logged))), () => {
    throw thrown;
  });
  const answer = await app.ask(method, '/', { headers: { 'x-request-id': 'r1', ...sent } });
  app.close();
  return { ...answer, logged };
}

const refused = backendUnavailable('it broke', { delivered: 'no' });
const lost = backendUnavailable('it broke', { delivered: 'unknown' });
const item = { loc: ['body', 'name', 0], msg: 'Field required', type: 'missing' };
const backendError = { code: -32000, message: 'broken', data: { why: 'it is' } };
const result = { content: [], isError: true };
const secret = new Error('a secret');

const NOBODY = 'No instance of "demo" is healthy right now.';
const NEEDED = 'This requires the permission "gateway:read" or "tools:call".';

/** The error, its status and its headers; further fields of the body. */
const ROWS: readonly (readonly [error: unknown, status: number, headers?: object, body?: object])[] = [
  [noHealthyInstance('demo'), 503, { 'retry-after': '2' }, { detail: NOBODY }],
  [queueFull('demo'), 429, { 'retry-after': '1' }],
  [refused, 503, { 'retry-after': '1' }, { delivered: undefined }],
  [lost, 503, {}, { delivered: 'unknown' }],
  [atInstance(lost, 'demo-1'), 503, { 'x-instance-id': 'demo-1' }, { delivered: 'unknown' }],
  [backendTimeout(1_000), 503, {}, { delivered: 'unknown' }],
  [backendTimeout(1_000, 'no'), 503, { 'retry-after': '1' }, { delivered: undefined }],
  [methodNotAllowed('PUT', '/x', ['GET', 'HEAD']), 405, { allow: 'GET, HEAD' }],
  [validationFailed([item]), 422, {}, { detail: [item] }],
  [toolExecutionFailed('t', { backendError }), 500, {}, { backend_error: backendError }],
  [toolExecutionFailed('t', { result }), 500, {}, { result, detail: '"t" failed with an error result' }],
  [toolExecutionFailed('t', { result: JsonText.ofText('{"n":[1]}') }), 500, {}, { result: { n: [1] } }],
  [authenticationRequired(), 401, { 'www-authenticate': 'Bearer' }],
  [invalidCredentials(), 401, { 'www-authenticate': 'Bearer' }],
  [tokenExpired(), 401, { 'www-authenticate': 'Bearer' }],
  [
    insufficientPermissions(['gateway:read', 'tools:call']),
    ...([403, {}, { detail: NEEDED, required_permissions: ['gateway:read', 'tools:call'] }] as const),
  ],
  [tooManyAttempts(7), 429, { 'retry-after': '7' }],
  [databaseUnavailable(secret), 503, { 'retry-after': '5' }, { delivered: undefined }],
  [databaseUnavailable(secret, 'unknown'), 503, {}, { delivered: 'unknown' }],
];
const EXTRA = ['retry-after', 'x-instance-id', 'allow', 'www-authenticate'];

for (const [index, [error, status, headers = {}, fields = {}]] of ROWS.entries())
  test(`answer ${String(error)} (${index}) with ${status} and its headers`, async () => {
    const answer = await answerTo(error);
    assert.equal([answer.status, answer.headers.get('content-type')], [status, 'application/json']);
    const sent = EXTRA.flatMap((name) =>
      answer.headers.has(name) ? [[name, answer.headers.get(name)]] : [],
    );
    assert.equal(Object.fromEntries(sent), headers);
    assert.equal([answer.body.error_code, answer.body.request_id], [Object(error).code, 'r1']);
    for (const [name, value] of Object.entries(fields)) assert.equal(answer.body[name], value, name);
    assert.ok(isErrorBody.Check(answer.body));
    assert.not.match(answer.text, /secret/);
    assert.equal(answer.logged, []);
  });

test('answer no other request than a GET like a stream of HTTP+SSE that is opened again', async () => {
  const sent = { 'last-event-id': `${'x'.repeat(51)}.0` };
  for (const [method, status] of [
    ['GET', 200],
    ['POST', 429],
    ['DELETE', 429],
  ] as const)
    assert.is((await answerTo(tooManyAttempts(7), errors, method, sent)).status, status, method);
});

test('answer an unknown error as INTERNAL_ERROR without details, and log it with the request id', async () => {
  for (const thrown of [secret, 'a secret', undefined]) {
    const { status, body, logged } = await answerTo(thrown);
    const detail = 'Internal error of the gateway.';
    assert.equal([status, body], [500, { detail, error_code: 'INTERNAL_ERROR', request_id: 'r1' }]);
    assert.equal([logged.length, logged[0]?.request_id], [1, 'r1']);
    if (thrown !== undefined) assert.match(JSON.stringify(logged[0]?.err), /a secret/);
  }
  const { status, text, logged } = await answerTo(secret, rpc);
  assert.equal([status, logged[0]?.request_id], [500, 'r1']);
  assert.not.match(text, /secret/);
  assert.match(JSON.stringify(logged), 'a secret');
});

test('give requests ids that do not show how many there are', async () => {
  const app = await startMiddlewares(errors(pino(lineSink([]))), () => {
    throw refused;
  });
  const ids: string[] = [];
  for (let count = 0; count < 20; count += 1)
    ids.push(String((await app.ask('POST', '/')).headers.get('x-request-id')));
  app.close();
  assert.is(new Set(ids).size, ids.length);
  for (const id of ids) assert.match(id, /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/);
  const numbers = ids.map((id) => Number.parseInt(id.slice(-12), 16));
  const steps = numbers.slice(1).map((number, at) => Math.abs(number - (numbers[at] ?? 0)));
  assert.ok(Math.min(...steps) > 1_000, `${steps}`);
});

test('show paths of the machine only to callers with gateway:write', () => {
  const path = 'there is no program "/srv/private/serve"';
  const failed = backendUnavailable(path, { delivered: 'no' });
  const having = (...scopes: Scope[]): Principal => ({ ...ANONYMOUS, scopes: new Set(scopes) });
  for (const [error, plain] of [
    [noHealthyInstance('demo', path), NOBODY],
    [failed, 'The backend is unavailable.'],
    [atInstance(failed, 'one'), 'The backend is unavailable.'],
    [openingFailed(failed, [path]), 'The backend is unavailable.'],
  ] as const) {
    assert.is(errorBody(error, 'r1', having('gateway:read', 'tools:call')).detail, plain);
    assert.is(errorBody(error, 'r1').detail, plain);
    assert.match(String(errorBody(error, 'r1', having('gateway:write')).detail), path);
  }
});

test('answer over JSON-RPC with a message, its status and its headers', async () => {
  const { headers, ...answer } = await answerTo(sessionNotFound(), rpc);
  const message = 'Session not found. Initialize again.';
  const error = { code: -32_001, message, data: { error_code: 'SESSION_NOT_FOUND' } };
  assert.equal([answer.status, answer.body], [404, { jsonrpc: '2.0', id: null, error }]);
  assert.equal([headers.get('content-type'), headers.get('x-request-id')], ['application/json', 'r1']);
  assert.equal([headers.get('retry-after'), answer.logged], [null, []]);
  const failure = new RpcFailure(
    405,
    { code: -32_000, message: 'Not here' },
    { id: 7, headers: ['Allow', 'POST'] },
  );
  for (const [thrown, status, name, value, id] of [
    [failure, 405, 'allow', 'POST', 7],
    [rateLimitExceeded(5, 99), 429, 'retry-after', '99', null],
    [atInstance(lost, 'one'), 503, 'x-instance-id', 'one', null],
    [atInstance(lost, 'one'), 503, 'retry-after', null, null],
    [payloadTooLarge(1), 413, 'retry-after', null, null],
  ] as const) {
    const other = await answerTo(thrown, rpc);
    assert.equal([other.status, other.headers.get(name), other.body.id], [status, value, id], name);
  }
});

for (const [name, exit] of Object.entries({ errors, rpc }))
  test(`${name}: close the connection after half an answer, and write nothing to a disconnected client`, async () => {
    const logged: Json[] = [];
    let passed: unknown;
    const app = await startMiddlewares(
      async (context, next) => {
        passed = await Promise.resolve(next()).catch((thrown: unknown) => thrown);
        if (context.path === '/gone') context.res.destroy();
      },
      exit(pino(lineSink(logged))),
      (context) => {
        if (context.path === '/gone') throw new ClientGone();
        context.res.writeHead(200, { 'Content-Length': '100' });
        context.res.write('half');
        throw new Error('too late');
      },
    );
    for (const [path, end] of [
      ['/half', /half$/],
      ['/gone', /^$/],
    ] as const) {
      logged.length = 0;
      const socket = await openRaw(app.port);
      socket.write(head(`POST ${path}`));
      assert.match(await readAll(socket), end);
    }
    assert.equal(logged, []);
    assert.ok(name === 'errors' ? passed === undefined : passed instanceof ClientGone);
    app.close();
  });

test('when the answer to an error fails, the connection is closed and both errors are logged', async () => {
  const logged: Json[] = [];
  const app = await startMiddlewares(errors(pino(lineSink(logged))), async ({ res }) => {
    res.writeHead = () => {
      throw new Error('no answer');
    };
    throw secret;
  });
  const refusal = await app.ask('POST', '/').catch((thrown: unknown) => thrown);
  app.close();
  assert.instance(refusal, Error);
  const messages = logged.map(({ err }) => Object(err).message);
  assert.equal(messages, ['Internal error of the gateway.: a secret', 'no answer']);
});

test.run();
