// What a client declared: who may be asked something, and when two declared the same.

import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { capabilitiesKey, mayBeAsked } from '../../src/domain/client.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('client');

test('may be asked by a server when it declared one of three capabilities', () => {
  for (const name of ['sampling', 'elicitation', 'roots'])
    assert.is(mayBeAsked({ capabilities: { [name]: {} } }), true, name);
  for (const capabilities of [{}, { experimental: {} }, { tasks: {}, extensions: {} }])
    assert.is(mayBeAsked({ capabilities }), false);
});

test('writes equal capabilities as equal texts, whatever the order of their keys', () => {
  assert.is(
    capabilitiesKey({ roots: { listChanged: true }, sampling: {} }),
    capabilitiesKey({ sampling: {}, roots: { listChanged: true } }),
  );
});

test('writes different ones as different texts', () => {
  const all = [
    {},
    { a: {} },
    { a: [] },
    { a: null },
    { a: 'b' },
    { a: '{}' },
    { 'a:{}': {} },
    { a: [1, 2] },
    { a: [2, 1] },
    { a: { b: {} } },
  ];
  assert.is(new Set(all.map(capabilitiesKey)).size, all.length);
});

test('is JSON of the same value', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const json = JSON.parse(JSON.stringify(value));
      assert.equal(JSON.parse(capabilitiesKey(json)), json);
    }),
  );
});

test.run();
