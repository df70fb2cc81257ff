// Invalid names in paths are answered like unknown names; values of queries are parsed to the types of their route.

import Type from 'typebox';
import * as assert from 'uvu/assert';
import { GatewayError } from '../../src/domain/errors/errors.ts';
import { ROUTES } from '../../src/http/routes/index.ts';
import { queryReader } from '../../src/http/routing/route-params.ts';
import { jsonRequest, sendRaw } from '../helpers/clients/raw-http.ts';
import { appFor, startApp } from '../helpers/http/app.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('parameters of paths and queries');
const read = queryReader(Type.Object({ wait: Type.Integer(), all: Type.Boolean(), name: Type.String() }));

test('values of a query are parsed to the types of the route; a value that does not parse stays a string, for validation to refuse', () => {
  for (const [raw, query] of [
    ['wait=5&all=True&name=5', { wait: 5, all: true, name: '5' }],
    ['wait=-3&all=0', { wait: -3, all: false }],
    ['all=yes', { all: 'yes' }],
    ['name=a&name=b', { name: 'b' }],
    ['name=%zz&%', { name: '%zz', '%': '' }],
    ['name=%ED%95%9C', { name: '한' }],
    ['', {}],
  ] as const)
    assert.equal(read(raw), query, raw);
  for (const wait of ['', '5.5', 'x', ' 5', '5x', '0x10', '1e3', '99999999999999999999'])
    assert.equal(read(`wait=${encodeURIComponent(wait)}`), { wait });
  assert.equal(queryReader(undefined)(''), {});
});

test('queries treat __proto__ and constructor as ordinary fields', () => {
  const query = read('__proto__=x&constructor=y');
  assert.is(Object.getPrototypeOf(query), Object.prototype);
  assert.equal(Object.keys(query), ['__proto__', 'constructor']);
});

test('queries with a NUL character or an encoded surrogate in any field are refused', () => {
  for (const raw of ['name=a%00b', 'other=%00', '%00=x', 'name=%ED%A0%80', 'name=%ed%bf%bf'])
    assert.throws(
      () => read(raw),
      (thrown: unknown) =>
        thrown instanceof GatewayError && thrown.facts.items?.[0]?.type === 'string_unicode',
    );
});

test('queries with an unknown field are refused on every route except the MCP endpoint and /readyz', () => {
  // Clients and probes keep the URLs of these: they may have fields that the gateway does not read.
  const queries = ROUTES.flatMap(({ method, path, request: { query }, speaks }) =>
    query === undefined || speaks === 'json-rpc' || path === '/readyz'
      ? []
      : [[`${method} ${path}`, Reflect.get(query, 'additionalProperties')]],
  );
  assert.ok(queries.length >= 5);
  assert.equal(
    queries,
    queries.map(([route]) => [route, false]),
  );
});

const app = appFor(test, () => startApp());
test.before(() => app.serve('demo', 'one'));

const MISSED = [
  ...['..', '.', '%2e%2e', '%2E%2E%2Fetc', '..%2f..%2fetc', 'a%2Fb', '%2F', '-', '-a', '%', '%zz', '%c3%28'],
  ...['Upper', '1st', 'a_b', '__proto__', '%F0%9F%98%80', "';--"],
  ...['a'.repeat(129), 'x'.repeat(10_000), `${'a'.repeat(127)}%F0%9F%98%80`],
];
const REFUSED = ['a%00', '%ED%A0%80', '%00'];

/** The only route with a name and fields that it needs. */
const LINK = 'POST /auth/users/:user_id/link';

test('invalid names in the path get 404 or 422 on every route, and are not repeated at full length', async () => {
  for (const { method, path } of ROUTES)
    for (const [param] of path.matchAll(/:\w+/g))
      for (const name of [...MISSED, ...REFUSED]) {
        const names = path.replace(param, () => name).replace(':template', 'demo');
        const target = names.replace(':instance_id', 'one');
        const body = `${method} ${path}` === LINK ? '{"issuer":"https://a.example","subject":"a"}' : '{}';
        const request = jsonRequest(`${method} ${target}`, body, { Connection: 'close' });
        const answer = await sendRaw(app.port, request);
        const [status, code] = REFUSED.includes(name)
          ? [422, /"loc":\["path","\w+"\][^}]*"string_unicode"/]
          : method === 'PUT'
            ? [422, /"loc":\["path","\w+"\]/]
            : [404, param === ':template' ? /"TEMPLATE_NOT_FOUND"|"NOT_FOUND"/ : /"[A-Z_]*NOT_FOUND"/];
        const what = `${method} ${target.slice(0, 80)}`;
        assert.is(Number(answer.slice(9, 12)), status, what);
        assert.match(answer, code, what);
        assert.ok(answer.length < 2_000, what);
        assert.not.match(answer, /\\ud[89a-f]/i, `${what} is cut between two surrogates`);
      }
});

test('the template name "constructor" gets 404', async () => {
  assert.is((await app.ask('GET', '/mcp/constructor/health')).outcome, '404 TEMPLATE_NOT_FOUND');
});

test.run();
