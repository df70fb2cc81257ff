import { Value } from 'typebox/value';
import * as assert from 'uvu/assert';
import { DEFAULT_POLICY, STRATEGY_NAMES, strategyName } from '../../src/domain/policy.ts';
import { changedSettings, LoadBalancerSettings, policyOf, TemplateId } from '../../src/domain/template.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('template');

test('lays a change over settings, and takes away what is null', () => {
  const settings = { timeout: 7, session: 'shared' } as const;
  assert.equal(changedSettings(settings, Object({ timeout: undefined, nothing: undefined })), settings);
  assert.equal(changedSettings(settings, { timeout: null, max_retries: 1, strategy: null }), {
    session: 'shared',
    max_retries: 1,
  });
});

test('takes lower-case words with digits and hyphens for a name, and nothing else', () => {
  const good = ['weather', 'a', 'brave-search-2', 'a'.repeat(128)];
  const bad = ['', 'Weather', '2fast', '-a', 'a_b', 'a b', 'a/b', 'a\n', 'ä', 'a'.repeat(129), 7];
  const taken = [...good, ...bad].filter((name) => Value.Check(TemplateId, name));
  assert.equal(taken, good);
});

test('takes settings that name any strategy, and their bounds', () => {
  for (const strategy of [...STRATEGY_NAMES, 'weighted']) {
    assert.ok(Value.Check(LoadBalancerSettings, { strategy }), strategy);
  }
  for (const settings of [
    {},
    { health_check_interval: 1, max_retries: 0, timeout: 1 },
    { health_check_interval: 3600, max_retries: 10, timeout: 3600 },
    { session: 'isolated', session_failover: 'never' },
  ]) {
    assert.ok(Value.Check(LoadBalancerSettings, settings), JSON.stringify(settings));
  }
});

test('refuses settings out of bounds, in fractions, of another type or unknown', () => {
  for (const settings of [
    { strategy: 'fastest' },
    { health_check_interval: 0 },
    { health_check_interval: 3601 },
    { max_retries: -1 },
    { max_retries: 11 },
    { timeout: 0 },
    { timeout: 3601 },
    { timeout: 1.5 },
    { timeout: '30' },
    { session: 'private' },
    { session_failover: true },
    { retries: 3 },
    [],
    null,
  ]) {
    assert.not.ok(Value.Check(LoadBalancerSettings, settings), JSON.stringify(settings));
  }
});

test('means weighted round robin by weighted, and every strategy by its own name', () => {
  assert.is(strategyName('weighted'), 'weighted_round_robin');
  assert.equal(STRATEGY_NAMES.map(strategyName), STRATEGY_NAMES);
});

test('has the defaults of the settings as its default policy', () => {
  assert.equal(DEFAULT_POLICY, {
    strategy: 'round_robin',
    healthIntervalMs: 30_000,
    probeTimeoutMs: 10_000,
    maxRetries: 3,
    callTimeoutMs: 30_000,
    session: 'auto',
    sessionFailover: 'auto',
  });
});

test('lays the settings of a template over the defaults, in milliseconds', () => {
  assert.equal(policyOf({}, DEFAULT_POLICY), DEFAULT_POLICY);
  const settings: LoadBalancerSettings = {
    strategy: 'weighted',
    health_check_interval: 5,
    max_retries: 0,
    timeout: 2,
    session: 'shared',
    session_failover: 'always',
  };
  assert.equal(policyOf(settings, { ...DEFAULT_POLICY, probeTimeoutMs: 700 }), {
    strategy: 'weighted_round_robin',
    healthIntervalMs: 5_000,
    probeTimeoutMs: 700,
    maxRetries: 0,
    callTimeoutMs: 2_000,
    session: 'shared',
    sessionFailover: 'always',
  });
});

test.run();
