// Which instances are listed, those of other nodes included, and the health that is counted from them.

import * as assert from 'uvu/assert';
import { ForeignInstance } from '../../src/actors/foreign-instance.ts';
import { InstanceIndex } from '../../src/actors/instance-index.ts';
import { healthOf } from '../../src/actors/template-health.ts';
import type { InstanceDefinition, InstanceSnapshot, InstanceState } from '../../src/domain/instance.ts';
import { definition } from '../helpers/failing-backend.ts';
import { codeOf } from '../helpers/outcome.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('index of instances');
const member = (id: string, fields: Partial<InstanceDefinition> = {}) =>
  new ForeignInstance(definition(id, fields));
function opened(): InstanceIndex {
  const index = new InstanceIndex();
  index.open('t');
  index.open('s');
  return index;
}
const registered = definition('a', { transport: 'stdio', command: 'run', nodeId: 'b:8080', weight: 3 });
const GONE: InstanceState[] = ['draining', 'stopped'];

test('says what it does not know', async () => {
  const index = opened();
  assert.is(await codeOf(() => index.get('t', 'a')), 'SERVER_NOT_FOUND');
  assert.is(await codeOf(() => index.byServerId('constructor')), 'SERVER_NOT_FOUND');
  assert.is(await codeOf(() => index.get('x', 'a')), 'TEMPLATE_NOT_FOUND');
  assert.is(await codeOf(() => index.members('x')), 'TEMPLATE_NOT_FOUND');
  assert.is(await codeOf(() => index.put(member('a', { template: 'x' }))), 'TEMPLATE_NOT_FOUND');
  assert.is(index.find('x', 'a'), undefined);
});

test('is stopped, and says where it runs', () => {
  const foreign = new ForeignInstance(registered);
  assert.is(foreign.definition, registered);
  assert.equal(foreign.snapshot(), {
    id: 'a',
    serverId: 'a',
    template: 't',
    state: 'stopped',
    healthy: false,
    inFlight: 0,
    weight: 3,
    score: 0,
    latencyMs: null,
    consecutiveFailures: 0,
    ejection: null,
    lastCheck: null,
    reason: 'it runs on the node "b:8080"',
    restarts: 0,
    requests: 0,
    errors: 0,
    era: null,
    pid: null,
    stderr: [],
    unmatchedMessages: 0,
  });
});

test('takes another weight', () => {
  const foreign = new ForeignInstance(registered);
  foreign.change({ ...registered, weight: 9 });
  assert.equal([foreign.definition.weight, foreign.snapshot().weight], [9, 9]);
});

test('is all zeros without instances', () => {
  assert.equal(healthOf('t', 'random', []), {
    template: 't',
    strategy: 'random',
    instances: [],
    total: 0,
    healthy: 0,
    healthPercentage: 0,
  });
});

test('counts the healthy among those that could be', () => {
  assert.equal(numbers('healthy', 'unhealthy', 'starting'), { total: 3, healthy: 1, healthPercentage: 33.3 });
  assert.equal(numbers('healthy', 'healthy', 'unhealthy'), { total: 3, healthy: 2, healthPercentage: 66.7 });
  assert.equal(numbers('healthy', 'healthy'), { total: 2, healthy: 2, healthPercentage: 100 });
  assert.equal(numbers('starting'), { total: 1, healthy: 0, healthPercentage: 0 });
});

test('leaves out those that drain or have stopped, but lists them', () => {
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
  return {
    id: 'a',
    serverId: 'a',
    template: 't',
    state,
    healthy: state === 'healthy',
    inFlight: 0,
    weight: 1,
    score: 100,
    latencyMs: null,
    consecutiveFailures: 0,
    ejection: null,
    lastCheck: null,
    reason: null,
    restarts: 0,
    requests: 0,
    errors: 0,
    era: null,
    pid: null,
    stderr: [],
    unmatchedMessages: 0,
  };
}
