import * as assert from 'uvu/assert';
import { GatewayError } from '../../src/domain/errors.ts';
import {
  aFunction,
  arrayOf,
  type Check,
  checkMembers,
  has,
  membersOf,
  milliseconds,
  observable,
  oneOf,
  wholeNumber,
} from '../../src/gateway/checked-options.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('options as tables');

const TABLE = membersOf<{ waitMs: number; inner: object }>({
  waitMs: milliseconds(0, 10),
  inner: membersOf<{ word: string }>({ word: oneOf(['a', 'b']) }),
});

function issues(value: unknown): readonly string[] {
  try {
    checkMembers(TABLE, value, 'It');
    return [];
  } catch (thrown) {
    if (!(thrown instanceof GatewayError)) throw thrown;
    assert.match(thrown.message, /^It is not valid: /);
    return (thrown.facts.items ?? []).map(({ loc, msg }) => `${loc.join('.')}: ${msg}`);
  }
}

test('takes what is in them, and what is missing or undefined', () => {
  for (const value of [{}, { waitMs: 5, inner: { word: 'a' } }, { waitMs: undefined, inner: {} }])
    assert.equal(issues(value), []);
});

test('names each option that cannot be used, or is none', () => {
  assert.equal(issues({ waitMs: 11, inner: { word: 'planted' }, wait: 1 }), [
    'options.waitMs: expected milliseconds from 0 to 10',
    'options.inner.word: expected one of a, b',
    'options.wait: there is no such option; "waitMs" is the nearest',
  ]);
  for (const value of [undefined, null, 'x'])
    assert.equal(issues(value), ['options: expected an object with the options waitMs, inner']);
  assert.equal(issues({ inner: 5 }), ['options.inner: expected an object with the options word']);
});

test('has checks that take what they say', () => {
  const table: readonly (readonly [check: Check, good: readonly unknown[], bad: readonly unknown[]])[] = [
    [oneOf(['a']), ['a'], ['b', 5, ['a']]],
    [milliseconds(1, 2), [1, 1.5, 2], [0, 3, Number.NaN, '1']],
    [wholeNumber(1, 2), [1, 2], [1.5, 0, '1', Number.NaN]],
    [arrayOf('names', (name) => name !== ''), [[], ['a']], [[''], 'a', [5]]],
    [observable(), [{ subscribe: () => {} }], [{}, null]],
    [aFunction(), [() => {}], [{}, 'x']],
  ];
  for (const [check, good, bad] of table) {
    assert.equal(
      good.map(check.accepts),
      good.map(() => true),
      check.expected,
    );
    assert.equal(
      bad.map(check.accepts),
      bad.map(() => false),
      check.expected,
    );
  }
  assert.is(has({ close: () => {} }, 'close'), true);
});

test.run();
