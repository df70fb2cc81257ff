// The arithmetic of probes, openings and closings of one instance: what each changes in its numbers, and how long a back-off is.
// When an event applies is the machine's matter (instance.machine.spec.ts and its neighbours).

import * as assert from 'uvu/assert';
import {
  afterClosing,
  afterOpening,
  INITIAL_STATISTICS,
  type InstanceStatistics,
} from '../../../src/actors/instances/instance-statistics.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('vitals');

const vitals = (fields: Partial<InstanceStatistics>): InstanceStatistics => ({
  ...INITIAL_STATISTICS,
  ...fields,
});

test('counts every session after the first as a restart', () => {
  const first = afterOpening(INITIAL_STATISTICS, 100);
  assert.equal(first, vitals({ checkedAtMs: 100, openedAtMs: 100, sessions: 1 }));
  const second = afterOpening(afterClosing(first, 200), 300);
  assert.equal(second, vitals({ checkedAtMs: 300, openedAtMs: 300, sessions: 2, attempts: 1 }));
});

test.run();
