import * as assert from 'uvu/assert';
import { HeldBytes, type Holding } from '../../src/domain/held-bytes.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('held bytes');

/** A budget of 100 bytes, 60 per owner, with a clock that the spec moves. */
function budget() {
  let nowMs = 0;
  const held = new HeldBytes({ totalBytes: 100, ownerBytes: 60 }, () => nowMs);
  const cut: string[] = [];
  const hold = (name: string, bytes: number): Holding => {
    const holding = held.hold(name.slice(0, 1), () => cut.push(name));
    holding.set(bytes);
    return holding;
  };
  const pass = (ms: number): void => {
    nowMs += ms;
  };
  return { held, cut, hold, pass };
}

test('over the bound of an owner cut what has held the most for the longest, of that owner', () => {
  const { held, cut, hold, pass } = budget();
  hold('b1', 30);
  hold('a-slow', 20);
  pass(1_000);
  hold('a-large', 35);
  const growing = hold('a-growing', 5);
  assert.ok(growing.set(10));
  assert.equal(cut, ['a-slow']);
  assert.is(held.bytes, 75);
});

test('over the total cut the owner that holds the most, whoever asks', () => {
  const { held, cut, hold } = budget();
  hold('a1', 50);
  hold('b1', 45);
  hold('c1', 30);
  assert.equal(cut, ['a1']);
  assert.is(held.bytes, 75);
});

test('cut what asks when it is the worst, and tell it so, then and later', () => {
  const { held, cut, hold } = budget();
  const holding = hold('a1', 40);
  assert.not(holding.set(61));
  assert.not(holding.set(10));
  assert.equal(cut, ['a1']);
  assert.is(held.bytes, 0);
});

test('are given back once', () => {
  const { held, hold } = budget();
  const holding = hold('a1', 40);
  holding.set(20);
  assert.is(held.bytes, 20);
  holding.release();
  holding.release();
  assert.is(held.bytes, 0);
});

test('press an owner that is near its bound, and when all are near theirs the owners that hold anything', () => {
  const { held, hold } = budget();
  hold('a1', 40);
  assert.not(held.isPressed('a'));
  const more = hold('a2', 10);
  assert.ok(held.isPressed('a'));
  assert.not(held.isPressed('b'));
  hold('b1', 30);
  more.release();
  hold('a3', 8);
  assert.ok(held.of('b').refuses('tools/call'));
  assert.not(held.of('b').refuses('ping'));
  assert.not(held.isPressed('c'));
});

test.run();
