// What the calls of a template share: which instances stand in the pool, and that the line learns of every change.

import * as assert from 'uvu/assert';
import type { QueuedCall } from '../../src/actors/calls/wait-queue.ts';
import { Group } from '../../src/actors/group.ts';
import type { InstanceState } from '../../src/domain/instance.ts';
import { DEFAULT_POLICY } from '../../src/domain/policy.ts';
import { Harness, silent } from '../helpers/failing-backend.ts';
import { suite } from '../helpers/suite.ts';

const PARTS = { random: () => 0, now: () => 0, alarm: () => () => undefined, emit: () => undefined };
const test = suite('group');
const POLICY = { ...DEFAULT_POLICY, strategy: 'least_connections' } as const;
let harness = new Harness();
let group = new Group('t', POLICY, PARTS);

test.before.each(() => {
  harness = new Harness();
  group = new Group('t', POLICY, PARTS);
});
test.after.each(() => harness.close());

test('has only healthy instances in its pool', async () => {
  const ref = await harness.add('a', silent);
  for (const [state, size] of [
    ['starting', 0],
    ['healthy', 1],
    ['unhealthy', 0],
    ['healthy', 1],
    ['draining', 0],
    ['healthy', 1],
    ['stopped', 0],
    ['stopped', 0],
  ] as const satisfies readonly (readonly [InstanceState, number])[]) {
    group.observe(ref, state);
    assert.is(group.pool.size, size, state);
  }
});

test('keeps the successor when the one that it replaced goes away later', async () => {
  const [old, successor] = [await harness.add('a', silent), await harness.add('a', silent)];
  group.observe(old, 'healthy');
  group.observe(successor, 'healthy');
  for (const state of ['draining', 'unhealthy', 'stopped'] as const) group.observe(old, state);
  assert.equal(group.pool.candidates, [successor]);
});

test('loses the old one at once when it leaves before its successor is there', async () => {
  const [old, successor] = [await harness.add('a', silent), await harness.add('a', silent)];
  group.observe(old, 'healthy');
  group.observe(old, 'draining');
  assert.is(group.pool.pick(), undefined);
  group.observe(successor, 'healthy');
  group.observe(old, 'stopped');
  assert.is(group.pool.pick(), successor);
});

test('has a line of 256 for every instance that is up', async () => {
  assert.is(group.longestLine, 0);
  const [a, b] = [await harness.add('a', silent), await harness.add('b', silent)];
  group.observe(a, 'healthy');
  group.observe(b, 'healthy');
  assert.is(group.longestLine, 512);
});

test('lets as many in line try as an instance that comes up can carry', async () => {
  const ref = await harness.add('a', silent);
  let tries = 0;
  for (let caller = 0; caller < 300; caller += 1) {
    const call = waiting(() => {
      tries += 1;
      group.queue.leave(call);
      return true;
    });
    group.queue.join(call, 300);
  }
  group.observe(ref, 'healthy');
  assert.equal([tries, group.queue.length], [256, 44]);
  group.close();
});

test('tells the line that an instance went down, also when others are up', async () => {
  const [a, b] = [await harness.add('a', silent), await harness.add('b', silent)];
  group.observe(a, 'healthy');
  group.observe(b, 'healthy');
  let tries = 0;
  const call = waiting(() => {
    tries += 1;
    return false;
  });
  group.queue.join(call, 10);
  group.observe(a, 'draining');
  assert.equal([tries, group.queue.length], [1, 1]);
  group.observe(a, 'stopped');
  assert.is(tries, 1);
  group.queue.leave(call);
});

test('follows another strategy from the next pick on, and keeps the memory of the same one', async () => {
  const refs = [await harness.add('a', silent), await harness.add('b', silent)];
  for (const ref of refs) group.observe(ref, 'healthy');
  group.govern({ ...POLICY, strategy: 'round_robin' });
  assert.equal(picks(4), ['a', 'b', 'a', 'b']);
  assert.equal(picks(1), ['a']);
  group.govern({ ...POLICY, strategy: 'round_robin', maxRetries: 0 });
  assert.equal(picks(1), ['b']);
  assert.is(group.policy.maxRetries, 0);
  group.govern({ ...POLICY, strategy: 'random' });
  assert.equal(picks(3), ['a', 'a', 'a']);
});

test('offers nobody once it is closed, and tells the line', async () => {
  group.observe(await harness.add('a', silent), 'healthy');
  let tries = 0;
  const call = waiting(() => {
    tries += 1;
    assert.is(group.pool.size, 0);
    return false;
  });
  group.queue.join(call, 10);
  group.close();
  assert.is(tries, 1);
  group.queue.leave(call);
});

test.run();

function waiting(go: () => boolean): QueuedCall {
  return { ownerId: 'ann', go, waitsFor: () => true, giveUp: () => {} };
}

function picks(times: number): (string | undefined)[] {
  return Array.from({ length: times }, () => group.pool.pick()?.id);
}
