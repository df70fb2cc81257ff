// Calls and sessions that find no healthy instance of their template while one is starting: they wait for it. Time is simulated.

import * as assert from 'uvu/assert';
import type { InstanceRef } from '../../../src/actors/instances/instance-ref.ts';
import type { ToolTrust } from '../../../src/actors/instances/tool-trust.ts';
import { DEFAULT_POLICY } from '../../../src/balancing/policy.ts';
import { backendUnavailable } from '../../../src/domain/errors/backend-errors.ts';
import {
  type BackendOptions,
  type Caller,
  codeOf,
  fails,
  Harness,
  resultOf,
  silent,
} from '../../helpers/backends/harness.ts';
import { FULL, HTTP, READ, STDIO, toolCall } from '../../helpers/backends/profiles.ts';
import { suite } from '../../helpers/suite.ts';
import { pass, settled, simulateTime } from '../../helpers/time/simulated-time.ts';

const test = suite('call: starting instances');
let harness = new Harness();
/** Ends the openings under way: with the transport of the harness, or with an error. */
let openings: { open(): void; fail(): void }[] = [];

test.after.each(() => harness.close());
simulateTime(test, () => {
  useHarness(new Harness());
  openings = [];
});
function useHarness(used: Harness): void {
  harness = used;
  const { open } = harness;
  harness.open = (definition, signal) =>
    new Promise((resolve, reject) => {
      const fail = () => reject(backendUnavailable('it ended', { delivered: 'no' }));
      signal.addEventListener('abort', fail);
      openings.push({ open: () => resolve(open(definition, signal)), fail });
    });
}

test('wait for the first start, and are sent in the order of their arrival', async () => {
  start('a');
  const calls = [harness.call('write'), harness.call('write'), harness.callStateless(toolCall('write'))];
  await pass(20_000);
  assert.equal(calls.map(isOver), [false, false, false]);
  openings[0]?.open();
  assert.equal(await Promise.all(calls.map(({ end }) => end)), ['a', 'a', 'a']);
});

test('wait for a planned restart', async () => {
  start('a');
  openings[0]?.open();
  await settled();
  harness.ref('a').restart();
  const call = harness.call('write');
  await settled();
  openings[1]?.open();
  assert.is(await call.end, 'a');
});

test('need an approved tool once their template is pinned while they wait', async () => {
  let isPinned = false;
  const trust: ToolTrust = {
    isRequiredFor: () => true,
    isApproved: (tool) => tool === 'read',
    digestsOf: async (tools) => new Map(tools.map((tool) => [tool, { own: tool.name, shown: tool.name }])),
    areUsedEverywhere: async () => false,
    listed: async () => {},
  };
  useHarness(new Harness({ trustOf: () => (isPinned ? trust : undefined) }));
  start('a');
  const calls = ['read', 'write'].map((tool) => harness.callStateless(toolCall(tool)));
  const list = harness.callStateless({ method: 'tools/list' });
  await settled();
  isPinned = true;
  openings[0]?.open();
  await pass(1_000);
  const [approved, other] = await Promise.all(calls.map(({ end }) => end));
  assert.equal([approved, codeOf(other)], ['a', 'TOOL_NOT_FOUND']);
  assert.equal(await resultOf(list), { tools: [READ] });
});

test('wait for the successor of their instance, which has the same id, after a failure there', async () => {
  start('a', STDIO, FULL);
  openings[0]?.open();
  await settled();
  const replace = () => start('a', STDIO, FULL);
  harness.rewrite('a', (exchange) => {
    replace();
    fails('no')(exchange);
  });
  const call = harness.call('write');
  await settled();
  openings[1]?.open();
  assert.is(await call.end, 'a');
  harness.backend('a').openConversation = async () => {
    replace();
    throw backendUnavailable('it leaves', { delivered: 'no' });
  };
  const session = harness.openSession();
  await settled();
  openings[2]?.open();
  assert.is((await session).value.binding?.instanceId, 'a');
});

test('wait for the successor of their instance, too, when they were silent there before', async () => {
  start('a', STDIO, FULL);
  openings[0]?.open();
  await settled();
  harness.rewrite('a', silent);
  const call = harness.call('read');
  const { last } = harness.backend('a');
  await pass(25_000);
  start('a', STDIO, FULL);
  last.fail(backendUnavailable('it leaves', { delivered: 'no' }));
  await settled();
  openings[1]?.open();
  assert.is(await call.end, 'a');
});

test('are sent at once to an instance that is healthy', async () => {
  start('a');
  start('b');
  openings[1]?.open();
  await settled();
  assert.is(await harness.call('write').end, 'b');
});

test('wait for the restarts of a program that ended, until it has failed too often', async () => {
  start('a');
  const call = harness.call('write');
  for (let count = 0; count < 4; count += 1) {
    assert.is(isOver(call), false, `after ${count} failures`);
    openings[count]?.fail();
    await pass(3_000);
  }
  assert.is(codeOf(await call.end), 'NO_HEALTHY_INSTANCE');
  assert.is(codeOf(await harness.call('write').end), 'NO_HEALTHY_INSTANCE');
});

