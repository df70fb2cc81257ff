import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { WindowCounter } from '../../src/auth/window-counter.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('counting in windows');

test.before.each(() => mock.timers.enable({ apis: ['Date', 'setTimeout'], now: 1_000_000 }));
test.after.each(() => mock.timers.reset());

test('a window starts with the first count and ends for all of its counts at once', async () => {
  const counter = new WindowCounter({ windowSeconds: 60, keys: 10 });
  assert.equal(await counter.add('a'), { count: 1, endsInMs: 60_000 });
  mock.timers.tick(59_999);
  assert.equal(await counter.add('a'), { count: 2, endsInMs: 1 });
  assert.equal(await counter.add('b'), { count: 1, endsInMs: 60_000 });
  mock.timers.tick(1);
  assert.equal(await counter.add('a'), { count: 1, endsInMs: 60_000 });
});

test('a count can be taken back', async () => {
  const counter = new WindowCounter({ windowSeconds: 60, keys: 10 });
  for (let count = 0; count < 3; count += 1) await counter.add('a');
  await counter.remove('a');
  assert.is((await counter.add('a')).count, 3);
});

test('the key that was counted longest ago is forgotten beyond the bound', async () => {
  const counter = new WindowCounter({ windowSeconds: 60, keys: 3 });
  for (const key of ['a', 'b', 'c', 'a', 'd']) await counter.add(key);
  assert.is((await counter.add('a')).count, 3);
  assert.is((await counter.add('c')).count, 2);
  assert.is((await counter.add('b')).count, 1, 'forgotten');
  assert.is((await counter.add('d')).count, 1, 'forgotten for b');
});

test.run();
