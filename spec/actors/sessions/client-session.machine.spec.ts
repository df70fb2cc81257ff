// The states of a session. What happens to a session that loses its instance is in client-session-rebinding.spec.ts.

import { setImmediate as turn } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { createActor, SimulatedClock } from 'xstate';
import { Binding } from '../../../src/actors/sessions/binding/binding.ts';
import { clientSessionMachine } from '../../../src/actors/sessions/client-session.machine.ts';
import {
  type ClientSessionEvent,
  newSession,
  valueAfter,
} from '../../../src/actors/sessions/session-transitions.ts';
import { DEFAULT_POLICY, type TemplatePolicy } from '../../../src/balancing/policy.ts';
import type { SessionValue } from '../../../src/domain/sessions/session-value.ts';
import { Harness } from '../../helpers/backends/harness.ts';
import { PLAIN } from '../../helpers/backends/profiles.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('client session: machine');
let harness: Harness;
test.before.each(() => {
  harness = new Harness();
});
test.after.each(() => harness.close());

/** A session at instance `a`, which is the only one, as its machine sees it. */
class FakeSession {
  readonly value: SessionValue;
  readonly binding: Binding;
  readonly deps = { ...harness.sessions.deps, now: () => 0 };
  needsBindingForStream = false;
  isCalling = false;
  hasBindingWaits = true;
  isPart = false;
  settling = Promise.withResolvers<Binding>();
  signal: AbortSignal | undefined;
  constructor(binding: Binding) {
    this.value = valueAfter(newSession('t', 'ann', PLAIN), { type: 'bound', binding });
    this.binding = binding;
  }
  get group() {
    return harness.fleet.templates.group('t');
  }
  findBinding(signal: AbortSignal): Promise<Binding> {
    this.signal = signal;
    this.settling = Promise.withResolvers<Binding>();
    return this.settling.promise;
  }
}

async function start() {
  const ref = await harness.add('a');
  const session = new FakeSession(bindingOf(ref));
  const clock = new SimulatedClock();
  const actor = createActor(clientSessionMachine, {
    input: session,
    clock,
  });
  const seen: string[] = [];
  for (const type of ['bound', 'serving', 'refused', 'ended'] as const)
    actor.on(type, (event) =>
      seen.push('failure' in event && event.failure ? `${type} ${event.failure.code}` : type),
    );
  actor.start();
  return { session, clock, actor, seen, ref, state: () => actor.getSnapshot().value };
}

function bindingOf(ref: Awaited<ReturnType<Harness['add']>>): Binding {
  if (ref.handshake === undefined) throw new Error('the instance is not open');
  return new Binding(ref, ref.handshake);
}

function setFailover(sessionFailover: TemplatePolicy['sessionFailover']): void {
  harness.setPolicy({ ...DEFAULT_POLICY, sessionFailover });
}

test('a session that is bound again where it was has the same value: nothing is written', async () => {
  const ref = await harness.add('a');
  const value = valueAfter(newSession('t', 'ann', PLAIN), { type: 'bound', binding: bindingOf(ref) });
  const read = structuredClone(value);
  assert.is(valueAfter(read, { type: 'bound', binding: bindingOf(ref) }), read);
  const moved = { ...read, binding: { instanceId: 'b', serverId: 'b', isShared: true } };
  assert.equal(valueAfter(moved, { type: 'bound', binding: bindingOf(ref) }), value);
});

test('keeps serving, or serves again, while its instance still serves it', async () => {
  const { session, actor, seen, ref, state } = await start();
  actor.send({ type: 'requested' });
  assert.equal(seen, ['serving', 'serving']);
  setFailover('never');
  await harness.add('b');
  ref.drain();
  session.isCalling = true;
  actor.send({ type: 'requested' });
  assert.is(state(), 'finishing');
  ref.resume();
  actor.send({ type: 'callEnded' });
  assert.equal([seen.slice(2), state()], [['refused', 'serving'], 'serving']);
});

test('is unbound when a move fails or is late, and moves again at the next request', async () => {
  const { session, actor, clock, seen, ref, state } = await start();
  ref.drain();
  actor.send({ type: 'requested' });
  assert.is(state(), 'searching');
  session.settling.reject(new Error('nobody'));
  await turn();
  assert.is(state(), 'unbound');
  actor.send({ type: 'requested' });
  clock.increment(DEFAULT_POLICY.callTimeoutMs);
  assert.equal(seen.slice(1), ['refused INTERNAL_ERROR', 'refused BACKEND_TIMEOUT']);
  ref.resume();
  actor.send({ type: 'requested' });
  assert.is(state(), 'serving');
});

test('when unbound, retries by itself only while its client listens, and ends if it may no longer move', async () => {
  for (const [needsBindingForStream, failover, last] of [
    [false, 'auto', 'unbound'],
    [true, 'auto', 'searching'],
    [true, 'never', 'refused'],
    [true, 'never', 'ended'],
  ] as const) {
    const { session, actor, clock, seen, ref, state } = await start();
    ref.drain();
    actor.send({ type: 'requested' });
    session.settling.reject(new Error('nobody'));
    await turn();
    session.needsBindingForStream = needsBindingForStream;
    setFailover(failover);
    if (last === 'ended') await harness.add('b');
    clock.increment(5_000);
    assert.is(last === 'refused' ? seen.at(-1) : state(), last);
    if (last === 'refused') {
      setFailover('auto');
      clock.increment(5_000);
      assert.is(state(), 'searching', 'not at the next retry');
    }
    actor.send({ type: 'end', reason: 'closed' });
    await harness.close();
    harness = new Harness();
  }
});

test('ends once, from every state, and aborts a move in progress', async () => {
  for (const way of [[], ['requested'], ['upgrade']] as const) {
    const { session, actor, seen, ref } = await start();
    if (way[0] === 'requested') ref.drain();
    for (const type of way) actor.send({ type } as ClientSessionEvent);
    actor.send({ type: 'end', reason: 'closed' });
    actor.send({ type: 'end', reason: 'idle' });
    assert.is(seen.filter((type) => type === 'ended').length, 1);
    assert.is(actor.getSnapshot().context.value.endReason, 'closed');
    assert.is(session.signal?.aborted, way.length === 0 ? undefined : true);
    await harness.close();
    harness = new Harness();
  }
});

test('a binding that is found when nobody waits for it any more is closed', async () => {
  const { session, actor, ref } = await start();
  actor.send({ type: 'upgrade' });
  const late = bindingOf(ref);
  let closed = 0;
  late.close = async () => {
    closed += 1;
  };
  const { settling } = session;
  settling.resolve(late);
  actor.send({ type: 'end', reason: 'closed' }); // before the promise reports
  await turn();
  assert.is(closed, 1);
});

test.run();
