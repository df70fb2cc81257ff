// The wait of a registration. Time is simulated.

import { mock } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { untilHealthy } from '../../src/registry.ts';
import { definition, Harness, startsForEver } from '../helpers/failing-backend.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('until healthy');
let harness = new Harness();

test.before.each(() => {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'] });
  harness = new Harness();
});
test.after.each(async () => {
  await harness.close();
  mock.timers.reset();
});

test('ends when the instance serves', async () => {
  const ref = harness.fleet.add(definition('a'));
  await untilHealthy(ref, 1_000);
  assert.is(ref.state, 'healthy');
});

test('ends when the time is over, and when the instance is taken out before', async () => {
  harness.open = startsForEver;
  const late = untilHealthy(harness.fleet.add(definition('a')), 1_000);
  const gone = untilHealthy(harness.fleet.add(definition('b')), 1_000);
  void harness.fleet.remove('t', 'b', 0);
  await gone;
  await turn();
  mock.timers.tick(999);
  assert.is(await Promise.race([late, turn('open')]), 'open');
  mock.timers.tick(1);
  await late;
});

test('does not wait for what another node runs', () =>
  untilHealthy(harness.fleet.addForeign(definition('a', { nodeId: 'b' })), 1_000));

test.run();
