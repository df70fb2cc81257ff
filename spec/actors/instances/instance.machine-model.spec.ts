// Whatever happens to an instance, in whatever order: it counts its calls in flight, no caller waits for ever, and it ends
// when it has to. Sequences are made up by fast-check; a failing one is printed with its seed.

import { setImmediate as settled } from 'node:timers/promises';
import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { RPC } from '../../../src/domain/jsonrpc.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { STDIO } from '../../helpers/failing-backend.ts';
import type { ScriptedTransport } from '../../helpers/scripted-transport.ts';
import { suite } from '../../helpers/suite.ts';
import { type Caller, Harness } from './instance-harness.ts';

const test = suite('instance machine, model', { timeoutMs: 60_000 });

/** An instance in the hands of the model, and all its callers so far. */
interface World {
  readonly harness: Harness;
  readonly callers: Caller[];
}

interface Step {
  readonly name: string;
  /** A number the step may use to choose: which call, how long. */
  readonly choice: number;
}

const latest = ({ harness }: World): ScriptedTransport | undefined => harness.opener.transports.at(-1);
const oneOf = <T>(all: readonly T[], choice: number): T | undefined => all[choice % Math.max(1, all.length)];

const steps: Readonly<Record<string, (world: World, choice: number) => void>> = {
  'the opening succeeds': ({ harness }) => harness.opener.last.succeed(),
  'the opening fails': ({ harness }) => harness.opener.last.fail(),
  'the opening heeds no signal': ({ harness }) => {
    harness.opener.heedsSignal = false;
  },
  'the session is lost': (world) => latest(world)?.lose(),
  'the session closes slowly': (world) => {
    const transport = latest(world);
    if (transport !== undefined) transport.closesSlowly = true;
  },
  'the session has closed': (world) => latest(world)?.finishClosing(),
  'a call comes': ({ harness, callers }) => callers.push(harness.call()),
  'a call comes that is followed by another': ({ harness, callers }) => {
    callers.push(harness.call(undefined, () => callers.length < 50 && callers.push(harness.call())));
  },
  'a request is answered': (world, choice) => oneOf(latest(world)?.open ?? [], choice)?.result(),
  'a request is refused': (world, choice) =>
    oneOf(latest(world)?.open ?? [], choice)?.refuse(RPC.internalError),
  'a request makes progress': (world, choice) =>
    oneOf(latest(world)?.open ?? [], choice)?.notify('notifications/progress'),
  'a call is cancelled': ({ callers }, choice) => oneOf(callers, choice)?.subscription?.unsubscribe(),
  'a call finds nobody': ({ harness }) =>
    harness.actor.send({ type: 'unreachable', reason: 'connection refused' }),
  'a call finds garbage': ({ harness }) => harness.actor.send({ type: 'suspected' }),
  drain: ({ harness }) => harness.ref.drain(),
  resume: ({ harness }) => harness.ref.resume(),
  restart: ({ harness }) => harness.ref.restart(),
  leave: ({ harness }, choice) => harness.ref.leave(choice * 100),
  'a moment passes': ({ harness }, choice) => harness.clock.increment(choice * 10),
  'a while passes': ({ harness }, choice) => harness.clock.increment(choice * 1_000),
  'what is promised happens': () => undefined,
};

const anyStep: fc.Arbitrary<Step> = fc.record({
  name: fc.constantFrom(...Object.keys(steps)),
  choice: fc.nat({ max: 99 }),
});

/** What holds at every moment. */
function holds({ harness, callers }: World): void {
  const { ref, actor } = harness;
  const { context, status, value } = actor.getSnapshot();
  const waiting = callers.filter(
    ({ ends, subscription }) => ends === 0 && subscription?.closed === false,
  ).length;
  assert.is(ref.inFlight, waiting, 'in flight are as many calls as callers wait');
  const waitsForCalls = ['leaving', 'restarting', 'restartingDrained'].includes(value.duty);
  if (status === 'active' && waitsForCalls)
    assert.not(context.calls.isIdle, 'it waits for calls, not in vain');
  assert.ok(
    callers.every(({ ends }) => ends <= 1),
    'no caller gets two ends',
  );
  assert.not(status === 'error', 'it never breaks');
  if (ref.state === 'healthy')
    assert.is(latest({ harness, callers })?.isClosed, false, 'a healthy one has a session');
  assert.is(ref.state === 'healthy', harness.states.at(-1) === 'healthy', 'state and stream agree');
  const left = harness.opener.transports.slice(0, -1);
  assert.ok(
    left.every(({ isClosed }) => isClosed),
    'no session is forgotten',
  );
}

/** Made to leave at last, or stopped from above: everything ends, all callers are answered, nothing stays open. */
async function ends(world: World, isStopped: boolean): Promise<void> {
  const { harness, callers } = world;
  if (isStopped) harness.actor.stop();
  else harness.ref.leave(1_000);
  for (const waitMs of isStopped ? [0] : [1_000, LIMITS.drainMs]) await harness.pass(waitMs);
  assert.equal([harness.ref.state, harness.states.at(-1), harness.ref.inFlight], ['stopped', 'stopped', 0]);
  if (!harness.opener.heedsSignal) harness.opener.last.succeed();
  await settled();
  assert.ok(
    harness.opener.transports.every(({ isClosed }) => isClosed),
    'nothing stays open',
  );
  assert.ok(
    callers.every((caller) => caller.ends === 1 || caller.subscription?.closed),
    'no caller waits',
  );
  const opened = harness.opener.openings.length;
  await harness.pass(3_600_000);
  assert.is(harness.opener.openings.length, opened, 'it does not come back');
}

async function play(script: readonly Step[], settles: boolean, isStopped: boolean): Promise<void> {
  const world: World = { harness: new Harness({ fields: STDIO }), callers: [] };
  try {
    for (const { name, choice } of script) {
      steps[name]?.(world, choice);
      if (settles || name === 'what is promised happens') await settled();
      if (settles) holds(world);
    }
    await settled();
    holds(world);
    await ends(world, isStopped);
  } finally {
    world.harness.close();
    await settled();
  }
}

const scripts = fc.array(anyStep, { minLength: 1, maxLength: 40 });

test('keeps its invariants when every step settles before the next', async () => {
  await fc.assert(
    fc.asyncProperty(scripts, fc.boolean(), (script, isStopped) => play(script, true, isStopped)),
    { numRuns: 400 },
  );
});

test('keeps its invariants when steps coincide', async () => {
  await fc.assert(
    fc.asyncProperty(scripts, fc.boolean(), (script, isStopped) => play(script, false, isStopped)),
    { numRuns: 400 },
  );
});

test.run();
