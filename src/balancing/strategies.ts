// The strategies. Each chooses one of the candidates that may take a call. The pool decides which may: not those that
// are full, ejected or already tried. Unhealthy and draining instances are not candidates. Source: ADR 7.

import { consistentHash } from './consistent-hash.ts';
import { bestLatencyMs, healthScore } from './health-score.ts';
import type { Candidate, Strategy, StrategyRow } from './strategy-types.ts';
import { weightedRoundRobin } from './weighted-round-robin.ts';

/** The most candidates that `least_connections` compares for a call: the next ones in turn. Source: ADR 7. */
const MAX_COMPARED = 64;
/** The most candidates whose scores `health_based` computes for a call. */
const MAX_SCORED = 16;
/** The number of draws of candidates that may not take the call, before all candidates are asked. */
const MAX_VAIN_DRAWS = 8;
/** The least probability of a candidate of `health_based`, as a share of the best candidate's. */
const FLOOR = 0.05;

/** All strategies, by their names in settings. */
export const STRATEGIES = table({
  /**
   * Takes the candidates in turn, in the order of their ids. While the candidates stay the same, the counts of any two differ
   * by at most one.
   */
  round_robin: {
    meaning: 'each in turn',
    create: () => inTurns(() => 0),
  },

  /**
   * The fewest calls, those of other nodes included; of equal numbers, those of this node first. Further ones take turns, so that
   * an idle pool is used evenly. Among more than MAX_COMPARED candidates, the first idle one in turn, or else the lowest of the
   * next MAX_COMPARED. The count is right only if the send that counts follows the pick without an `await`.
   */
  least_connections: {
    meaning: 'the one with the fewest calls in flight',
    create: () =>
      inTurns((candidate) =>
        candidate.isElsewhere
          ? candidate.activeCalls + (candidate.otherCalls ?? 0) + 0.5
          : candidate.activeCalls,
      ),
  },

  /** Smooth weighted round robin: see weighted-round-robin.ts. */
  weighted_round_robin: {
    meaning: 'each in turn, by weight',
    create: () => weightedRoundRobin(),
  },

  /**
   * Draws with a probability proportional to the score squared: half the score, a quarter of the calls. The least probability is
   * 5 % of the greatest, so that a recovered instance is noticed. When all scores are 0, all probabilities are equal. More than
   * MAX_SCORED candidates are sampled first.
   */
  health_based: {
    meaning: 'more often to those with better health scores',
    create: ({ random }) => {
      return (candidates, mayTake) => {
        const scored = sample(candidates, mayTake, MAX_SCORED, random);
        const best = bestLatencyMs(scored);
        const scores = scored.map((candidate) => healthScore(candidate, best));
        const floor = Math.max(...scores) ** 2 * FLOOR;
        const chances = scores.map((score) => (floor === 0 ? 1 : Math.max(score ** 2, floor)));
        let rest = random() * sum(chances);
        const drawn = scored.find((_, index) => {
          rest -= chances[index] ?? 0;
          return rest < 0;
        });
        return drawn ?? scored.at(-1); // a rounding remainder belongs to the last one
      };
    },
  },

  /** Every candidate with the same probability; weights and load are ignored. The only strategy without a memory. */
  random: {
    meaning: 'any, by chance',
    create: ({ random }) => {
      return (candidates, mayTake) => {
        const drawn = sample(candidates, mayTake, 1, random);
        return drawn[Math.floor(random() * drawn.length)];
      };
    },
  },

  /** Bounded loads: see consistent-hash.ts. Without a hash (an anonymous caller, no such argument) as `round_robin`. */
  consistent_hash: {
    meaning:
      'the same one for the same caller or argument, while that is not busier than 1.25 times the mean',
    create: (options) =>
      consistentHash(
        inTurns(() => 0),
        options,
      ),
  },
});

export const STRATEGY_NAMES = Object.keys(STRATEGIES) as (keyof typeof STRATEGIES)[];

function table<Name extends string>(rows: Readonly<Record<Name, StrategyRow>>) {
  return rows;
}

/**
 * Chooses the lowest load among the next MAX_COMPARED candidates; equal ones take turns, and no load is below 0.
 * Remembers one id.
 *
 * The turn only moves forward over ids, so it cannot skip a present one: two candidates that may always take calls alternate
 * strictly, whatever the others do. An index into a changing list would favour some and starve others.
 */
function inTurns<C extends Candidate>(loadOf: (candidate: C) => number): Strategy<C> {
  let lastId = '';
  return (candidates, mayTake) => {
    const { length } = candidates;
    const first = firstAfter(candidates, lastId);
    let chosen: C | undefined;
    let least = Number.POSITIVE_INFINITY;
    for (let step = 0, compared = 0; step < length && compared < MAX_COMPARED && least > 0; step += 1) {
      const candidate = candidates[(first + step) % length];
      if (candidate === undefined || !mayTake(candidate)) continue;
      compared += 1;
      const load = loadOf(candidate);
      if (load >= least) continue;
      chosen = candidate;
      least = load;
    }
    lastId = chosen?.id ?? lastId;
    return chosen;
  };
}

/**
 * The index of the first candidate with a greater id, or the length of the list if there is none.
 * `candidates` are in the order of their ids.
 */
export function firstAfter(candidates: readonly Candidate[], id: string): number {
  let [low, high] = [0, candidates.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((candidates[middle]?.id ?? '') > id) high = middle;
    else low = middle + 1;
  }
  return low;
}

/**
 * All candidates that may take the call if the list is no longer than `size`, or draws find none; otherwise at
 * most `size` random ones, some perhaps twice.
 */
function sample<C>(
  candidates: readonly C[],
  mayTake: (candidate: C) => boolean,
  size: number,
  random: () => number,
): readonly C[] {
  if (candidates.length <= size) return candidates.filter(mayTake);
  const drawn: C[] = [];
  for (let draws = 0; draws < size + MAX_VAIN_DRAWS && drawn.length < size; draws += 1) {
    const candidate = candidates[Math.floor(random() * candidates.length)];
    if (candidate !== undefined && mayTake(candidate)) drawn.push(candidate);
  }
  return drawn.length > 0 ? drawn : candidates.filter(mayTake);
}

function sum(numbers: readonly number[]): number {
  let total = 0;
  for (let index = 0; index < numbers.length; index += 1) total += numbers[index] ?? 0;
  return total;
}
