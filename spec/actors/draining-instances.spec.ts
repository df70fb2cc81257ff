// What is left of instances that go, by itself; what the fleet makes of it is in fleet-successor, fleet-crash and fleet-close.
// Time is simulated.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { DrainingInstances } from '../../src/actors/draining-instances.ts';
import { definition, Harness, settled, silent } from '../helpers/failing-backend.ts';
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

test('are over at once when nobody goes', async () => {
  await draining.ended();
  assert.equal([...draining.leaving], []);
  assert.is(draining.predecessorsOf(definition('a', MANAGED)), undefined);
});

test('know who leaves until it has ended', async () => {
  const ref = await harness.add('a', silent);
  harness.call('write');
  const left = draining.leave(ref, 10_000);
  assert.equal([ref.state, [...draining.leaving]], ['draining', [ref]]);
  harness.backend('a').last.result();
  await left;
  assert.equal([ref.state, [...draining.leaving]], ['stopped', []]);
});

test('hurry those that leave already', async () => {
  const ref = await harness.add('a', silent);
  harness.call('write', { timeoutMs: 60_000 });
  void draining.leave(ref, 30_000);
  draining.hurry(1_000);
  mock.timers.tick(1_000);
  await draining.ended();
  assert.is(ref.state, 'stopped');
});

test('wait for the backend of one that broke, which has no calls any more', async () => {
  const ref = await harness.add('a', silent);
  const { promise: gone, resolve } = Promise.withResolvers<void>();
  draining.broke(ref, gone);
  assert.equal([...draining.leaving], []);
  let isOver = false;
  const ended = draining.ended().then(() => {
    isOver = true;
  });
  await settled();
  assert.is(isOver, false);
  resolve();
  await ended;
});

test('hold the endpoint of a program until it is gone, for programs only', async () => {
  const ref = await harness.add('a', silent, { fields: MANAGED });
  const { promise: gone, resolve } = Promise.withResolvers<void>();
  draining.broke(ref, gone);
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
