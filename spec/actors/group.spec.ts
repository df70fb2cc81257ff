// What the calls of a template share: which instances stand in the pool, and that the line learns of every change.

import * as assert from 'uvu/assert';
import { Group } from '../../src/actors/group.ts';
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

test('follows another strategy from the next pick on, and keeps the memory of the same one', async () => {
  const refs = [await harness.add('a', silent), await harness.add('b', silent)];
  for (const ref of refs) group.observe(ref, 'healthy');
  group.setPolicy({ ...POLICY, strategy: 'round_robin' });
  assert.equal(picks(4), ['a', 'b', 'a', 'b']);
  assert.equal(picks(1), ['a']);
  group.setPolicy({ ...POLICY, strategy: 'round_robin', maxRetries: 0 });
  assert.equal(picks(1), ['b']);
  assert.is(group.policy.maxRetries, 0);
  group.setPolicy({ ...POLICY, strategy: 'random' });
  assert.equal(picks(3), ['a', 'a', 'a']);
});

test.run();

function picks(times: number): (string | undefined)[] {
  return Array.from({ length: times }, () => group.pool.pick()?.id);
}
