// Each kind of actor ends what it owns when it is stopped: transports, conversations, calls, subscriptions and timers.

import * as assert from 'uvu/assert';
import { createActor } from 'xstate';
import { transportActor } from '../../src/actors/instances/transport-actor.ts';
import {
  type ClientSessionContext,
  clientSessionMachine,
} from '../../src/actors/sessions/client-session.machine.ts';
import type { ClientSession } from '../../src/actors/sessions/client-session.ts';
import { newSession } from '../../src/actors/sessions/session-transitions.ts';
import { DEFAULT_POLICY } from '../../src/balancing/policy.ts';
import { type Clock, machineClock } from '../../src/domain/time/clock.ts';
import { ask, codeOf, Harness, listenTo, silent } from '../helpers/backends/harness.ts';
import { ASKABLE, FULL, PLAIN, STDIO } from '../helpers/backends/profiles.ts';
import { ScriptedOpenings, ScriptedTransport } from '../helpers/backends/scripted-transport.ts';
import { NO_RULES } from '../helpers/backends/tool-rules.ts';
import { suite } from '../helpers/suite.ts';
import { pass, settled, simulatedClock, simulateTime } from '../helpers/time/simulated-time.ts';
import { untimedScheduler } from '../helpers/time/turns.ts';
import { InstanceHarness } from './instances/instance-harness.ts';

const test = suite('stopped actors');
/** Timers that are set and have neither rung nor been cancelled. */
let timers = new Set<object>();
let harness: Harness;
const alarm: Clock['alarm'] = (waitMs, ring) => {
  const timer = {};
  timers.add(timer);
  const cancel = simulatedClock.alarm(waitMs, () => {
    timers.delete(timer);
    ring();
  });
  return () => {
    timers.delete(timer);
    cancel();
  };
};
simulateTime(test, () => {
  timers = new Set();
  harness = new Harness({ policy: { processSharing: 'isolated' }, alarm });
});
test.after.each(() => harness.close());

/** A session with a process of its own, whose client listens and waits for the answer of a call. */
async function busySession() {
  await harness.add('a', { handshake: FULL, fields: STDIO });
  const session = await harness.openSession(ASKABLE);
  harness.rewrite('a', silent);
  const call = ask(session, 'write');
  const { subscription } = listenTo(session);
  await settled();
  const [process] = harness.conversations('a');
  assert.equal([process?.isClosed, process?.open.length, process?.listeners], [false, 1, 1]);
  return { session, call, subscription, process };
}

const WAYS: Readonly<Record<string, (session: ClientSession) => unknown>> = {
  root: () => harness.fleet.root.stop(),
  instance: () => harness.fleet.remove('t', 'a', 0),
  'client session': (session) => session.close(),
};

for (const [kind, stop] of Object.entries(WAYS)) {
  test(`a ${kind} that is stopped leaves nothing of a busy session`, async () => {
    const { session, call, subscription, process } = await busySession();
    void stop(session);
    for (let times = 0; times < 3; times += 1) await pass(1);
    assert.equal([process?.isClosed, process?.open.length, process?.listeners], [true, 0, 0]);
    assert.match(codeOf(await call.end), /SESSION_NOT_FOUND|BACKEND_UNAVAILABLE|SHUTTING_DOWN/);
    assert.is(harness.backend('a').isClosed, kind !== 'client session', 'a session ends only what it owns');
    if (kind === 'root') assert.equal([subscription.closed, harness.sessions.size], [true, 0]);
    await Promise.all([session.close(), harness.fleet.root.stop()]);
    await pass(60_000); // timers of actors would be set again; one of the pool rings for the last time
    assert.equal([harness.backend('a').isClosed, harness.backend('a').listeners, timers.size], [true, 0, 0]);
  });
}

test('a root that is stopped ends the wait for the calls of sessions', async () => {
  const { call } = await busySession();
  let isClosed = false;
  const closed = harness.sessions.closeAll(60_000).then(() => {
    isClosed = true;
  });
  await settled();
  assert.is(isClosed, false);
  harness.fleet.root.stop();
  await Promise.all([call.end, pass(1)]);
  await settled();
  assert.equal([isClosed, harness.sessions.size], [true, 0]);
  await closed;
});

for (const isOpen of [false, true]) {
  test(`an instance actor that is stopped when it ${isOpen ? 'serves' : 'opens'} ends its transport`, async () => {
    const instance = new InstanceHarness({ fields: STDIO });
    const transport = isOpen ? await instance.healthy() : undefined;
    instance.actor.stop();
    await settled();
    assert.equal([instance.scripted.last.signal.aborted, instance.ref.state], [true, 'stopped']);
    assert.is(transport?.isClosed, isOpen ? true : undefined);
    await instance.pass(600_000);
    assert.is(instance.scripted.openings.length, 1, 'no timer of it is left');
  });

  test(`a transport actor that is stopped when it ${isOpen ? 'serves' : 'opens'} closes its transport`, async () => {
    const openings = new ScriptedOpenings();
    const { open } = openings;
    const dedicated = { remainingConversations: 0 };
    const actor = createActor(transportActor, {
      input: {
        clock: { ...simulatedClock, alarm },
        scheduler: untimedScheduler(),
        toolRules: NO_RULES,
        open,
        dedicated,
        policy: DEFAULT_POLICY,
      },
    });
    actor.start();
    const transport = new ScriptedTransport({ capabilities: { tools: {} } });
    if (isOpen) openings.last.succeed(transport);
    await settled();
    actor.stop();
    await settled();
    if (!isOpen) openings.last.succeed(transport);
    await settled();
    assert.is(openings.last.signal.aborted, true);
    if (isOpen) assert.equal([transport.isClosed, transport.open.length, transport.listeners], [true, 0, 0]);
    assert.is(timers.size, 0);
  });
}

test('an instance actor that is stopped ends the processes that clients use', async () => {
  const instance = new InstanceHarness({ fields: STDIO });
  const transport = await instance.healthy();
  transport.conversationsAreIndependent = true;
  const { conversation } = instance.ref.use({ ownerId: 'ann', profile: ASKABLE });
  await conversation.requiredOpening;
  instance.actor.stop();
  await conversation.gone;
  assert.equal(
    transport.conversations.map(({ isClosed }) => isClosed),
    [true],
  );
});

test('the machine of a client session that is stopped searches no longer', async () => {
  const aborted = Promise.withResolvers<void>();
  const session: ClientSessionContext['session'] = {
    group: harness.fleet.templates.group('t'),
    value: newSession('t', 'ann', PLAIN),
    binding: undefined,
    deps: harness.sessions.deps,
    ...{ needsBindingForStream: true, isCalling: false, isPart: false, hasBindingWaits: false },
    findBinding: (signal: AbortSignal) => {
      signal.addEventListener('abort', () => aborted.resolve());
      return new Promise<never>(() => {});
    },
  };
  const actor = createActor(clientSessionMachine, {
    input: session,
    clock: machineClock({ ...simulatedClock, alarm }),
  });
  actor.start();
  assert.is(timers.size, 1, 'the search has a time limit');
  actor.stop();
  await aborted.promise;
  assert.is(timers.size, 0);
});

test.run();
