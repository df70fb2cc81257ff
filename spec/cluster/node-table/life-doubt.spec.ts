// What requests get while a node does not know whether others have ended its life; node-table.spec.ts shows when that is so.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { LifeDoubt } from '../../../src/cluster/node-table/life-doubt.ts';
import { suite } from '../../helpers/suite.ts';
import { settled, simulatedClock, simulateTime } from '../../helpers/time/simulated-time.ts';

const test = suite('life doubt');
simulateTime(test);

test('a request that waits is refused after 2.5 s; who does not wait leaves no rejection behind', async () => {
  const doubt = new LifeDoubt('a', simulatedClock, { isInDoubt: true, isStopped: false, handle: () => {} });
  let waits = 'yes';
  doubt.untilLifeKnown()?.catch(({ code }) => {
    waits = code;
  });
  assert.ok(
    doubt.untilLifeKnown() !== undefined,
    'a hedge does not wait: it asks only whether there is a doubt',
  );
  mock.timers.tick(2_499);
  await settled();
  assert.is(waits, 'yes');
  mock.timers.tick(1);
  await settled();
  assert.is(waits, 'NODE_UNAVAILABLE');
});

test('the 2.5 s begin with the doubt: a later request waits for the rest of them, and asks', async () => {
  let asked = 0;
  const rules = {
    isInDoubt: true,
    isStopped: false,
    handle: () => {
      asked += 1;
    },
  };
  const doubt = new LifeDoubt('a', simulatedClock, rules);
  const waits: unknown[] = [];
  const wait = () =>
    doubt.untilLifeKnown()?.then(
      () => waits.push('known'),
      ({ code }) => waits.push(code),
    );
  doubt.settle(); // a tick of the woken process: nothing was learned
  mock.timers.tick(2_000);
  void wait();
  mock.timers.tick(500);
  await settled();
  assert.equal(waits, ['NODE_UNAVAILABLE']);
  void wait();
  mock.timers.tick(0);
  await settled();
  assert.equal([waits, asked], [['NODE_UNAVAILABLE', 'NODE_UNAVAILABLE'], 2]);

  rules.isInDoubt = false;
  doubt.settle();
  assert.is(doubt.untilLifeKnown(), undefined);
  rules.isInDoubt = true;
  void wait();
  mock.timers.tick(2_400);
  await settled();
  rules.isInDoubt = false;
  doubt.settle();
  await settled();
  assert.is(waits.at(-1), 'known', 'another doubt has its own time');
});

test('a doubt that ends with the tick of its first request leaves the next one its whole time', async () => {
  const rules = {
    isInDoubt: true,
    isStopped: false,
    handle: () => {
      rules.isInDoubt = false;
      doubt.settle();
    },
  };
  const doubt = new LifeDoubt('a', simulatedClock, rules);
  await doubt.untilLifeKnown();
  mock.timers.tick(2_000);
  rules.isInDoubt = true;
  rules.handle = () => {};
  assert.is(await outcomeAfter(doubt, 2_499), 'waits');
});

test('a process that was frozen while it was in doubt waits anew, because nothing could answer meanwhile', async () => {
  const rules = { isInDoubt: true, isStopped: false, handle: () => {} };
  const doubt = new LifeDoubt('a', simulatedClock, rules);
  doubt.settle();
  mock.timers.tick(60_000);
  assert.is(await outcomeAfter(doubt, 2_499), 'waits');
  assert.is(await outcomeAfter(doubt, 1), 'NODE_UNAVAILABLE');
});

test('two lives that were lost one after the other are waited for until the sessions of both are dropped', async () => {
  const rules = { isInDoubt: false, isStopped: false, handle: () => {} };
  const doubt = new LifeDoubt('a', simulatedClock, rules);
  const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  for (const { promise } of [first, second]) doubt.untilDropped(promise);
  let isKnown = false;
  const known = doubt.untilLifeKnown()?.then(() => {
    isKnown = true;
  });
  first.resolve();
  await settled();
  assert.is(isKnown, false);
  second.resolve();
  await known;
  assert.is(doubt.untilLifeKnown(), undefined);
});

test.run();

/** What a request has got when it has waited so long. */
async function outcomeAfter(doubt: LifeDoubt, ms: number): Promise<string> {
  let outcome = 'waits';
  doubt.untilLifeKnown()?.then(
    () => {
      outcome = 'known';
    },
    ({ code }) => {
      outcome = code;
    },
  );
  mock.timers.tick(ms);
  await settled();
  return outcome;
}
