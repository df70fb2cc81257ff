// The states of a parked call on a simulated clock: what happens when, and what does not.

import * as assert from 'uvu/assert';
import { createActor, SimulatedClock } from 'xstate';
import { type ParkedCallEvent, parkedCallMachine } from '../../../src/actors/parked-calls/parked-call.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the machine of a parked call');

test('asks once, after it has gathered', () => {
  const { clock, actions } = start();
  clock.increment(4);
  assert.equal(actions, []);
  clock.increment(1);
  clock.increment(LIMITS.parkedCallMs - 1);
  assert.equal(actions, ['ask']);
});

test('expires when the client does not return', () => {
  const { clock, actions, actor } = start();
  clock.increment(5);
  clock.increment(LIMITS.parkedCallMs);
  assert.equal(actions, ['ask', 'expire']);
  assert.is(actor.getSnapshot().status, 'done');
});

test('does not expire while it runs, and gathers again when it is asked again', () => {
  const { clock, actions, tell } = start();
  clock.increment(5);
  tell('resumed');
  clock.increment(2 * LIMITS.parkedCallMs);
  assert.equal(actions, ['ask']);
  tell('asked');
  clock.increment(5);
  assert.equal(actions, ['ask', 'ask']);
});

test('further requests change nothing while it gathers or waits', () => {
  const { clock, actions, tell } = start();
  clock.increment(3);
  tell('asked');
  clock.increment(2);
  tell('asked');
  clock.increment(5);
  assert.equal(actions, ['ask']);
});

for (const harness of ['gathering', 'parked', 'running'] as const) {
  test(`ends from ${harness} without an action`, () => {
    const { clock, actions, tell, actor } = start();
    if (harness !== 'gathering') clock.increment(5);
    if (harness === 'running') tell('resumed');
    assert.is(actor.getSnapshot().value, harness);
    tell('over');
    clock.increment(2 * LIMITS.parkedCallMs);
    assert.equal([actions.includes('expire'), actor.getSnapshot().status], [false, 'done']);
  });
}

test.run();

function start() {
  const actions: string[] = [];
  const clock = new SimulatedClock();
  const input = {
    ownerId: 'ann',
    ask: () => void actions.push('ask'),
    expire: () => void actions.push('expire'),
  };
  const actor = createActor(parkedCallMachine, { clock, input });
  actor.start();
  return { clock, actions, actor, tell: (type: ParkedCallEvent['type']) => actor.send({ type }) };
}
