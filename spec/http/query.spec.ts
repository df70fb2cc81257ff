import Type from 'typebox';
import * as assert from 'uvu/assert';
import { GatewayError } from '../../src/domain/errors.ts';
import { queryReader } from '../../src/http/parameters.ts';
import { ROUTES } from '../../src/http/routes/index.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('query strings');

const read = queryReader(
  Type.Object({
    wait: Type.Optional(Type.Integer()),
    share: Type.Optional(Type.Number()),
    all: Type.Optional(Type.Boolean()),
    name: Type.Optional(Type.String()),
  }),
);

test('become the types that the route declares', () => {
  assert.equal(read('wait=5&share=0.5&all=true&name=5'), { wait: 5, share: 0.5, all: true, name: '5' });
  assert.equal(read('wait=-3&all=0'), { wait: -3, all: false });
  assert.equal(read('all=Yes'), { all: true });
});

test('keep as text what does not parse, so that the check refuses it', () => {
  for (const text of ['', '5.5', 'x', ' 5', '5x', '0x10', '1e3', '99999999999999999999']) {
    assert.equal(read(`wait=${encodeURIComponent(text)}`), { wait: text });
  }
  assert.equal(read('share=.5'), { share: '.5' });
  assert.equal(read('all=maybe'), { all: 'maybe' });
});

test('count the last value of a repeated field', () => {
  assert.equal(read('name=a&name=b'), { name: 'b' });
});

test('know no prototype', () => {
  const query = read('__proto__=x&constructor=y');
  assert.is(Object.getPrototypeOf(query), Object.prototype);
  assert.equal(Object.keys(query), ['__proto__', 'constructor']);
});

test('are empty when there are none', () => {
  assert.equal(read(''), {});
  assert.equal(queryReader(undefined)(''), {});
});

test('survive broken percent-encoding', () => {
  assert.equal(read('name=%zz&%'), { name: '%zz', '%': '' });
});

test('are refused with NUL characters and encoded surrogates, in any field', () => {
  for (const raw of ['name=a%00b', 'other=%00', '%00=x', 'name=%ED%A0%80', 'name=%ed%bf%bf']) {
    try {
      read(raw);
      assert.unreachable(raw);
    } catch (thrown) {
      assert.instance(thrown, GatewayError);
      assert.is(thrown instanceof GatewayError && thrown.facts.items?.[0]?.type, 'string_unicode');
    }
  }
  assert.equal(read('name=%ED%95%9C'), { name: '한' });
});

test('is closed on every route that reads one: a misspelt field is a mistake and not ignored', () => {
  // The MCP endpoint is reached by URLs that clients keep: they may say more than the gateway reads.
  const queries = ROUTES.flatMap(({ method, path, request, speaks }) =>
    request.query === undefined || speaks === 'json-rpc'
      ? []
      : [[`${method} ${path}`, Reflect.get(request.query, 'additionalProperties')]],
  );
  assert.ok(queries.length >= 5);
  assert.equal(
    queries,
    queries.map(([route]) => [route, false]),
  );
});

test.run();
