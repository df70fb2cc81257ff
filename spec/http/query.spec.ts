import Type from 'typebox';
import * as assert from 'uvu/assert';
import { GatewayError } from '../../src/domain/errors.ts';
import { queryReader } from '../../src/http/parameters.ts';
import { ROUTES } from '../../src/http/routes/index.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('query strings');
const read = queryReader(
  Type.Object({ wait: Type.Integer(), share: Type.Number(), all: Type.Boolean(), name: Type.String() }),
);

test('become the types that the route declares; what does not parse stays a text, so that the check refuses it', () => {
  for (const [raw, query] of [
    ['wait=5&share=0.5&all=true&name=5', { wait: 5, share: 0.5, all: true, name: '5' }],
    ['wait=-3&all=0', { wait: -3, all: false }],
    ['all=Yes', { all: true }],
    ['share=.5&all=maybe', { share: '.5', all: 'maybe' }],
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

test('know no prototype', () => {
  const query = read('__proto__=x&constructor=y');
  assert.is(Object.getPrototypeOf(query), Object.prototype);
  assert.equal(Object.keys(query), ['__proto__', 'constructor']);
});

test('are refused with NUL characters and encoded surrogates, in any field', () => {
  for (const raw of ['name=a%00b', 'other=%00', '%00=x', 'name=%ED%A0%80', 'name=%ed%bf%bf'])
    assert.throws(
      () => read(raw),
      (thrown: unknown) =>
        thrown instanceof GatewayError && thrown.facts.items?.[0]?.type === 'string_unicode',
    );
});

test('are closed on every route that reads one: a misspelt field is a mistake and not ignored', () => {
  // The MCP endpoint is reached by URLs that clients keep: they may say more than the gateway reads.
  const queries = ROUTES.flatMap(({ method, path, request: { query }, speaks }) =>
    query === undefined || speaks === 'json-rpc'
      ? []
      : [[`${method} ${path}`, Reflect.get(query, 'additionalProperties')]],
  );
  assert.ok(queries.length >= 5);
  assert.equal(
    queries,
    queries.map(([route]) => [route, false]),
  );
});

test.run();
