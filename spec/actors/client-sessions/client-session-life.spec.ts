// The actor of a session that comes and goes, while the phase stays.

import * as assert from 'uvu/assert';
import type { AnyActorRef, InspectionEvent } from 'xstate';
import type { ClientSessionDeps } from '../../../src/actors/client-sessions/client-session.machine.ts';
import { Life } from '../../../src/actors/client-sessions/client-session.machine.ts';
import { InstanceSupervisor } from '../../../src/actors/instance-supervisor.ts';
import { CLIENT_ACTORS } from '../../../src/actors/template.machine.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('client session: life');

/** A session with a binding, which writes down where it comes to stand. */
function begin(fields: Partial<ClientSessionDeps> = {}, root?: AnyActorRef) {
  const seen: string[] = [];
  const duties: ClientSessionDeps & { mayFinish: boolean } = {
    template: 't',
    ownerId: 'ann',
    settle: () => new Promise(() => {}),
    settleMs: () => 1_000,
    isBound: () => true,
    isServed: () => false,
    mayMove: false,
    mayWait: false,
    mayFinish: false,
    isListened: false,
    enter: (phase) => {
      life.entered(phase);
      seen.push(phase);
    },
    fail: () => seen.push('failed'),
    refuse: () => seen.push('refused'),
    ...fields,
  };
  const life: Life = new Life(duties, root);
  return { life, duties, seen };
}

test('has an actor from its first waking, and one only', () => {
  const { life, seen } = begin();
  assert.equal([life.phase, life.mayRest], ['opening', false]);
  life.wake();
  life.wake();
  assert.equal([life.phase, life.mayRest, seen], ['serving', true, ['serving']]);
  life.end();
});

test('ends its actor when it rests', () => {
  const actors = new Set<InspectionEvent['actorRef']>();
  const { root } = new InstanceSupervisor(() => {}, { inspect: ({ actorRef }) => actors.add(actorRef) });
  const { life } = begin({}, root);
  life.wake();
  const [actor] = [...actors].filter((one) => 'id' in one && one.id === CLIENT_ACTORS.session);
  assert.is(actor?.getSnapshot().status, 'active');
  life.rest();
  assert.is(actor?.getSnapshot().status, 'done');
});

test('goes on from where it is after a rest', () => {
  const { life, seen } = begin({ isServed: () => true });
  life.wake();
  life.rest();
  assert.equal([life.phase, life.mayRest], ['serving', false]);
  life.look(false);
  assert.equal([life.mayRest, seen], [true, ['serving', 'serving', 'serving']]);
  life.end();
});

test('ends once, at rest, too, and is not woken again', () => {
  for (const isAwake of [true, false]) {
    const { life, seen } = begin();
    life.wake();
    if (!isAwake) life.rest();
    life.end();
    life.end();
    life.wake();
    life.look(false);
    assert.equal(seen, ['serving', 'ended']);
  }
});

test.run();