test('wait for the link to another node each time that it is lost', async () => {
  void harness.add('a', { fields: STDIO, isElsewhere: true }).catch(() => undefined);
  for (let count = 0; count < 6; count += 1) {
    const call = harness.call('write');
    await pass(3_000);
    openings.at(-1)?.open();
    assert.is(await call.end, 'a', `after ${count} losses`);
    harness.backend('a').disconnect({ reason: 'its node is gone' });
    await settled();
  }
});

test('that a lost link to another node did not deliver wait for the link, too', async () => {
  void harness.add('a', { fields: STDIO, isElsewhere: true, script: silent }).catch(() => undefined);
  openings.at(-1)?.open();
  await settled();
  const calls = [
    harness.call('write'),
    harness.callStateless(toolCall('write')),
    harness.call('write', { instanceId: 'a' }),
    harness.callStateless(toolCall('write'), { instanceId: 'a' }),
  ];
  const arrived = harness.call('write');
  await settled();
  const lost = harness.backend('a');
  for (const exchange of lost.open.slice(0, calls.length))
    exchange.fail(backendUnavailable('no answer', { delivered: 'no' }));
  lost.disconnect({ reason: 'its node is gone' });
  await pass(3_000);
  assert.equal(
    calls.map(isOver),
    calls.map(() => false),
  );
  assert.is(Object(await arrived.end).delivered, 'unknown');
  openings.at(-1)?.open();
  await pass(100);
  for (const exchange of harness.backend('a').open) exchange.result({});
  assert.equal(
    await Promise.all(calls.map(({ end }) => end)),
    calls.map(() => 'a'),
  );
});

test('that are refused again and again on an open link to another node do not wait', async () => {
  const script = fails('no');
  void harness.add('a', { fields: STDIO, isElsewhere: true, script }).catch(() => undefined);
  openings.at(-1)?.open();
  await settled();
  const call = harness.call('write');
  for (let count = 0; count <= DEFAULT_POLICY.maxRetries; count += 1) await pass(100);
  assert.is(codeOf(await call.end), 'BACKEND_UNAVAILABLE');
});

test('wait on when the program starts here, in the place of the link to another node', async () => {
  void harness.add('a', { fields: STDIO, isElsewhere: true }).catch(() => undefined);
  const calls = [harness.call('write'), harness.callStateless(toolCall('write'))];
  const session = harness.openSession();
  await pass(3_000);
  start('a');
  await pass(3_000);
  openings.at(-1)?.open();
  await settled();
  assert.equal(await Promise.all(calls.map(({ end }) => end)), ['a', 'a']);
  assert.ok((await session).isAt('a'));
});

test('do not wait for a networked server that was reached before', async () => {
  start('a', HTTP);
  openings[0]?.open();
  await settled();
  harness.backend('a').disconnect({ reason: 'it ended' });
  await pass(600);
  assert.is(harness.ref('a').state, 'starting');
  assert.is(codeOf(await harness.call('write').end), 'NO_HEALTHY_INSTANCE');
});

test('end at their deadline with the reason, as not delivered', async () => {
  harness.setPolicy({ callTimeoutMs: 10_000 });
  start('a');
  const [call, session] = [harness.call('write'), harness.openSession().catch((thrown) => codeOf(thrown))];
  await pass(9_999);
  assert.is(isOver(call), false);
  await pass(1);
  const error = await call.end;
  assert.is(codeOf(error), 'NO_HEALTHY_INSTANCE');
  assert.match(String(error), 'a is starting');
  await pass(20_000);
  assert.is(await session, 'NO_HEALTHY_INSTANCE');
});

test('the opening of a session waits for a starting instance, too', async () => {
  start('a');
  const opening = harness.openSession();
  await pass(20_000);
  openings[0]?.open();
  assert.ok((await opening).isAt('a'));
});

test('wait in bounded numbers, shared between owners', async () => {
  start('a');
  const of = (caller: string) => harness.call({ method: 'tools/list', callerId: caller });
  const many = Array.from({ length: 257 }, () => of('ann'));
  assert.equal(many.filter(isOver).length, 1);
  assert.is(codeOf(await many[256]?.end), 'QUEUE_FULL');
  const other = of('bob');
  assert.is(isOver(other), false);
  assert.is(codeOf(await many[255]?.end), 'QUEUE_FULL');
  openings[0]?.open();
  assert.is(await other.end, 'a');
});

test('leave without a trace, and end when the instance is removed', async () => {
  const ref = start('a');
  const [left, stays] = [harness.call('write'), harness.call('write')];
  left.subscription.unsubscribe();
  ref.leave(0);
  assert.is(codeOf(await stays.end), 'NO_HEALTHY_INSTANCE');
});

test.run();

/** Adds an instance, whose openings end when the spec says so. */
function start(id: string, fields = STDIO, handshake: BackendOptions['handshake'] = {}): InstanceRef {
  harness.add(id, { fields, handshake }).catch(() => undefined); // it may never be healthy
  return harness.ref(id);
}

function isOver({ subscription }: Caller): boolean {
  return subscription.closed;
}
