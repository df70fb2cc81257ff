// The root of one gateway: starts supervisors and outlives them.
// What a supervisor does is in template.machine.spec.ts.

import * as assert from 'uvu/assert';
import { type Actor, createActor, SimulatedClock } from 'xstate';
import { rootMachine } from '../../src/actors/template.machine.ts';
import { DEFAULT_POLICY } from '../../src/domain/policy.ts';
import { ScriptedOpener } from '../helpers/scripted-transport.ts';
import { suite } from '../helpers/suite.ts';
import { definition, settled } from './instances/instance-harness.ts';

const test = suite('root machine');

function started(): Actor<typeof rootMachine> {
  const root = createActor(rootMachine, { clock: new SimulatedClock() });
  root.start();
  return root;
}

/** Starts one instance of the template; its clock throws when `isBroken`. */
function add(root: Actor<typeof rootMachine>, template: string, isBroken = false) {
  const opener = new ScriptedOpener();
  const now = (): number => {
    if (isBroken) throw new Error('the clock is broken');
    return 0;
  };
  root.getSnapshot().children[template]?.send({
    type: 'instance.add',
    actorId: 'a#1',
    input: {
      definition: definition({ template }),
      policy: DEFAULT_POLICY,
      open: opener.open,
      now,
      random: () => 0.5,
      alarm: () => () => undefined,
    },
  });
  return opener;
}

test('starts one supervisor per template, at once', () => {
  const root = started();
  root.send({ type: 'template.open', template: 'weather' });
  root.send({ type: 'template.open', template: 'my.other-template' });
  assert.equal(Object.keys(root.getSnapshot().children), ['weather', 'my.other-template']);
  root.stop();
});

test('is not touched by an instance that breaks', () => {
  const root = started();
  root.send({ type: 'template.open', template: 'weather' });
  add(root, 'weather', true);
  assert.is(root.getSnapshot().status, 'active');
  assert.is(root.getSnapshot().children.weather?.getSnapshot().status, 'active');
  root.stop();
});

test('outlives a supervisor that breaks, and forgets it, so that the template can be opened again', () => {
  const root = started();
  root.send({ type: 'template.open', template: 'weather' });
  root.send({ type: 'template.open', template: 'other' });
  // A supervisor has no way to break that we know of; this is what it would say.
  root.send({ type: 'xstate.error.actor.weather', actorId: 'weather', error: new Error('it broke') });
  assert.is(root.getSnapshot().status, 'active');
  assert.equal(Object.keys(root.getSnapshot().children), ['other']);
  root.send({ type: 'template.open', template: 'weather' });
  assert.equal(Object.keys(root.getSnapshot().children), ['other', 'weather']);
  root.stop();
});

test('stops everything below with itself', async () => {
  const root = started();
  root.send({ type: 'template.open', template: 'weather' });
  const opener = add(root, 'weather');
  const transport = opener.last.succeed();
  await settled();
  root.stop();
  assert.is(transport.isClosed, true);
});

test('does not see the templates of another root', () => {
  const [one, other] = [started(), started()];
  one.send({ type: 'template.open', template: 'weather' });
  assert.equal(Object.keys(other.getSnapshot().children), []);
  one.stop();
  assert.is(other.getSnapshot().status, 'active');
  other.stop();
});

test.run();
