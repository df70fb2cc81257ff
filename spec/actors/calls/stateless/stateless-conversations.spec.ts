// Which owner gets which conversation, how many there may be, and what is left after their ends.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import type { DedicatedConversation } from '../../../../src/actors/instances/dedicated-conversation.ts';
import type { InstanceRef } from '../../../../src/actors/instances/instance-ref.ts';
import type { ExchangeEvent } from '../../../../src/domain/calls/exchange-event.ts';
import { hasCode } from '../../../../src/domain/errors/errors.ts';
import type { TransportKind } from '../../../../src/domain/instances/transport-kinds.ts';
import { LIMITS } from '../../../../src/domain/limits.ts';
import { profileBytes, QUESTION_REFUSALS } from '../../../../src/domain/mcp/client.ts';
import { Harness } from '../../../helpers/backends/harness.ts';
import { ASKABLE, LARGE, modernProfile } from '../../../helpers/backends/profiles.ts';
import { ScriptedTransport } from '../../../helpers/backends/scripted-transport.ts';
import { suite } from '../../../helpers/suite.ts';
import { settled, simulateTime } from '../../../helpers/time/simulated-time.ts';

const test = suite('stateless conversations');
const MOST = LIMITS.dedicatedProcesses;

let harness = new Harness();
let stateless = harness.statelessConversations;

simulateTime(test, () => {
  harness = new Harness();
  stateless = harness.statelessConversations;
});
test.after.each(() => harness.close());

test('keeps instances, owners and capabilities apart', async () => {
  const [one, other] = [await instanceOf('http'), await instanceOf('http', 'b')];
  const uses = [
    stateless.use(one, guest('ann')),
    stateless.use(one, guest('bob')),
    stateless.use(other, guest('ann')),
    stateless.use(one, { ...guest('ann'), profile: ASKABLE }),
  ];
  assert.is(new Set(uses.map(({ conversation }) => conversation)).size, 4);
  const again = stateless.use(one, guest('ann'));
  assert.is(again.conversation, uses[0]?.conversation);
  assert.equal(
    uses.map(({ conversation }) => conversation.isReused),
    [true, false, false, false],
  );
});

test('uses an SSE conversation in which the client can be asked to one call at a time', async () => {
  const one = await instanceOf('sse');
  const askable = { ...guest('ann'), profile: ASKABLE };
  const first = stateless.use(one, askable);
  assert.is.not(stateless.use(one, askable).conversation, first.conversation);
  first.end();
  assert.is(stateless.use(one, askable).conversation, first.conversation);
  const plain = stateless.use(one, guest('ann'));
  assert.is(stateless.use(one, guest('ann')).conversation, plain.conversation, 'nothing can be asked');
});

test('counts large profiles in bytes as long as their conversations are open', async () => {
  const one = await instanceOf('http');
  const { declarations } = harness;
  const large = { ...modernProfile(), capabilities: LARGE };
  const bytes = profileBytes(large);
  const use = (owner: string) => stateless.use(one, { owner: { id: owner }, profile: large });
  const { most } = declarations;
  for (let held = bytes; held <= most; held += bytes) use(`owner ${held}`);
  assert.throws(
    () => use('ann'),
    (error: unknown) => hasCode(error, 'QUEUE_FULL'),
  );
  assert.is(stateless.use(one, guest('ann')).conversation.isReused, false);
  await stateless.close();
  await settled();
  assert.is(declarations.total, 0);
});

test('has at most 1,024 conversations over HTTP', async () => {
  const one = await instanceOf('http');
  for (let n = 0; n < 1_024; n += 1) stateless.use(one, guest(`owner ${n}`));
  assert.is(refused(one), true);
});

test('makes room by ending the least recently used conversation', async () => {
  const one = await instanceOf('stdio');
  const uses = Array.from({ length: MOST }, (_, n) => stateless.use(one, guest(`owner ${n}`)));
  assert.is(refused(one), true);
  mock.timers.tick(1);
  uses[7]?.end();
  mock.timers.tick(1);
  uses[3]?.end();
  stateless.use(one, guest('ann'));
  assert.equal(
    [uses[7]?.conversation.acceptsAnotherUse, uses[3]?.conversation.acceptsAnotherUse],
    [false, true],
  );
  await settled();
  assert.is(stateless.owners.length, MOST);
  assert.is(harness.conversations('a')[7]?.closings, 1);
});

test('opens at most as many conversations again while the old ones are still closing', async () => {
  const one = await instanceOf('stdio');
  for (let n = 0; n < MOST; n += 1) stateless.use(one, guest(`owner ${n}`)).end();
  await settled();
  for (const conversation of harness.conversations('a')) conversation.closesSlowly = true;
  for (let n = 0; n < MOST; n += 1) stateless.use(one, guest(`other ${n}`)).end();
  assert.is(refused(one), true);
  for (const conversation of harness.conversations('a')) conversation.finishClosing();
  await settled();
  assert.is(stateless.owners.length, MOST);
  assert.is(refused(one), false);
});

