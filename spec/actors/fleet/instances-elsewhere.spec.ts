// Instances of other nodes: listed among the others, never started, never picked, refused with the reason.

import * as assert from 'uvu/assert';
import { noHealthyError } from '../../../src/actors/fleet/no-instance.ts';
import type { InstanceDefinition } from '../../../src/domain/instances/instance.ts';
import { answers, errorView, Harness } from '../../helpers/backends/harness.ts';
import { definition } from '../../helpers/backends/profiles.ts';
import { codeOf } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { settled, simulateTime } from '../../helpers/time/simulated-time.ts';

const test = suite('instances of other nodes');
let harness = new Harness();

test.after.each(() => harness.close());
simulateTime(test, () => {
  harness = new Harness();
});

const unreachable = (id: string, fields: Partial<InstanceDefinition> = {}) =>
  definition(id, { transport: 'stdio', command: 'run', nodeId: 'there', ...fields });

test('an instance of another node is listed as stopped, with the reason, and not started', async () => {
  const here = await harness.add('a', answers());
  const there = harness.fleet.addUnreachable(unreachable('b', { weight: 3 }));
  const { state, healthy, weight, reason } = there.snapshot();
  assert.equal([state, healthy, weight, reason], ['stopped', false, 3, 'it runs on the node "there"']);
  assert.equal(harness.fleet.templates.group('t').instances, [here, there]);
  assert.equal([harness.fleet.templates.group('t').refs, harness.fleet.ownRefs()], [[here], [here]]);
  assert.is(harness.fleet.find('t', 'b'), there);
  assert.is(harness.fleet.templates.group('t').instance('b'), there);
  assert.is(harness.fleet.findByServerId('b'), there);
  assert.equal(harness.fleet.templates.group('t').statuses()[1], {
    definition: unreachable('b', { weight: 3 }),
    snapshot: there.snapshot(),
  });
  assert.is(await codeOf(() => harness.fleet.templates.group('t').ref('b')), 'NO_HEALTHY_INSTANCE');
  assert.equal([...harness.transports.keys()], ['a']);
  const found = harness.events.filter((event) => 'instanceId' in event && event.instanceId === 'b');
  assert.equal(found, []);
});

test('an instance of another node is never picked, and calls that name it fail with the reason', async () => {
  harness.fleet.addUnreachable(unreachable('b'));
  const nobody = { code: 'NO_HEALTHY_INSTANCE', delivered: 'no' };
  assert.equal(errorView(await harness.call('write').end), { ...nobody, retryAfterSeconds: 2 });
  assert.equal(errorView(await harness.call('write', { instanceId: 'b' }).end), nobody);
  assert.match(noHealthyError(harness.fleet.templates.group('t')).message, 'b: it runs on the node "there"');
  const found = harness.callsThat('refused').map(({ code }) => code);
  assert.equal(found, ['NO_HEALTHY_INSTANCE', 'NO_HEALTHY_INSTANCE']);
});

test('an instance that moves to another node leaves here, and is reported as stopped', async () => {
  const here = await harness.add('a', answers());
  const transport = harness.backend('a');
  harness.events.length = 0;
  const there = harness.fleet.addUnreachable(unreachable('a'));
  await settled();
  assert.equal(
    [harness.fleet.templates.group('t').instances, harness.fleet.templates.group('t').pool.candidates.length],
    [[there], 0],
  );
  assert.equal([here.state, transport.isClosed], ['stopped', true]);
  const found = harness.events.map(({ type }) => type);
  assert.equal(found, ['instance.draining', 'instance.stopped']);
});

test.run();
