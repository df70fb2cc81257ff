// The health of a template, counted from the snapshots of its instances.

import * as assert from 'uvu/assert';
import { ForeignInstance } from '../../src/actors/group.ts';
import type { InstanceSnapshot, InstanceState } from '../../src/domain/instance.ts';
import { healthOf } from '../../src/gateway/status.ts';
import { definition } from '../helpers/failing-backend.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('health of a template');
const GONE: InstanceState[] = ['draining', 'stopped'];

test('leaves out those that drain or have stopped, but lists them', () => {
  assert.equal(numbers('healthy', 'unhealthy', 'starting'), { total: 3, healthy: 1, healthPercentage: 33.3 });
  assert.equal(numbers('healthy', 'draining', 'stopped'), { total: 1, healthy: 1, healthPercentage: 100 });
  assert.equal(numbers('draining'), { total: 0, healthy: 0, healthPercentage: 0 });
  assert.is(healthOf('t', 'random', GONE.map(snapshot)).instances.length, 2);
});

test.run();

function numbers(...states: InstanceState[]) {
  const { total, healthy, healthPercentage } = healthOf('t', 'random', states.map(snapshot));
  return { total, healthy, healthPercentage };
}

function snapshot(state: InstanceState): InstanceSnapshot {
  return { ...new ForeignInstance(definition('a')).snapshot(), state, healthy: state === 'healthy' };
}
