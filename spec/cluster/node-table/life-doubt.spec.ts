// What requests get while a node does not know whether others have ended its life; node-table.spec.ts shows when that is so.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { LifeDoubt } from '../../../src/cluster/node-table/life-doubt.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { settled } from '../../helpers/failing-backend.ts';
import { simulateTime } from '../../helpers/simulated-time.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('life doubt');
simulateTime(test);

test('a request that waits is refused after 5 s; who does not wait leaves no rejection behind', async () => {
  const doubt = new LifeDoubt({ node: 'a', clock: systemClock, isInDoubt: () => true, ask: () => {} });
  let waits = 'yes';
  doubt.certain()?.catch(({ code }) => {
    waits = code;
  });
  assert.ok(doubt.certain() !== undefined, 'a hedge does not wait: it asks only whether there is a doubt');
  mock.timers.tick(4_999);
  await settled();
  assert.is(waits, 'yes');
  mock.timers.tick(1);
  await settled();
  assert.is(waits, 'NODE_UNAVAILABLE');
});

test.run();
