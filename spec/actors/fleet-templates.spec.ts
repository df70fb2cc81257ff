// Which templates a fleet has, and what is kept of those that were deleted.

import * as assert from 'uvu/assert';
import { LIMITS } from '../../src/domain/limits.ts';
import { DEFAULT_POLICY } from '../../src/domain/policy.ts';
import { Harness } from '../helpers/failing-backend.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('templates of a fleet');
let harness = new Harness();
test.before.each(() => {
  harness = new Harness();
});
test.after.each(() => harness.close());

test('are kept when their template is deleted, and come back with it', () => {
  const { fleet } = harness;
  const group = fleet.group('t');
  fleet.deleteTemplate('t');
  assert.throws(() => fleet.existingGroup('t'), /No template named "t"/);
  assert.equal([fleet.templates, fleet.has('t'), fleet.group('t') === group], [[], false, true]);
  fleet.setPolicy('t', DEFAULT_POLICY);
  assert.equal([fleet.templates, fleet.group('t') === group], [['t'], true]);
});

test('are so many at most, those included that were deleted', () => {
  const { fleet } = harness; // it has one template already
  for (let n = 1; n < LIMITS.templates; n += 1) fleet.setPolicy(`t${n}`, DEFAULT_POLICY);
  fleet.deleteTemplate('t');
  assert.equal([fleet.isFullFor('t'), fleet.isFullFor('t1'), fleet.isFullFor('new')], [false, false, true]);
});

test.run();
