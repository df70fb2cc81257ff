// The states of a session, and the notifications of its client. What happens to a session that loses its instance is in
// client-session-rebinding.spec.ts.

import { setImmediate as turn } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { createActor, SimulatedClock } from 'xstate';
import {
  type ClientSessionDeps,
  clientSessionMachine,
} from '../../../src/actors/client-sessions/client-session.machine.ts';
import { forwardNotification } from '../../../src/actors/client-sessions/client-session.ts';
import { ScriptedTransport } from '../../helpers/scripted-transport.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('client session: machine');
class FakeSession implements ClientSessionDeps {
  readonly template = 't';
  readonly ownerId = 'ann';
  readonly seen: string[] = [];
  settling = Promise.withResolvers<void>();
  signal: AbortSignal | undefined;
  readonly binding = {};
  served = false;
  mayMove = true;
  mayPause = false;
  mayWait = false;
  mayFinish = false;
  isListened = false;

  bind(signal: AbortSignal): Promise<void> {
    this.signal = signal;
    this.settling = Promise.withResolvers<void>();
    return this.settling.promise;
  }
  bindTimeoutMs(): number {
    return 1_000;
  }
  isServed(): boolean {
    return this.served;
  }
  enter(phase: string): void {
    this.seen.push(phase);
  }
  fail(why: { readonly error: unknown } | 'late'): void {
    this.seen.push(why === 'late' ? 'late' : `failed: ${String(why.error)}`);
  }
  refuse(): void {
    this.seen.push('refused');
  }
}
function start(fields: Partial<FakeSession> = {}) {
  const session = Object.assign(new FakeSession(), fields);
  const clock = new SimulatedClock();
  const actor = createActor(clientSessionMachine, { input: session, clock });
  actor.start();
  return { session, clock, actor };
}

test('keeps serving, or serves again, while its instance still serves it', () => {
  const { session, actor } = start({ served: true });
  actor.send({ type: 'lost' });
  assert.equal(session.seen, ['serving', 'serving']);
  Object.assign(session, { served: false, mayMove: false, mayFinish: true });
  actor.send({ type: 'lost' });
  session.served = true;
  actor.send({ type: 'callEnded' });
  assert.equal(session.seen.slice(2), ['finishing', 'serving']);
});

test('is unbound when a move fails or is late, and moves again at the next request', async () => {
  const { session, actor, clock } = start();
  actor.send({ type: 'lost' });
  session.settling.reject('nobody');
  await turn();
  actor.send({ type: 'requested' });
  clock.increment(1_000);
  assert.equal(session.seen.slice(1), ['binding', 'failed: nobody', 'unbound', 'binding', 'late', 'unbound']);
  session.served = true;
  actor.send({ type: 'requested' });
  assert.is(session.seen.at(-1), 'serving');
});

test('when unbound, retries by itself only while its client listens, and ends if it may no longer move', async () => {
  for (const [fields, last] of [
    [{ isListened: false }, 'unbound'],
    [{ isListened: true }, 'binding'],
    [{ isListened: true, mayMove: false, mayWait: true }, 'refused'],
    [{ isListened: true, mayMove: false }, 'ended'],
  ] as const) {
    const { session, actor, clock } = start();
    actor.send({ type: 'lost' });
    session.settling.reject('nobody');
    await turn();
    Object.assign(session, fields);
    clock.increment(60_000);
    assert.is(session.seen.at(-1), last);
    if (last !== 'refused') continue;
    session.mayMove = true;
    clock.increment(5_000);
    assert.is(session.seen.at(-1), 'binding', 'not at the next retry');
  }
});

test('ends once, from every state, and aborts a move in progress', () => {
  for (const way of [[], ['lost'], ['upgrade']] as const) {
    const { session, actor } = start();
    for (const type of way) actor.send({ type });
    actor.send({ type: 'end' });
    actor.send({ type: 'end' });
    assert.is(session.seen.filter((phase) => phase === 'ended').length, 1);
    assert.is(session.signal?.aborted, way.length === 0 ? undefined : true);
  }
});

test('a modern backend gets only notifications that the legacy era does not define', () => {
  const backend = new ScriptedTransport({ era: 'modern' });
  for (const name of ['roots/list_changed', 'progress', 'custom'])
    forwardNotification(backend, `notifications/${name}`, {});
  assert.equal(backend.notified, [{ method: 'notifications/custom', params: {} }]);
});

test.run();
