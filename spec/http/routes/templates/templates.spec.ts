import * as assert from 'uvu/assert';
import { DEFAULT_POLICY } from '../../../../src/balancing/policy.ts';
import { shownLoadBalancer } from '../../../../src/balancing/policy-schemas.ts';
import { STRATEGY_NAMES } from '../../../../src/balancing/strategies.ts';
import { type Credentials, startWithAccounts } from '../../../helpers/http/accounts.ts';
import { appFor, startApp } from '../../../helpers/http/app.ts';
import { suite } from '../../../helpers/suite.ts';

const test = suite('the template routes');
const plain = { id: 'plain', name: 'Plain', description: 'The first.', version: '1.0.0', tags: ['first'] };
const app = appFor(test, () => startApp({ gateway: { definitions: [plain] } }));
const endpoint = 'http://127.0.0.1:1';
const DEFAULTS = {
  ...shownLoadBalancer(DEFAULT_POLICY),
  ...{ strategy: 'round_robin', health_check_interval: 30, max_retries: 3, timeout: 60 },
  ...{ start_timeout: 300, session: 'auto', session_failover: 'auto' },
};
test.before(async () => {
  const { gateway } = app;
  await gateway.register('zeta', { id: 'z', endpoint });
  await gateway.register('alpha', { id: 'a', endpoint });
  await gateway.register('plain', { id: 'p', endpoint });
});

test('list all templates sorted, or those whose definition has a tag', async () => {
  for (const [query, templates] of [
    ['', ['alpha', 'plain', 'zeta']],
    ['?tag=first', ['plain']],
    ['?tag=last', []],
  ] as const)
    assert.equal((await app.ask('GET', `/gateway/templates${query}`)).body, { templates }, query);
});

test('show the registry without secrets, with empty templates, and only the templates that the key may use', async () => {
  const app = await startWithAccounts();
  await app.serve('alpha', 'one');
  const headers = { Authorization: 'secret' };
  const settings = { loadBalancer: { timeout: 7 } };
  await app.gateway.register('beta', { id: 'two', endpoint, headers }, settings);
  const registryFor = async (who: Credentials) => {
    const { text } = await app.as(who, 'GET', '/gateway/registry');
    assert.not.match(text, /secret/);
    return JSON.parse(text);
  };
  const { templates, stats } = await registryFor(app.admin);
  assert.equal(Object.keys(templates), ['alpha', 'beta']);
  assert.equal([templates.alpha.instances[0].id, templates.alpha.instances[0].healthy], ['one', true]);
  const numbers = { total_templates: 2, total_instances: 2, healthy_instances: 1, unhealthy_instances: 1 };
  assert.equal(stats, numbers);
  await app.gateway.deregister('beta', 'two');
  const { beta } = (await registryFor(app.admin)).templates;
  assert.equal(beta, { instances: [], load_balancer: { ...DEFAULTS, timeout: 7 } });
  const part = await registryFor(await app.key(['gateway:read'], ['beta', 'gamma']));
  assert.equal([Object.keys(part.templates), part.stats.total_instances], [['beta'], 0]);
  await app.close();
});

test('change the load balancer, nested or flat, field by field', async () => {
  const nested = { load_balancer: { strategy: 'weighted', health_check_interval: 15 } };
  const first = await app.ask('PATCH', '/gateway/templates/alpha', { body: nested });
  assert.is(first.status, 200);
  const own = { strategy: 'weighted_round_robin', health_check_interval: 15 };
  assert.equal(first.body, { template_name: 'alpha', load_balancer: { ...DEFAULTS, ...own }, auth: null });
  const sessions = { session: 'isolated', session_failover: 'never' };
  const change = { max_retries: 2, timeout: 30, start_timeout: 900, ...sessions };
  const second = await app.ask('PATCH', '/gateway/templates/alpha', { body: change });
  assert.equal(second.body.load_balancer, { ...DEFAULTS, ...own, ...change });
  assert.is((await app.ask('GET', '/mcp/alpha/health')).body.strategy, 'weighted_round_robin');
});

test('reset a setting to the default of the gateway by null', async () => {
  const own = { strategy: 'random', max_retries: 1, session: 'shared', session_failover: 'always' };
  const path = '/gateway/templates/plain';
  const change = { ...own, timeout: 7, start_timeout: 5, health_check_interval: 9 };
  const { body: changed } = await app.ask('PATCH', path, { body: change });
  const some = await app.ask('PATCH', path, { body: { timeout: null } });
  assert.equal(some.body.load_balancer, { ...Object(changed.load_balancer), timeout: 60 });
  const rest = { strategy: null, max_retries: null, session: null, session_failover: null };
  const load_balancer = { ...rest, start_timeout: null, health_check_interval: null };
  const all = await app.ask('PATCH', path, { body: { load_balancer } });
  assert.equal(all.body.load_balancer, DEFAULTS);
});

