// Which templates a fleet has, and what is kept of those that were deleted.

import * as assert from 'uvu/assert';
import { Groups } from '../../src/actors/group.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import { DEFAULT_POLICY } from '../../src/domain/policy.ts';
import { suite } from '../helpers/suite.ts';

const PARTS = { random: () => 0.5, now: () => 0, alarm: () => () => undefined, emit: () => undefined };
const test = suite('groups');
let groups = new Groups(PARTS);
test.before.each(() => {
  groups = new Groups(PARTS);
});

test('are kept when their template is deleted, and come back with it', () => {
  groups.setPolicy('a', DEFAULT_POLICY);
  const group = groups.get('a');
  groups.delete('a');
  assert.throws(() => groups.require('a'), /No template named "a"/);
  assert.equal([groups.templates, groups.has('a'), groups.get('a') === group], [[], false, true]);
  groups.setPolicy('a', DEFAULT_POLICY);
  assert.equal([groups.templates, groups.get('a') === group], [['a'], true]);
});

test('are so many at most, those included that were deleted', () => {
  for (let n = 0; n < LIMITS.templates; n += 1) groups.setPolicy(`t${n}`, DEFAULT_POLICY);
  groups.delete('t0');
  assert.equal(
    [groups.isFullFor('t0'), groups.isFullFor('t1'), groups.isFullFor('new')],
    [false, false, true],
  );
});

test.run();
