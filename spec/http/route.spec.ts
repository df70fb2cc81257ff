import { NEVER } from 'rxjs';
import Type from 'typebox';
import * as assert from 'uvu/assert';
import { ANONYMOUS } from '../../src/domain/account.ts';
import { GatewayError } from '../../src/domain/errors.ts';
import { createGateway } from '../../src/gateway.ts';
import { ConsoleFiles } from '../../src/http/docs/console.ts';
import { createDocuments } from '../../src/http/docs/documents.ts';
import { TemplateParams } from '../../src/http/parameters.ts';
import { createProxies } from '../../src/http/proxies.ts';
import { json } from '../../src/http/reply.ts';
import { HttpRequest } from '../../src/http/request.ts';
import { respond } from '../../src/http/respond.ts';
import { defineRoute, type RawInput, type Route } from '../../src/http/route.ts';
import { RecentEvents } from '../../src/http/sse/recent-events.ts';
import { Prometheus } from '../../src/metrics/prometheus.ts';
import { Samples } from '../../src/metrics/samples.ts';
import { anonymousAuth } from '../helpers/anonymous-auth.ts';
import { fakeMcp } from '../helpers/fake-mcp.ts';
import { startMiddlewares } from '../helpers/http-middlewares.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('a route');
const gateway = createGateway();
test.after(async () => (await gateway).close());

const route = defineRoute({
  method: 'POST',
  path: '/x/:template',
  summary: 'A route of the spec',
  scope: 'gateway:write',
  request: {
    params: TemplateParams,
    query: Type.Object({ wait: Type.Optional(Type.Integer()) }),
    body: Type.Object({ name: Type.String() }),
  },
  answers: { 200: { description: 'What came in' } },
  errors: ['TEMPLATE_NOT_FOUND'],
  // The types of all three come from the schemas.
  handler: ({ params, query, body, request, principal }, { build }) =>
    json(200, {
      ...{ template: params.template, wait: query.wait ?? 0, name: body.name },
      ...{ id: request.id, who: principal.id, build },
    }),
});

/** Runs a route inside a real request and returns what it replied or threw. */
async function run(subject: Route, raw: Partial<RawInput>): Promise<unknown> {
  const services = {
    ...{
      gateway: await gateway,
      auth: anonymousAuth(),
      documents: createDocuments(async () => ({})),
      build: '1.2.3',
    },
    ...{ mcp: fakeMcp(), allowedCommands: [], definitions: new Map(), events: new RecentEvents(NEVER) },
    log: { level: 'info' },
    consoleFiles: new ConsoleFiles(),
    settings: [],
    samples: new Samples(await gateway),
    metrics: new Prometheus(await gateway, '1.2.3'),
  };
  let outcome: unknown;
  const app = await startMiddlewares(async (context) => {
    const request = new HttpRequest(context, createProxies([]));
    try {
      const input = { params: {}, query: '', body: undefined, principal: ANONYMOUS, ...raw, request };
      outcome = await subject.run(input, services);
    } catch (thrown) {
      outcome = thrown;
    }
    respond(context, json(200, {}));
  });
  await app.ask('GET', '/', { headers: { 'x-request-id': 'r1' } });
  app.close();
  return outcome;
}

test('gives its handler what was checked, with the types it declared', async () => {
  const reply = await run(route, { params: { template: 'demo' }, query: 'wait=5', body: { name: 'x' } });
  assert.equal(
    reply,
    json(200, { template: 'demo', wait: 5, name: 'x', id: 'r1', who: 'anonymous', build: '1.2.3' }),
  );
});

test('refuses a bad name before anything else', async () => {
  const thrown = await run(route, { params: { template: 'Bad' }, query: 'wait=x', body: null });
  assert.is(thrown instanceof GatewayError && thrown.code, 'TEMPLATE_NOT_FOUND');
});

test('tells what is wrong with query and body together', async () => {
  const thrown = await run(route, { params: { template: 'demo' }, query: 'wait=x', body: {} });
  assert.instance(thrown, GatewayError);
  const items = thrown instanceof GatewayError ? thrown.facts.items : [];
  assert.equal(
    items?.map(({ loc, type }) => [...loc, type]),
    [
      ['query', 'wait', 'int_parsing'],
      ['body', 'name', 'missing'],
    ],
  );
});

test('keeps its facts as data and knows all of its errors', () => {
  const { method, path, scope, request } = route;
  assert.equal([method, path, scope], ['POST', '/x/:template', 'gateway:write']);
  assert.is(request.params, TemplateParams);
  assert.equal(route.errors, [
    'TEMPLATE_NOT_FOUND',
    'MALFORMED_JSON',
    'PAYLOAD_TOO_LARGE',
    'UNSUPPORTED_MEDIA_TYPE',
    'QUEUE_FULL',
    'AUTHENTICATION_REQUIRED',
    'INVALID_CREDENTIALS',
    'TOKEN_EXPIRED',
    'INSUFFICIENT_PERMISSIONS',
    'RATE_LIMIT_EXCEEDED',
    'DATABASE_UNAVAILABLE',
    'NO_HEALTHY_INSTANCE',
    'ORIGIN_NOT_ALLOWED',
    'VALIDATION_ERROR',
    'INTERNAL_ERROR',
  ]);
});

test('hands bytes on unread where it speaks JSON-RPC, and leaves errors of bodies and counts to its handler', async () => {
  const rpc = defineRoute({
    method: 'POST',
    path: '/x/:template',
    summary: 'A route of the spec',
    scope: 'tools:call',
    speaks: 'json-rpc',
    request: { params: TemplateParams, body: Type.Unsafe<Uint8Array>(Type.Object({ a: Type.Integer() })) },
    answers: {},
    errors: [],
    handler: ({ body }) => json(200, body.byteLength),
  });
  assert.equal(await run(rpc, { params: { template: 'demo' }, body: Buffer.from('[') }), json(200, 1));
  for (const code of ['MALFORMED_JSON', 'PAYLOAD_TOO_LARGE', 'RATE_LIMIT_EXCEEDED'] as const) {
    assert.not(rpc.errors.includes(code), code);
  }
  assert.ok(rpc.errors.includes('AUTHENTICATION_REQUIRED'));
});

test('checks its path apart from the rest', () => {
  assert.is(route.checkPath({ template: 'demo' }), undefined);
  assert.throws(() => route.checkPath({ template: 'Bad' }), /No template named "Bad"/);
  assert.throws(
    () => route.checkPath({ template: '%00' }),
    (thrown: unknown) => {
      return thrown instanceof GatewayError && thrown.code === 'VALIDATION_ERROR';
    },
  );
});

test('checks nothing that it does not declare', async () => {
  const plain = defineRoute({
    method: 'GET',
    path: '/plain',
    summary: 'Takes anything',
    scope: 'open',
    answers: {},
    errors: [],
    handler: ({ body }) => json(200, { body }),
  });
  assert.equal(await run(plain, { query: 'a=b', body: [1] }), json(200, { body: [1] }));
  assert.not(plain.errors.includes('MALFORMED_JSON'));
  assert.not(plain.errors.includes('AUTHENTICATION_REQUIRED'));
});

test.run();