test('relays messages outside of calls for processes, and over HTTP if the client can be asked', async () => {
  const [web, pipe] = [await instanceOf('http'), await instanceOf('stdio', 'b')];
  stateless.use(web, { ...guest('ann'), profile: ASKABLE });
  stateless.use(web, guest('ann'));
  stateless.use(pipe, guest('ann'));
  await settled();
  const found = [...harness.conversations('a'), ...harness.conversations('b')].map(
    ({ listeners }) => listeners > 0,
  );
  assert.equal(found, [true, false, true]);
});

test('emits the conversations of one owner with one instance, present and future', async () => {
  const [one, other] = [await instanceOf('stdio'), await instanceOf('stdio', 'b')];
  const { conversation } = stateless.use(one, guest('ann'));
  await settled();
  const received: DedicatedConversation[] = [];
  const subscription = stateless.of(one, guest('ann')).subscribe((known) => received.push(known));
  const next = stateless.use(one, guest('ann'));
  stateless.use(one, guest('bob'));
  stateless.use(other, guest('ann'));
  await settled();
  const found = [received.length, received[0] === conversation, received[1] === next.conversation];
  assert.equal(found, [2, true, true]);
  subscription.unsubscribe();
});

test('ends the conversations of one owner, and no other', async () => {
  const one = await instanceOf('stdio');
  const uses = ['ann', 'bob', 'ann'].map((id) => stateless.use(one, guest(id)));
  await settled();
  assert.equal(stateless.owners.toSorted(), ['ann', 'ann', 'bob']);
  await stateless.endOf('ann');
  assert.equal(stateless.owners, ['bob']);
  const found = harness.conversations('a').map(({ isClosed }) => isClosed);
  assert.equal(found, [true, false, true]);
  assert.equal([stateless.owners.length, uses[1]?.conversation.inner?.handshake.era], [1, 'legacy']);
});

test('ends everything when it closes, openings included', async () => {
  const one = await instanceOf('http');
  const { conversation } = stateless.use(one, guest('ann'));
  await stateless.close();
  await conversation.requiredOpening.catch(() => undefined);
  assert.throws(
    () => stateless.use(one, guest('ann')),
    (thrown: unknown) => hasCode(thrown, 'SHUTTING_DOWN'),
  );
  const found = harness.conversations('a').map(({ isClosed }) => isClosed);
  assert.equal([stateless.owners.length, found], [0, [true]]);
});

test('gives a question to the latest call, a message to a single call, elicitation/complete to all', async () => {
  const { conversation } = stateless.use(await instanceOf('http'), { ...guest('ann'), profile: ASKABLE });
  await conversation.requiredOpening;
  const [inner = new ScriptedTransport()] = harness.conversations('a');
  const first: string[] = [];
  const second: string[] = [];
  const hear = (received: string[]) => (event: ExchangeEvent) => {
    if (event.kind === 'request') event.answer({ result: {} });
    if ('method' in event) received.push(event.method.replace('notifications/', ''));
  };
  const tell = () => {
    inner.ask('roots/list');
    for (const method of ['message', 'elicitation/complete', 'tools/list_changed', 'resources/updated'])
      inner.sendNotification(`notifications/${method}`);
  };
  tell();
  assert.equal(inner.replies.splice(0), [QUESTION_REFUSALS.noCall]);
  const calls = [first, second].map((received) => {
    const call = conversation.exchange({ method: 'tools/call' }).subscribe(hear(received));
    tell();
    return call;
  });
  assert.equal(first, ['roots/list', 'message', 'elicitation/complete', 'elicitation/complete']);
  assert.equal(second, ['roots/list', 'elicitation/complete']);
  assert.equal(inner.replies, [{ result: {} }, { result: {} }]);
  for (const call of calls) call.unsubscribe();
  tell();
  assert.equal([inner.open, inner.replies.slice(2)], [[], [QUESTION_REFUSALS.noCall]]);
});

test.run();

function guest(id: string) {
  return { owner: { id }, profile: modernProfile() };
}

/** An instance over this transport. */
function instanceOf(transport: TransportKind, id = 'a'): Promise<InstanceRef> {
  return harness.add(id, { fields: { transport } });
}

/** True when there is no room for one more, which is given back at once. */
function refused(one: InstanceRef): boolean {
  try {
    stateless.use(one, guest('one more')).end();
    return false;
  } catch (thrown) {
    if (!hasCode(thrown, 'QUEUE_FULL')) throw thrown;
    return true;
  }
}
