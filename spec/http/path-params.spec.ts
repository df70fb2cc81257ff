import * as assert from 'uvu/assert';
import { compileShape } from '../../src/domain/validation.ts';
import { InstanceParams, pathRefused } from '../../src/http/parameters.ts';
import { ROUTES } from '../../src/http/routes/index.ts';
import { startApp } from '../helpers/http-app.ts';
import { head, sendRaw } from '../helpers/http-raw.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('names in paths');
const shape = compileShape(InstanceParams, 'path');
const started = startApp();
test.after(async () => (await started).close());

test('that cannot be names are not found, the first of them first', () => {
  assert.is(pathRefused({ template: 'Bad', instance_id: '-' }, shape).code, 'TEMPLATE_NOT_FOUND');
  assert.is(pathRefused({ template: 'good', instance_id: '-' }, shape).code, 'SERVER_NOT_FOUND');
});

test('that hold what no text may hold are refused', () => {
  for (const bad of ['a\0', '\ud800', '%ED%A0%80']) {
    const { code, facts } = pathRefused({ template: 'good', instance_id: bad }, shape);
    assert.is(code, 'VALIDATION_ERROR');
    assert.equal(facts.items?.[0]?.loc, ['path', 'instance_id']);
  }
});

test('are not repeated without end', () => {
  assert.ok(pathRefused({ template: 'X'.repeat(10_000), instance_id: 'a' }, shape).message.length < 300);
});

// Over the wire: what the router makes of percent-encoding.
for (const [path, status] of [
  ['/mcp/Upper/health', 404],
  ['/mcp/1st/health', 404],
  ['/mcp/a_b/health', 404],
  ['/mcp/a%2Fb/health', 404],
  ['/mcp/..%2f..%2fetc/health', 404],
  ['/mcp/%/health', 404],
  ['/mcp/%zz/health', 404],
  ['/mcp/%c3%28/health', 404],
  ['/mcp/%F0%9F%98%80/health', 404],
  ['/mcp/constructor/health', 404],
  ['/mcp/__proto__/health', 404],
  [`/mcp/${'a'.repeat(129)}/health`, 404],
  ['/mcp/a%00/health', 422],
  ['/mcp/%ED%A0%80/health', 422],
  ['/mcp/demo/health?format=%00', 422],
] as const) {
  test(`${path.slice(0, 40)} is ${status}`, async () => {
    const answer = await sendRaw((await started).port, head(`GET ${path}`, { Connection: 'close' }));
    assert.is(Number(answer.slice(9, 12)), status);
    assert.match(answer, status === 404 ? /"TEMPLATE_NOT_FOUND"/ : /"string_unicode"/);
  });
}

test('of instances follow the same rules', async () => {
  const app = await started;
  await app.serve('demo', 'one');
  for (const [id, status] of [
    ['..', 404],
    ['-a', 404],
    ['nope', 404],
    ['a%00', 422],
  ] as const) {
    const answer = await sendRaw(
      app.port,
      head(`DELETE /gateway/deregister/demo/${id}`, { Connection: 'close' }),
    );
    assert.is(Number(answer.slice(9, 12)), status, id);
    assert.match(answer, status === 404 ? /"SERVER_NOT_FOUND"/ : /"string_unicode"/);
  }
});

const BAD_NAMES: readonly (readonly [name: string, status: number])[] = [
  ...['..', '.', '%2e%2e', '%2E%2E%2Fetc', 'a%2Fb', '%2F', '-', '%', '%zz', '%c3%28'].map(
    (n) => [n, 404] as const,
  ),
  ...['__proto__', 'x'.repeat(10_000), '%F0%9F%98%80', "';--"].map((n) => [n, 404] as const),
  ...['a%00', '%ED%A0%80', '%00'].map((n) => [n, 422] as const),
];

test('of every route are missed with 404 or refused with 422, whatever they are', async () => {
  const { port } = await started;
  for (const { method, path, params } of ROUTES.map((route) => ({
    ...route,
    params: [...route.path.matchAll(/:\w+/g)],
  }))) {
    for (const [param] of params) {
      for (const [name, status] of BAD_NAMES) {
        const target = path
          .replace(param, () => name)
          .replace(':template', 'demo')
          .replace(':instance_id', 'one');
        const body = '{}';
        const json = { 'Content-Type': 'application/json', 'Content-Length': String(body.length) };
        const answer = await sendRaw(
          port,
          head(`${method} ${target}`, { Connection: 'close', ...json }),
          body,
        );
        const what = `${method} ${target.slice(0, 80)}`;
        assert.is(Number(answer.slice(9, 12)), status, what);
        assert.match(answer, status === 404 ? /"[A-Z_]*NOT_FOUND"/ : /"string_unicode"/, what);
        assert.ok(answer.length < 2_000, what);
      }
    }
  }
});

test.run();
