// What is left of instances that go, by itself; what the fleet makes of it is in fleet-successor, fleet-crash and fleet-close.
// Time is simulated.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { DrainingInstances } from '../../src/actors/draining-instances.ts';
import { definition, Harness, silent } from '../helpers/failing-backend.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('departures');
const MANAGED = { endpoint: 'http://127.0.0.1:9/mcp', command: 'serve' };
let harness = new Harness();
let draining = new DrainingInstances();

test.before.each(() => {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'] });
  harness = new Harness();
  draining = new DrainingInstances();
});
test.after.each(() => {
  mock.timers.reset();
  return harness.close();
});

test('hold the endpoint of a program until it is gone, for programs only', async () => {
  const ref = await harness.add('a', silent, { fields: MANAGED });
  const { promise: gone, resolve } = Promise.withResolvers<void>();
  draining.crashed(ref, gone);
  const { endpoint } = MANAGED;
  assert.is(draining.predecessorsOf(definition('b', { endpoint })), undefined);
  const elsewhere = { ...MANAGED, endpoint: 'http://127.0.0.1:10/mcp' };
  assert.is(draining.predecessorsOf(definition('b', elsewhere)), undefined);
  const before = draining.predecessorsOf(definition('b', MANAGED));
  assert.ok(before);
  resolve();
  await before;
  assert.is(draining.predecessorsOf(definition('b', MANAGED)), undefined);
});

test.run();
