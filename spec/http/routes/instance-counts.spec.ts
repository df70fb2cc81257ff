import * as assert from 'uvu/assert';
import { instanceCounts } from '../../../src/http/routes/health.ts';
import { definitionSample, snapshotSample } from '../../helpers/http-samples.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the instance counts');

test('leave out what drains or has stopped', () => {
  const states = ['healthy', 'healthy', 'unhealthy', 'starting', 'draining', 'stopped'] as const;
  const servers = states.map((state) => ({
    definition: definitionSample(),
    snapshot: snapshotSample({ state, healthy: state === 'healthy' }),
  }));
  assert.equal(instanceCounts(servers), { total: 4, healthy: 2, unhealthy: 2 });
});

test.run();
