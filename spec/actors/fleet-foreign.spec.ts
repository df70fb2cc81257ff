// Instances of other nodes in the fleet: listed among the others, never started, never picked, refused with the reason.

import * as assert from 'uvu/assert';
import { noneHealthy } from '../../src/actors/calls/instance-search.ts';
import { ForeignInstance } from '../../src/actors/group.ts';
import type { InstanceDefinition } from '../../src/domain/instance.ts';
import { answers, definition, Harness, settled, told } from '../helpers/failing-backend.ts';
import { codeOf } from '../helpers/outcome.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('fleet: other nodes');
const registered = definition('a', { transport: 'stdio', command: 'run', nodeId: 'b:8080', weight: 3 });
let harness = new Harness();
const foreign = (id: string, fields: Partial<InstanceDefinition> = {}) =>
  definition(id, { transport: 'stdio', command: 'run', nodeId: 'there', ...fields });

test.before.each(() => {
  harness = new Harness();
});
test.after.each(() => harness.close());

test('stands in the lists, and in none of what runs', async () => {
  const here = await harness.add('a', answers());
  const there = harness.fleet.addForeign(foreign('b'));
  assert.equal(harness.fleet.members('t'), [here, there]);
  assert.equal([harness.fleet.refs('t'), harness.fleet.all()], [[here], [here]]);
  assert.is(harness.fleet.find('t', 'b'), there);
  assert.is(harness.fleet.member('t', 'b'), there);
  assert.is(harness.fleet.byServerId('b'), there);
  assert.is(harness.fleet.isServerIdTaken('b'), true);
  assert.equal(views()[1], { definition: foreign('b'), snapshot: there.snapshot() });
  assert.is(await codeOf(() => harness.fleet.get('t', 'b')), 'NO_HEALTHY_INSTANCE');
  assert.equal([...harness.backends.keys()], ['a']);
  const found = harness.events.filter((event) => 'instanceId' in event && event.instanceId === 'b');
  assert.equal(found, []);
});

test('is never picked, and refuses a call that is meant for it with the reason', async () => {
  harness.fleet.addForeign(foreign('b'));
  const nobody = { code: 'NO_HEALTHY_INSTANCE', delivered: 'no' };
  assert.equal(told(await harness.call('write').end), { ...nobody, retryAfterSeconds: 2 });
  assert.equal(told(await harness.call('write', { instanceId: 'b' }).end), nobody);
  assert.match(noneHealthy('t', harness.fleet.members('t')).message, 'b: it runs on the node "there"');
  const found = harness.told('exchange.refused').map(({ code }) => code);
  assert.equal(found, ['NO_HEALTHY_INSTANCE', 'NO_HEALTHY_INSTANCE']);
});

test('replaces one that ran here: that one leaves, and is reported as stopped', async () => {
  const here = await harness.add('a', answers());
  const transport = harness.backend('a');
  harness.events.length = 0;
  const there = harness.fleet.addForeign(foreign('a'));
  await settled();
  assert.equal([harness.fleet.members('t'), harness.fleet.group('t').pool.size], [[there], 0]);
  assert.equal([here.state, transport.isClosed], ['stopped', true]);
  const found = harness.events.map(({ type }) => type);
  assert.equal(found, ['instance.draining', 'instance.stopped']);
});

test('is stopped, and its reason names the node', () => {
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

test.run();

function views() {
  return harness.fleet.group('t').views();
}
