// The short way of counting must mean what the machine means: two instances, one with it and one without, go through the
// same made-up story and are compared after every step.

import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { instanceMachine } from '../../../src/actors/instances/instance.machine.ts';
import { instanceLogic } from '../../../src/actors/instances/instance-logic.ts';
import { suite } from '../../helpers/suite.ts';
import { type Caller, Stage, settled } from './instance-stage.ts';

const test = suite('instance logic', { timeoutMs: 60_000 });

/** An instance and its callers, oldest first. */
interface World {
  readonly stage: Stage;
  readonly callers: Caller[];
}

const steps: readonly ((world: World, choice: number) => void)[] = [
  ({ stage }) => stage.opener.last.succeed(),
  ({ stage }) => stage.opener.last.fail(),
  ({ stage }) => stage.opener.transports.at(-1)?.lose(),
  ({ stage, callers }) => void callers.push(stage.call()),
  ({ stage, callers }) =>
    void callers.push(stage.call(undefined, () => callers.length < 20 && callers.push(stage.call()))),
  ({ stage }, choice) => stage.opener.transports.at(-1)?.open[choice]?.result(),
  ({ callers }, choice) => callers[choice]?.subscription?.unsubscribe(),
  ({ stage }) => stage.ref.drain(),
  ({ stage }) => stage.ref.resume(),
  ({ stage }) => stage.ref.restart(),
  ({ stage }, choice) => stage.ref.leave(choice * 100),
  ({ stage }, choice) => stage.clock.increment(choice * 1_000),
];

test('goes through any story like the machine itself', async () => {
  const story = fc.array(fc.tuple(fc.nat(steps.length - 1), fc.nat(5)), { maxLength: 40 });
  await fc.assert(
    fc.asyncProperty(story, async (chosen) => {
      const worlds = [instanceLogic, instanceMachine].map((logic) => ({
        stage: new Stage({ logic }),
        callers: [],
      }));
      try {
        for (const [step, choice] of [[0, 0] as const, ...chosen]) {
          for (const world of worlds) steps[step]?.(world, choice);
          await settled();
          const [short, long] = worlds.map(described);
          assert.equal(short, long);
        }
      } finally {
        for (const { stage } of worlds) stage.close();
      }
    }),
    { numRuns: 150 },
  );
});

test('counts without a walk: the state tree stays the very same', async () => {
  const stage = new Stage();
  await stage.healthy();
  const before = stage.actor.getSnapshot();
  stage.call();
  const during = stage.actor.getSnapshot();
  assert.is(during.context.statistics.inFlight, 1);
  assert.is(during.value, before.value);
  stage.close();
});

test('lets the machine count while somebody waits for the last call', async () => {
  const stage = new Stage();
  const transport = await stage.healthy();
  stage.call();
  stage.ref.leave(1_000);
  assert.is(stage.ref.state, 'draining');
  transport.open[0]?.result();
  await settled();
  assert.is(stage.ref.state, 'stopped');
  stage.close();
});

test.run();

/** Everything that can be seen of an instance. */
function described({ stage, callers }: World) {
  const { value, context, status } = stage.actor.getSnapshot();
  const endings = callers.map(({ ends, error }) => [ends, error?.code, error?.delivered]);
  return {
    value,
    status,
    statistics: context.statistics,
    reason: context.reason,
    states: stage.states,
    endings,
  };
}
