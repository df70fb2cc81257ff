import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { comesSooner } from '../../src/balancing/turn.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('turn');

/** The ids in the order in which they get their turn after `last`. */
function order(ids: readonly string[], last: string): string[] {
  return [...ids].sort((first, second) => {
    if (first === second) return 0;
    return comesSooner(first, second, last) ? -1 : 1;
  });
}

test('starts with the smallest id when nobody had a turn yet', () => {
  assert.equal(order(['c', 'a', 'b'], ''), ['a', 'b', 'c']);
});

test('goes on after the last one and puts it at the end', () => {
  assert.equal(order(['a', 'b', 'c', 'd'], 'b'), ['c', 'd', 'a', 'b']);
});

test('goes on from the place of one that has left', () => {
  assert.equal(order(['a', 'c', 'd'], 'b'), ['c', 'd', 'a']);
});

test('starts over after the greatest id', () => {
  assert.equal(order(['a', 'b', 'c'], 'c'), ['a', 'b', 'c']);
});

test('puts any two different ids in one order and never in both', () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), fc.string(), (first, second, last) => {
      fc.pre(first !== second);
      assert.is(comesSooner(first, second, last), !comesSooner(second, first, last));
    }),
    { seed: 7 },
  );
});

test('never puts an id before itself', () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), (id, last) => {
      assert.is(comesSooner(id, id, last), false);
    }),
    { seed: 7 },
  );
});

test.run();
