// A request whose session another life holds, in simulated time and many orders: what the holder answers, whether its life has ended, and what
// this node finds in the row meanwhile.

import { mock } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import type { Peer } from '../../../src/cluster/channel/peer-client.ts';
import { codeOf } from '../../../src/domain/errors/errors.ts';
import { sessionNotFound } from '../../../src/domain/errors/session-errors.ts';
import { NotHolder } from '../../../src/domain/nodes/forwarding.ts';
import { serveAtHolder } from '../../../src/http/forwarding/serve-at-holder.ts';
import { againWith, chosenSeed, Dice } from '../../helpers/dice.ts';
import { suite } from '../../helpers/suite.ts';
import { simulatedClock, simulateTime } from '../../helpers/time/simulated-time.ts';

const test = suite('a request of a session that another life holds');
simulateTime(test);

/** `not here`: not carried out, because the session is not there. */
type Outcome = 'answered' | 'not here' | 'failed';
/** One round: the life that the row names, whether it has ended, how its node answers, and what this node finds next. */
interface Round {
  readonly life: string;
  readonly hasEnded: boolean;
  readonly there: Outcome;
  readonly here: Outcome;
}

interface Run {
  readonly steps: readonly string[];
  readonly outcome: string;
  readonly tookMs: number;
}

function peerWith(life: string): Peer {
  const forward = (): never => {
    throw new Error('`forwardTo` does it');
  };
  return { node: life, forward };
}

/** Plays the rounds, the last one again and again. */
async function play(rounds: readonly Round[]): Promise<Run> {
  const steps: string[] = [];
  let round = 0;
  const present = (): Round => rounds[Math.min(round, rounds.length - 1)] ?? SILENT;
  const next = (): string => rounds[Math.min(round + 1, rounds.length - 1)]?.life ?? '';
  const come = (place: string, outcome: Outcome, life: string | undefined): void => {
    steps.push(`${outcome} ${place}`);
    if (outcome === 'not here') throw new NotHolder(life);
    if (outcome === 'failed') throw sessionNotFound();
  };
  const startedAtMs = simulatedClock.now();
  let outcome: string | undefined;
  void serveAtHolder(new NotHolder(present().life), {
    peerOf: (life) => (present().hasEnded ? undefined : peerWith(life)),
    forwardTo: async ({ node }) => come(`at ${node}`, present().there, undefined),
    serveHere: async () => {
      const { here } = present();
      const life = next();
      round += 1;
      come('here', here, life);
    },
    clock: simulatedClock,
  }).then(
    () => {
      outcome = 'answered';
    },
    (thrown) => {
      outcome = codeOf(thrown) ?? String(thrown);
    },
  );
  while (outcome === undefined && simulatedClock.now() - startedAtMs < 60_000) {
    for (let left = 3; left > 0; left -= 1) await turn();
    if (outcome === undefined) mock.timers.tick(50);
  }
  return { steps, outcome: outcome ?? 'none', tookMs: simulatedClock.now() - startedAtMs };
}

const LIVE: Round = { life: 'b', hasEnded: false, there: 'answered', here: 'not here' };
const SILENT: Round = { ...LIVE, there: 'not here' };

for (const [name, rounds, steps, outcome] of [
  ['its holder is live', [LIVE], ['answered at b'], 'answered'],
  [
    'its holder does not have it any more, and this node may claim it',
    [{ ...SILENT, here: 'answered' }],
    ['not here at b', 'answered here'],
    'answered',
  ],
  [
    'the life of its holder has ended, and this node may claim it',
    [{ ...LIVE, hasEnded: true, here: 'answered' }],
    ['answered here'],
    'answered',
  ],
  [
    'a third node was first',
    [{ ...SILENT }, { ...LIVE, life: 'c' }],
    ['not here at b', 'not here here', 'answered at c'],
    'answered',
  ],
  ['its holder refuses it', [{ ...LIVE, there: 'failed' }], ['failed at b'], 'SESSION_NOT_FOUND'],
  [
    'no node may continue it',
    [{ ...SILENT, here: 'failed' }],
    ['not here at b', 'failed here'],
    'SESSION_NOT_FOUND',
  ],
] as const satisfies readonly (readonly [string, readonly Round[], readonly string[], string])[])
  test(name, async () => {
    const run = await play(rounds);
    assert.equal([run.steps, run.outcome], [steps, outcome]);
  });

test('a holder that never has it, and a row that always names it: NODE_UNAVAILABLE after 15 s', async () => {
  for (const round of [SILENT, { ...SILENT, hasEnded: true }]) {
    const { outcome, tookMs, steps } = await play([round]);
    assert.is(outcome, 'NODE_UNAVAILABLE');
    assert.ok(tookMs >= 15_000 && tookMs <= 15_200, `${tookMs} ms`);
    assert.ok(steps.length <= 2 * 152, `${steps.length} steps`);
  }
});

test('waits for silent nodes, and one before them, add up to 15 s', async () => {
  const startedAtMs = simulatedClock.now();
  let outcome: string | undefined;
  void serveAtHolder(new NotHolder('b', startedAtMs - 9_000), {
    peerOf: peerWith,
    forwardTo: async (_peer, untilMs) => {
      const waitMs = Math.min(15_000, untilMs - simulatedClock.now());
      await new Promise<void>((resolve) => void simulatedClock.alarm(waitMs, resolve));
      throw new NotHolder(undefined, startedAtMs);
    },
    serveHere: async () => {
      throw new NotHolder('c');
    },
    clock: simulatedClock,
  }).catch((thrown) => {
    outcome = codeOf(thrown);
  });
  while (outcome === undefined && simulatedClock.now() - startedAtMs < 60_000) {
    for (let left = 5; left > 0; left -= 1) await turn();
    if (outcome === undefined) mock.timers.tick(50);
  }
  const tookMs = simulatedClock.now() - startedAtMs;
  assert.is(outcome, 'NODE_UNAVAILABLE');
  assert.ok(tookMs >= 6_000 && tookMs <= 6_300, `${tookMs} ms`);
});

test('in every order it is carried out once at most, its first answer counts, and it ends', async () => {
  const seed = chosenSeed();
  const dice = new Dice(seed);
  for (let runs = 0; runs < 300; runs += 1) {
    const rounds = Array.from(
      { length: 1 + dice.below(6) },
      (): Round => ({
        life: dice.pick(['b', 'c', 'd']),
        hasEnded: dice.below(3) === 0,
        there: dice.pick(['not here', 'not here', 'answered', 'failed']),
        here: dice.pick(['not here', 'not here', 'not here', 'answered', 'failed']),
      }),
    );
    const { steps, outcome, tookMs } = await play(rounds);
    const hint = `${JSON.stringify(rounds)}: ${steps.slice(0, 20)}, ${outcome}; ${againWith(seed)}`;
    const decisive = steps.findIndex((step) => !step.startsWith('not here'));
    assert.is(decisive === -1 ? steps.length - 1 : decisive, steps.length - 1, hint);
    const wanted =
      decisive === -1
        ? 'NODE_UNAVAILABLE'
        : steps[decisive]?.startsWith('answered')
          ? 'answered'
          : 'SESSION_NOT_FOUND';
    assert.is(outcome, wanted, hint);
    assert.ok(tookMs <= 15_200, hint);
  }
});

test.run();
