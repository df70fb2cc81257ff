// Paths in a document, and what a schema has against a value, as lines for people.

import Type from 'typebox';
import { Compile } from 'typebox/compile';
import * as assert from 'uvu/assert';
import { issuesOf, pathTo } from '../../src/domain/validation-issues.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('findings');

test('writes paths the way people read them', () => {
  assert.is(pathTo('', 'servers'), 'servers');
  assert.is(pathTo('servers', 0), 'servers[0]');
  assert.is(pathTo('servers[0]', 'env_vars'), 'servers[0].env_vars');
  assert.is(pathTo('servers', 'my "server"'), 'servers["my \\"server\\""]');
});

test('names each fault once, with its path and never its value', () => {
  const names = Type.Record(Type.String({ pattern: '^[A-Z]+$' }), Type.String(), {
    additionalProperties: false,
  });
  const schema = Type.Object(
    { kind: Type.Enum(['a', 'b']), names, list: Type.Array(Type.Integer()) },
    { additionalProperties: false },
  );
  const failures = Compile(schema).Errors({
    kind: 's3cret',
    names: { A: 1, 'b/~': 'x' },
    list: [1, 's3cret'],
    more: 1,
  });
  const lines = issuesOf(failures, (field) => `here.${field}`);
  assert.equal(lines.toSorted(), [
    'here.kind: must be one of a, b',
    'here.list[1]: must be integer',
    'here.more: unknown field',
    'here.names.A: must be string',
    'here.names["b/~"]: is no valid name',
  ]);
});

test('names what is missing, at the top and below', () => {
  const schema = Type.Object({ a: Type.Object({ b: Type.String() }), c: Type.String() });
  assert.equal(issuesOf(Compile(schema).Errors({ a: {} })).toSorted(), ['a.b: is missing', 'c: is missing']);
  assert.equal(issuesOf(Compile(schema).Errors(7)), ['must be object']);
});

test.run();
