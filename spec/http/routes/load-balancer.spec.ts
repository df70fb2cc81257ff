import * as assert from 'uvu/assert';
import { DEFAULT_POLICY } from '../../../src/domain/policy.ts';
import { loadBalancerView } from '../../../src/http/routes/templates.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the load balancer view');

test('shows seconds, and every setting', () => {
  assert.equal(loadBalancerView({ ...DEFAULT_POLICY, callTimeoutMs: 1_500 }), {
    strategy: 'round_robin',
    health_check_interval: 30,
    max_retries: 3,
    timeout: 1.5,
    session: 'auto',
    session_failover: 'auto',
  });
});

test.run();
