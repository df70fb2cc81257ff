import * as assert from 'uvu/assert';
import { ROUTES } from '../../src/http/routes/index.ts';
import { appFor, startApp } from '../helpers/http-app.ts';
import { head, sendRaw } from '../helpers/http-raw.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('names in paths');
const app = appFor(test, () => startApp());
test.before(() => app.serve('demo', 'one'));

const MISSED = [
  ...['..', '.', '%2e%2e', '%2E%2E%2Fetc', '..%2f..%2fetc', 'a%2Fb', '%2F', '-', '-a', '%', '%zz', '%c3%28'],
  ...['Upper', '1st', 'a_b', '__proto__', '%F0%9F%98%80', "';--"],
  ...['a'.repeat(129), 'x'.repeat(10_000)],
];
const REFUSED = ['a%00', '%ED%A0%80', '%00'];

test('of every route are missed with 404 or refused with 422, whatever they are, and not repeated without end', async () => {
  const { port } = app;
  const body = '{}';
  const json = { 'Content-Type': 'application/json', 'Content-Length': String(body.length) };
  for (const { method, path } of ROUTES)
    for (const [param] of path.matchAll(/:\w+/g))
      for (const name of [...MISSED, ...REFUSED]) {
        const names = path.replace(param, () => name).replace(':template', 'demo');
        const target = names.replace(':instance_id', 'one');
        const answer = await sendRaw(
          port,
          head(`${method} ${target}`, { Connection: 'close', ...json }),
          body,
        );
        const [status, code] = REFUSED.includes(name)
          ? [422, /"loc":\["path","\w+"\][^}]*"string_unicode"/]
          : [404, param === ':template' ? /"TEMPLATE_NOT_FOUND"|"NOT_FOUND"/ : /"[A-Z_]*NOT_FOUND"/];
        const what = `${method} ${target.slice(0, 80)}`;
        assert.is(Number(answer.slice(9, 12)), status, what);
        assert.match(answer, code, what);
        assert.ok(answer.length < 2_000, what);
      }
});

test('are no properties of objects, and queries are held to the same rule', async () => {
  const { ask } = app;
  assert.is((await ask('GET', '/mcp/constructor/health')).body.error_code, 'TEMPLATE_NOT_FOUND');
  const { status, text } = await ask('GET', '/mcp/demo/health?format=%00');
  assert.is(status, 422);
  assert.match(text, /"string_unicode"/);
});

test.run();
