import * as assert from 'uvu/assert';
import {
  aFunction,
  arrayOf,
  type Check,
  has,
  milliseconds,
  observable,
  oneOf,
  wholeNumber,
} from '../../src/gateway/checked-options.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('options as tables');

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
