import { Compile } from 'typebox/compile';
import * as assert from 'uvu/assert';
import { ANONYMOUS } from '../../../src/domain/account.ts';
import { RegistryView, registryView } from '../../../src/http/routes/templates.ts';
import { startApp } from '../../helpers/http-app.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the registry view');

test('shows every template with its instances and settings, empty ones included', async () => {
  const app = await startApp();
  await app.serve('alpha', 'one');
  await app.gateway.register(
    'beta',
    { id: 'two', endpoint: 'http://127.0.0.1:1' },
    { loadBalancer: { timeout: 7 } },
  );
  await app.gateway.deregister('beta', 'two');
  const view = registryView(app.gateway, ANONYMOUS);
  assert.equal(Object.keys(view.templates), ['alpha', 'beta']);
  assert.equal(
    view.templates.alpha?.instances.map(({ id, healthy }) => ({ id, healthy })),
    [{ id: 'one', healthy: true }],
  );
  assert.equal(view.templates.beta, {
    instances: [],
    load_balancer: {
      strategy: 'round_robin',
      health_check_interval: 30,
      max_retries: 3,
      timeout: 7,
      session: 'auto',
      session_failover: 'auto',
    },
  });
  assert.equal(view.stats, {
    total_templates: 2,
    total_instances: 1,
    healthy_instances: 1,
    unhealthy_instances: 0,
  });
  assert.ok(Compile(RegistryView).Check(view));
  const part = registryView(app.gateway, { ...ANONYMOUS, templates: new Set(['beta', 'gamma']) });
  assert.equal(Object.keys(part.templates), ['beta']);
  assert.equal([part.stats.total_templates, part.stats.total_instances], [1, 0]);
  await app.close();
});

test.run();
