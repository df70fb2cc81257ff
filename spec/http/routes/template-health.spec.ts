import { Compile } from 'typebox/compile';
import * as assert from 'uvu/assert';
import { ANONYMOUS, NO_PRINCIPAL } from '../../../src/domain/account.ts';
import { TemplateHealthView, templateHealthView } from '../../../src/http/routes/health.ts';
import { definitionSample, snapshotSample } from '../../helpers/http-samples.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the template health view');

const health = {
  template: 'demo',
  strategy: 'round_robin',
  instances: [
    snapshotSample(),
    snapshotSample({ id: 'two', state: 'unhealthy', healthy: false, reason: 'refused', latencyMs: null }),
  ],
  total: 2,
  healthy: 1,
  healthPercentage: 50,
} as const;
const definitions = [definitionSample(), definitionSample({ id: 'two', transport: 'stdio' })];
const one = {
  healthy: true,
  status: 'healthy',
  state: 'healthy',
  transport: 'http',
  in_flight: 1,
  weight: 2,
  score: 100,
  latency_ms: 1.235,
  consecutive_failures: 0,
  restarts: 0,
  ejection: null,
  last_check: '2026-01-03T00:00:00.000Z',
  reason: null,
};
const two = {
  ...one,
  healthy: false,
  status: 'unhealthy',
  state: 'unhealthy',
  transport: 'stdio',
  latency_ms: null,
  reason: 'refused',
};

test('shows the counts, and each instance by its id', () => {
  const view = templateHealthView(health, definitions, 'object', ANONYMOUS);
  assert.equal(view, {
    template_name: 'demo',
    status: 'healthy',
    strategy: 'round_robin',
    total_instances: 2,
    healthy_instances: 1,
    health_percentage: 50,
    instances: { one, two },
  });
  assert.ok(Compile(TemplateHealthView).Check(view));
});

test('shows the instances as a list when it is asked to', () => {
  const view = templateHealthView(health, definitions, 'array', ANONYMOUS);
  assert.equal(view.instances, [
    { id: 'one', ...one },
    { id: 'two', ...two },
  ]);
  assert.ok(Compile(TemplateHealthView).Check(view));
});

test('is unhealthy when no instance is healthy, and when there is none', () => {
  const none = { ...health, instances: [], total: 0, healthy: 0, healthPercentage: 0 };
  assert.is(templateHealthView(none, [], 'object', ANONYMOUS).status, 'unhealthy');
  assert.equal(templateHealthView(none, [], 'object', ANONYMOUS).instances, {});
});

test('tells why an instance is not healthy to those who may see how it is run', () => {
  const view = templateHealthView(health, definitions, 'object', NO_PRINCIPAL);
  assert.equal(view.instances, { one, two: { ...two, reason: null } });
});

test.run();
