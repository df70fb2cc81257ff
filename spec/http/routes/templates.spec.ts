import * as assert from 'uvu/assert';
import { startApp } from '../../helpers/http-app.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the routes of templates');
const started = startApp();
const endpoint = 'http://127.0.0.1:1';
test.before(async () => {
  const { gateway } = await started;
  await gateway.register('zeta', { id: 'z', endpoint, metadata: { tags: ['last', 'greek'] } });
  await gateway.register('alpha', { id: 'a', endpoint, metadata: { tags: ['greek'] } });
  await gateway.register('plain', { id: 'p', endpoint, env_vars: {}, headers: { Authorization: 'secret' } });
});
test.after(async () => (await started).close());

const ask = async (...parameters: Parameters<Awaited<typeof started>['ask']>) =>
  (await started).ask(...parameters);

test('name all templates, sorted', async () => {
  assert.equal((await ask('GET', '/gateway/templates')).body, { templates: ['alpha', 'plain', 'zeta'] });
});

test('name those whose instances carry a tag', async () => {
  assert.equal((await ask('GET', '/gateway/templates?tag=greek')).body, { templates: ['alpha', 'zeta'] });
  assert.equal((await ask('GET', '/gateway/templates?tag=last')).body, { templates: ['zeta'] });
  assert.equal((await ask('GET', '/gateway/templates?tag=')).body, { templates: [] });
});

test('show the registry without secrets', async () => {
  const { status, body, text } = await ask('GET', '/gateway/registry');
  assert.is(status, 200);
  assert.equal(Object.keys(body), ['templates', 'stats']);
  assert.not.match(text, /secret/);
});

test('change the load balancer, nested or flat, field by field', async () => {
  const nested = { load_balancer: { strategy: 'weighted', health_check_interval: 15 } };
  const first = await ask('PATCH', '/gateway/templates/alpha', { body: nested });
  assert.is(first.status, 200);
  assert.equal(first.body, {
    template_name: 'alpha',
    load_balancer: {
      strategy: 'weighted_round_robin',
      health_check_interval: 15,
      max_retries: 3,
      timeout: 30,
      session: 'auto',
      session_failover: 'auto',
    },
  });
  const change = { max_retries: 2, timeout: 30, session: 'isolated', session_failover: 'never' };
  const second = await ask('PATCH', '/gateway/templates/alpha', { body: change });
  assert.equal(second.body.load_balancer, {
    strategy: 'weighted_round_robin',
    health_check_interval: 15,
    max_retries: 2,
    timeout: 30,
    session: 'isolated',
    session_failover: 'never',
  });
  assert.is((await ask('GET', '/mcp/alpha/health')).body.strategy, 'weighted_round_robin');
});

test('bring a setting back to the default of the gateway by null', async () => {
  const own = {
    strategy: 'random',
    timeout: 7,
    max_retries: 1,
    session: 'shared',
    session_failover: 'always',
  };
  const path = '/gateway/templates/plain';
  const { body: changed } = await ask('PATCH', path, { body: { ...own, health_check_interval: 9 } });
  const some = await ask('PATCH', path, { body: { timeout: null } });
  assert.equal(some.body.load_balancer, { ...Object(changed.load_balancer), timeout: 30 });
  const rest = { strategy: null, max_retries: null, session: null, session_failover: null };
  const load_balancer = { ...rest, health_check_interval: null };
  const all = await ask('PATCH', path, { body: { load_balancer } });
  assert.equal(all.body.load_balancer, {
    strategy: 'round_robin',
    health_check_interval: 30,
    max_retries: 3,
    timeout: 30,
    session: 'auto',
    session_failover: 'auto',
  });
});

for (const [body, loc, type] of [
  [{ strategy: 'fastest' }, ['body', 'strategy'], 'enum'],
  [{ load_balancer: { strategy: 'fastest' } }, ['body', 'load_balancer', 'strategy'], 'enum'],
  [{ timeout: 0 }, ['body', 'timeout'], 'greater_than_equal'],
  [{ timeout: 1.5 }, ['body', 'timeout'], 'int_from_float'],
  [{ timeout: '30' }, ['body', 'timeout'], 'int_type'],
  [{ session: 'private' }, ['body', 'session'], 'enum'],
  [{ session_failover: true }, ['body', 'session_failover'], 'enum'],
  [{ max_retries: 11 }, ['body', 'max_retries'], 'less_than_equal'],
  [{ load_balancer: null }, ['body', 'load_balancer'], 'dict_type'],
  [{ load_balancer: {}, timeout: 3 }, ['body', 'timeout'], 'extra_forbidden'],
  [{ sesion: 'shared' }, ['body', 'sesion'], 'extra_forbidden'],
  [{ load_balancer: { sesion: 'shared' } }, ['body', 'load_balancer', 'sesion'], 'extra_forbidden'],
] as const) {
  test(`refuse ${JSON.stringify(body)}`, async () => {
    const answer = await ask('PATCH', '/gateway/templates/alpha', { body });
    assert.is(answer.status, 422);
    const items: { loc: unknown; type: string }[] = Array.isArray(answer.body.detail)
      ? answer.body.detail
      : [];
    assert.equal(
      items.map((item) => [item.loc, item.type]),
      [[loc, type]],
    );
  });
}

test('delete one that nothing is registered under', async () => {
  const path = '/gateway/templates/plain';
  const held = await ask('DELETE', path);
  assert.equal([held.status, held.body.error_code], [422, 'VALIDATION_ERROR']);
  await ask('DELETE', '/gateway/deregister/plain/p');
  assert.equal((await ask('DELETE', path)).status, 204);
  const gone = await ask('DELETE', path);
  assert.equal([gone.status, gone.body.error_code], [404, 'TEMPLATE_NOT_FOUND']);
  for (const asked of ['/mcp/plain/health', '/mcp/plain/tools/list'])
    assert.is((await ask('GET', asked)).status, 404, asked);
  assert.not.match((await ask('GET', '/gateway/registry')).text, 'plain');
  assert.not.match((await ask('GET', '/gateway/stats')).text, 'plain');
});

test('name those whose definition file carries a tag', async () => {
  const definition = {
    id: 'alpha',
    name: 'Alpha',
    description: 'The first.',
    version: '1.0.0',
    tags: ['first'],
  };
  const app = await startApp({ definitions: [definition] });
  for (const template of ['alpha', 'beta']) {
    await app.gateway.register(template, { id: template, endpoint: 'http://127.0.0.1:1' });
  }
  assert.equal((await app.ask('GET', '/gateway/templates?tag=first')).body, { templates: ['alpha'] });
  await app.close();
});

test.run();
