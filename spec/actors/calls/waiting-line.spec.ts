// The line: first come, first served, bounded in length and in time. Time is simulated.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { WaitingLine } from '../../../src/actors/calls/waiting-line.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('waiting line');
let line = new WaitingLine();
let heard: string[] = [];

test.before.each(() => {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
  line = new WaitingLine();
  heard = [];
});
test.after.each(() => mock.timers.reset());

test('lets the first in line try when a place became free', () => {
  taker('a');
  taker('b');
  assert.is(line.advance(), true);
  assert.equal([heard, line.length], [['a'], 1]);
});

test('says that nobody took the place when nobody waits', () => {
  assert.is(line.advance(), false);
});

test('goes on to the next when the first cannot use the place, and keeps its turn', () => {
  refuser('a');
  taker('b');
  taker('c');
  line.advance();
  assert.equal([heard, line.length], [['a', 'b'], 2]);
  line.advance();
  assert.equal([heard, line.length], [['a', 'b', 'a', 'c'], 1]);
});

test('asks everybody once when nobody can use the place', () => {
  for (const name of ['a', 'b', 'c']) refuser(name);
  assert.is(line.advance(), false);
  assert.equal([heard, line.length], [['a', 'b', 'c'], 3]);
});

test('lets everybody try when who can serve has changed', () => {
  taker('a');
  refuser('b');
  taker('c');
  line.reconsider();
  assert.equal([heard, line.length], [['a', 'b', 'c'], 1]);
});

test('does not call somebody who left while the others tried', () => {
  const leave: (() => void)[] = [];
  join('a', () => {
    leave[0]?.();
    return false;
  });
  leave.push(join('b', () => true));
  line.reconsider();
  assert.equal([heard, line.length], [['a'], 1]);
});

test('takes no more than the longest line', () => {
  const go = () => true;
  const giveUp = () => {};
  assert.type(line.join(2, go, giveUp), 'function');
  assert.type(line.join(2, go, giveUp), 'function');
  assert.is(line.join(2, go, giveUp), undefined);
  assert.is(line.length, 2);
});

test('gives up after 5 s, each in its own time', () => {
  refuser('a');
  mock.timers.tick(1_000);
  refuser('b');
  mock.timers.tick(LIMITS.queueWaitMs - 1_000);
  assert.equal([heard, line.length], [['a gave up'], 1]);
  mock.timers.tick(1_000);
  assert.equal([heard, line.length], [['a gave up', 'b gave up'], 0]);
});

test('gives 5 s in all to somebody who tried in vain', () => {
  refuser('a');
  mock.timers.tick(LIMITS.queueWaitMs - 1);
  line.advance();
  mock.timers.tick(1);
  assert.equal(heard, ['a', 'a gave up']);
});

test('forgets who left, and its timer', () => {
  const leave = taker('a');
  leave();
  leave();
  mock.timers.tick(LIMITS.queueWaitMs);
  assert.is(line.advance(), false);
  assert.equal([heard, line.length], [[], 0]);
});

test('does not give up on somebody who took a place', () => {
  taker('a');
  line.advance();
  mock.timers.tick(LIMITS.queueWaitMs);
  assert.equal(heard, ['a']);
});

test('can be joined and advanced while it advances', () => {
  join('a', () => {
    if (heard.length > 1) return false;
    taker('late');
    return line.advance();
  });
  assert.is(line.advance(), true);
  assert.equal([heard, line.length], [['a', 'a', 'late'], 1]);
});

test.run();

function join(name: string, go: () => boolean): () => void {
  const leave = line.join(
    100,
    () => {
      heard.push(name);
      return go();
    },
    () => heard.push(`${name} gave up`),
  );
  assert.ok(leave);
  return leave ?? (() => {});
}

/** Takes the place and leaves the line, as calls do when they are sent. */
function taker(name: string): () => void {
  const leave = join(name, () => {
    leave();
    return true;
  });
  return leave;
}

/** Cannot use what is free. */
function refuser(name: string): void {
  join(name, () => false);
}
