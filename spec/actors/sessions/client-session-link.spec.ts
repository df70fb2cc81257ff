// What becomes of a session whose instance is on another node while the link there is lost.

import * as assert from 'uvu/assert';
import { MAX_QUEUED_PER_INSTANCE } from '../../../src/actors/instances/call-counter.ts';
import { backendUnavailable } from '../../../src/domain/errors/backend-errors.ts';
import type { Handshake } from '../../../src/domain/mcp/mcp.ts';
import { ask, codeOf, Harness, listenTo, resultOf } from '../../helpers/backends/harness.ts';
import { PLAIN, STDIO, toolCall } from '../../helpers/backends/profiles.ts';
import { suite } from '../../helpers/suite.ts';
import { pass, settled, simulateTime } from '../../helpers/time/simulated-time.ts';

const test = suite('client session: instances of other nodes');
let harness = new Harness();
/** The link to instance `a`, of another node, is lost, until the returned function is called; `again`: what differs then. */
async function loseWay(again: { readonly handshake?: Handshake } = {}): Promise<() => void> {
  const { promise: isBack, resolve } = Promise.withResolvers<void>();
  const { open } = harness;
  harness.open = async (...opening) => {
    await isBack;
    return Object.assign(await open(...opening), again);
  };
  harness.backend('a').disconnect();
  await settled();
  return resolve;
}

simulateTime(test, () => {
  harness = new Harness();
});
test.after.each(() => harness.close());

for (const isSame of [true, false])
  test(`bound to ${isSame ? 'an instance' : 'a former backend'} of another node after a call that must not be repeated, it ${isSame ? 'waits for the link there' : 'ends'}`, async () => {
    const ref = await harness.add('a', { isElsewhere: true });
    const session = await harness.openSession();
    assert.is(await resultOf(ask(session, 'write')), 'a');
    const before = harness.backend('a');
    const open = harness.open;
    harness.open = async (...opening) => {
      if (isAway) throw backendUnavailable('its node does not answer', { delivered: 'no' });
      return Object.assign(await open(...opening), isSame ? { handshake: before.handshake } : {});
    };
    let isAway = true;
    before.disconnect();
    await settled();
    for (const seconds of [0, 5, 15]) {
      await pass(seconds * 1_000);
      assert.is(codeOf(await ask(session, 'read').end), 'NO_HEALTHY_INSTANCE');
    }
    isAway = false;
    await pass(2_000);
    assert.is(ref.state, 'healthy');
    if (isSame) assert.is(await resultOf(ask(session, 'read')), 'a');
    else assert.is(codeOf(await ask(session, 'read').end), 'SESSION_NOT_FOUND');
  });

for (const isSame of [true, false])
  test(`bound to ${isSame ? 'a program' : 'a former process'} of another node, its calls wait for the link there${isSame ? '' : ', and it ends'}`, async () => {
    await harness.add('a', { fields: STDIO, isElsewhere: true });
    const session = await harness.openSession();
    assert.is(await resultOf(ask(session, 'write')), 'a');
    const before = harness.backend('a');
    const wayBack = await loseWay(isSame ? { handshake: before.handshake } : {});
    const call = ask(session, 'read');
    await pass(8_000);
    wayBack();
    await pass(2_000);
    if (isSame) assert.is(await resultOf(call), 'a');
    else assert.is(codeOf(await call.end), 'SESSION_NOT_FOUND');
  });

test('that may move by the time the link to another node is there again, to a new process, goes on', async () => {
  harness.setPolicy({ sessionFailover: 'never' });
  await harness.add('a', { fields: STDIO, isElsewhere: true });
  const session = await harness.openSession();
  const wayBack = await loseWay();
  const call = ask(session, 'read');
  await pass(1_000);
  harness.setPolicy({ sessionFailover: 'auto' });
  wayBack();
  await pass(2_000);
  assert.is(await resultOf(call), 'a');
});

test('that only listen take no place among the calls that wait for the link to another node', async () => {
  harness.setPolicy({ sessionFailover: 'never' });
  await harness.add('a', { fields: STDIO, isElsewhere: true });
  for (let count = 0; count < MAX_QUEUED_PER_INSTANCE; count += 1) {
    const session = await harness.openSession(PLAIN, 'ann');
    await resultOf(ask(session, 'read'));
    listenTo(session);
  }
  const wayBack = await loseWay();
  const call = harness.call({ ...toolCall('read'), callerId: 'ann' });
  await pass(8_000);
  wayBack();
  await pass(2_000);
  assert.is(await call.end, 'a');
});

test('that find the queue of those that wait for the link to another node full are refused for that, and go on', async () => {
  harness.setPolicy({ sessionFailover: 'never' });
  await harness.add('a', { fields: STDIO, isElsewhere: true });
  const session = await harness.openSession(PLAIN, 'ann');
  await resultOf(ask(session, 'read'));
  const wayBack = await loseWay({ handshake: harness.backend('a').handshake });
  const waiting = Array.from({ length: MAX_QUEUED_PER_INSTANCE }, () =>
    harness.call({ ...toolCall('read'), callerId: 'ann' }),
  );
  assert.is(codeOf(await ask(session, 'read').end), 'QUEUE_FULL');
  wayBack();
  await pass(2_000);
  assert.is(await waiting[0]?.end, 'a');
  assert.is(await resultOf(ask(session, 'read')), 'a');
});

test.run();
