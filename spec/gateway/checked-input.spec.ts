// Input of programs without types that the gateway refuses: its options, and requests.

import { of } from 'rxjs';
import * as assert from 'uvu/assert';
import { DEFAULT_POLICY } from '../../src/domain/policy.ts';
import {
  checkedOptions,
  refusalOfAnswer,
  refusalOfCall,
  refusalOfList,
  refusalOfRequest,
} from '../../src/gateway/checked-input.ts';
import { createGateway } from '../../src/gateway.ts';
import type { GatewayOptions } from '../../src/gateway-types.ts';
import { MemoryStore } from '../../src/persistence/memory-store.ts';
import { errorOf } from '../helpers/outcome.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('checked input of the gateway');

test('accepts all documented options, and none at all', () => {
  const options: GatewayOptions = {
    store: new MemoryStore(),
    nodeId: undefined,
    storeChanges$: of(),
    policy: { strategy: 'random', healthIntervalMs: 5, maxRetries: 0, session: 'shared' },
    templates: ['demo'],
    deniedNetworks: ['10.0.0.0/8'],
    graceMs: 0,
    sessions: { max: 1, idleMs: 1, processes: 1, share: 1 },
    stateKey: Buffer.alloc(32),
    changedCallers$: of('user:1'),
    onFault: () => {},
    inspect: () => {},
    random: () => 0.5,
  };
  assert.equal(checkedOptions(options), options);
  assert.equal(checkedOptions({}), {});
});

test('treats undefined options as not set, also in the policy', async () => {
  const { policy } = checkedOptions(
    Object({ policy: { strategy: undefined, maxRetries: 1 }, graceMs: undefined }),
  );
  assert.equal(policy, { maxRetries: 1 });
  const gateway = await createGateway(Object({ policy: { strategy: undefined } }));
  assert.equal(gateway.policy, DEFAULT_POLICY);
  await gateway.close();
});

test('names the option that is invalid, and what it expects', async () => {
  for (const [options, said] of [
    [
      { policy: { strategy: 'bogus' } },
      'policy.strategy: expected one of round_robin, least_connections, weighted_round_robin, health_based, random',
    ],
    [{ policy: { strategies: 'random' } }, 'policy.strategies: unknown option; the nearest is "strategy"'],
    [{ polcy: {} }, 'polcy: unknown option; the nearest is "policy"'],
    [{ policy: { callTimeoutMs: '30' } }, 'policy.callTimeoutMs: expected milliseconds from 1 to 3600000'],
    [{ policy: { maxRetries: Number.NaN } }, 'policy.maxRetries: expected a whole number from 0 to 10'],
    [{ policy: null }, 'policy: expected an object with the options strategy, healthIntervalMs, '],
    [{ graceMs: Number.POSITIVE_INFINITY }, 'graceMs: expected milliseconds from 0 to 600000'],
    [{ stateKey: Buffer.alloc(8) }, 'stateKey: expected a Buffer of at least 32 bytes'],
    [
      { deniedNetworks: ['everything'] },
      'deniedNetworks: expected a list of networks in CIDR form, like 10.0.0.0/8',
    ],
    [{ templates: ['Bad Name'] }, 'templates: expected a list of names that match ^[a-z]'],
    [{ store: 'sqlite:///a.db' }, 'store: expected a store, such as openStore returns'],
    [{ storeChanges$: 5 }, 'storeChanges$: expected an Observable'],
    [{ onFault: 'log' }, 'onFault: expected a function'],
    [{ inspect: {} }, 'inspect: expected a function or an observer'],
    [{ sessions: { share: 0 } }, 'sessions.share: expected a number above 0, at most 1'],
    [5, 'expected an object with the options store, nodeId, '],
  ] as const) {
    const error = await refusal(options);
    assert.is(error.code, 'VALIDATION_ERROR');
    assert.ok(error.message.startsWith(`The argument of createGateway is not valid: ${said}`), error.message);
  }
});

test('reports all invalid options, and shows no values', async () => {
  const error = await refusal({ graceMs: 'secret', stateKey: 'secret', policy: { session: 'secret' } });
  const found = error.facts.items?.map(({ loc }) => loc.join('.'));
  assert.equal(found, ['options.graceMs', 'options.stateKey', 'options.policy.session']);
  assert.not.match(JSON.stringify(error.facts.items) + error.message, 'secret');
  assert.match(error.message, / \(and 2 more\)\.$/);
});

test('a valid request is accepted without an allocation, and its params are not walked', () => {
  const walked = (): never => {
    throw new Error('params are walked');
  };
  const params = new Proxy({}, { get: walked, ownKeys: walked });
  const { signal } = new AbortController();
  const options = { timeoutMs: 0.5, instanceId: 'a', signal, looksUpTools: false };
  const request = { method: 'tools/list', params, headers: { 'mcp-param-a': 'b' } };
  assert.equal(
    [
      refusalOfRequest(request, undefined),
      refusalOfRequest({ method: 'x' }, options),
      refusalOfCall('say', params, options),
      refusalOfList('prompts', { timeoutMs: Number.POSITIVE_INFINITY }),
      refusalOfAnswer(request, { error: { code: 1, message: 'x' }, instanceId: 'a' }),
    ],
    Array.from({ length: 5 }, () => undefined),
  );
});

test.run();

/** The error of a gateway with these options. */
function refusal(options: unknown) {
  return errorOf(Reflect.apply(createGateway, undefined, [options]));
}