test('list the settings of a template with the schema of each, in which choices have their meanings', async () => {
  const { settings } = (await app.ask('GET', '/gateway/template-settings')).body;
  assert.ok(Array.isArray(settings));
  assert.equal(settings.map(({ name }) => name).sort(), Object.keys(DEFAULTS).sort());
  const byName = Object.fromEntries(settings.map((setting) => [setting.name, setting]));
  assert.equal(byName.timeout.schema, { type: 'integer', minimum: 1, maximum: 3600 });
  const { enum: words, enumNames } = byName.strategy.schema;
  assert.equal(words, [...STRATEGY_NAMES]);
  assert.is(enumNames[1], 'least_connections: the one with the fewest calls in flight');
});

test('refuse a start limit that is not a whole number from 5 to 3600', async () => {
  for (const start_timeout of [4, 3601, 5.5, '60'])
    assert.is((await app.ask('PATCH', '/gateway/templates/alpha', { body: { start_timeout } })).status, 422);
});

test('set the failures before an ejection, a whole number from 1 to 100', async () => {
  const path = '/gateway/templates/alpha';
  for (const ejection_failures of [0, 101, 2.5, '5'])
    assert.is((await app.ask('PATCH', path, { body: { ejection_failures } })).status, 422);
  const { body } = await app.ask('PATCH', path, { body: { ejection_failures: 100 } });
  assert.is(Object(body.load_balancer).ejection_failures, 100);
  assert.is(app.gateway.template('alpha').policy.ejectionFailures, 100);
});

test('set timeouts of tools, which a change replaces as a whole', async () => {
  const path = '/gateway/templates/alpha';
  for (const seconds of [0.05, 3601, '5', null])
    assert.is((await app.ask('PATCH', path, { body: { tool_timeouts: { slow: seconds } } })).status, 422);
  const tool_timeouts = { slow: 0.25, constructor: 3600 };
  const { body } = await app.ask('PATCH', path, { body: { tool_timeouts } });
  assert.equal(Object(body.load_balancer).tool_timeouts, tool_timeouts);
  const cleared = await app.ask('PATCH', path, { body: { tool_timeouts: {} } });
  assert.equal(Object(cleared.body.load_balancer).tool_timeouts, {});
});

test('set what consistent_hash hashes; a refusal shows the forms', async () => {
  const path = '/gateway/templates/alpha';
  for (const hash_on of ['argument:user', 'argument:a:b c', 'principal']) {
    const { body } = await app.ask('PATCH', path, { body: { strategy: 'consistent_hash', hash_on } });
    assert.is(Object(body.load_balancer).hash_on, hash_on);
    assert.is(app.gateway.template('alpha').policy.hashOn, hash_on);
  }
  const msg = "String should match pattern '^(principal|argument:.{1,256})$'";
  for (const hash_on of ['', 'user', 'argument', 'argument:', 'argument:a\n', 'Principal']) {
    const { status, body } = await app.ask('PATCH', path, { body: { hash_on } });
    assert.equal(
      [status, Object(body.detail)[0].msg, Object(body.detail)[0].loc.at(-1)],
      [422, msg, 'hash_on'],
    );
  }
  assert.is((await app.ask('PATCH', path, { body: { hash_on: 1 } })).status, 422);
  await app.ask('PATCH', path, { body: { strategy: null, hash_on: null } });
});

test('delete a template without instances, and refuse one with instances', async () => {
  await app.gateway.register('simple', { id: 's', endpoint });
  const path = '/gateway/templates/simple';
  const held = await app.ask('DELETE', path);
  const msg = '1 instance must be deregistered first';
  assert.equal(held.body.detail, [{ loc: ['path', 'template'], msg, type: 'value_error' }]);
  await app.ask('DELETE', '/gateway/deregister/simple/s');
  assert.equal((await app.ask('DELETE', path)).status, 204);
  assert.is((await app.ask('DELETE', path)).outcome, '404 TEMPLATE_NOT_FOUND');
  for (const asked of ['/mcp/simple/health', '/mcp/simple/tools/list'])
    assert.is((await app.ask('GET', asked)).status, 404, asked);
  assert.not.match((await app.ask('GET', '/gateway/registry')).text, 'simple');
  assert.not.match((await app.ask('GET', '/gateway/stats')).text, 'simple');
});

test.run();
