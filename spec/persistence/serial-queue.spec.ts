// The line for one.

import * as assert from 'uvu/assert';
import { SerialQueue } from '../../src/persistence/orm-session.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('turns');

test('runs one after the other in the order of asking, also after failures', async () => {
  const turns = new SerialQueue();
  const log: string[] = [];
  const work =
    (name: string, fails = false) =>
    async () => {
      log.push(`${name} starts`);
      for (let left = 3; left > 0; left -= 1) await Promise.resolve();
      log.push(`${name} ends`);
      if (fails) throw new Error(name);
      return name;
    };
  const outcomes = await Promise.allSettled([
    turns.take(work('one')),
    turns.take(work('two', true)),
    turns.take(work('three')),
  ]);
  assert.equal(
    outcomes.map((outcome) => (outcome.status === 'fulfilled' ? outcome.value : outcome.reason.message)),
    ['one', 'two', 'three'],
  );
  assert.equal(log, ['one starts', 'one ends', 'two starts', 'two ends', 'three starts', 'three ends']);
});

test.run();
