// Actors are started under the supervisor of their template, and what becomes of them is told.

import { setImmediate as turn } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { InstanceSupervisor } from '../../src/actors/instance-supervisor.ts';
import { DEFAULT_POLICY } from '../../src/domain/policy.ts';
import { ScriptedOpener } from '../helpers/scripted-transport.ts';
import { suite } from '../helpers/suite.ts';
import { definition } from './instances/instance-harness.ts';

const test = suite('nursery');

test('tells of an actor that broke, once, and starts others after it', async () => {
  const { supervisor, start, crashes } = open();
  const { ref, opener } = start('r', undefined, true);
  opener.last.succeed();
  await turn();
  assert.equal(crashes, [[ref, 'the clock is broken']]);
  const next = start('r');
  assert.is(next.ref.state, 'starting');
  supervisor.stop();
});

test.run();

function open() {
  const crashes: unknown[] = [];
  const supervisor = new InstanceSupervisor(({ ref }, error) => {
    crashes.push([ref, error instanceof Error ? error.message : error]);
  });
  const start = (template: string, before?: Promise<unknown>, isBroken = false) => {
    const opener = new ScriptedOpener();
    let isStarted = false;
    const now = () => {
      if (isBroken && isStarted) throw new Error('the clock is broken');
      return 0;
    };
    const ref = supervisor.start(
      {
        definition: definition({ template }),
        policy: DEFAULT_POLICY,
        open: opener.open,
        now,
        random: () => 0.5,
        alarm: () => () => undefined,
      },
      before,
    );
    isStarted = true;
    return { ref, opener };
  };
  return { supervisor, start, crashes };
}
