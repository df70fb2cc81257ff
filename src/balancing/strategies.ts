// The strategies: each chooses among candidates that may all receive the request. The pool has removed unhealthy, draining, full and
// already tried ones. Config, OpenAPI and the command line take the names from policy.ts; the compiler compares both.
// Source: ADR 7.

import { bestLatencyMs, healthScore, type Measured } from './health-score.ts';

/** An instance as strategies see it. Reading is cheap: the numbers are in memory. */
export interface Candidate extends Measured {
  /** Unique in the pool. */
  readonly id: string;
  /** Positive integer. */
  readonly weight: number;
  readonly inFlight: number;
  /** Most exchanges; at this number the pool leaves the candidate out. */
  readonly capacity: number;
}

/** Chooses one candidate, synchronously. May remember earlier choices. */
export type Strategy = <C extends Candidate>(candidates: readonly [C, ...C[]]) => C;

interface StrategyOptions {
  /** Returns [0, 1). Default: Math.random. */
  readonly random?: () => number;
}

/** Makes a strategy with its own memory. */
export type StrategyFactory = (options?: StrategyOptions) => Strategy;

interface StrategyRow {
  /** Completes "a call goes to ...". */
  readonly meaning: string;
  readonly create: StrategyFactory;
}

/** The least probability of a candidate of `health_based`, as a share of the best candidate's. */
const FLOOR = 0.05;
/** Most absent candidates (full, down, gone) whose credits `weighted_round_robin` remembers; above it all credits are forgotten. */
const MOST_AWAY = 1_000;
/** Credits that differ by less than this, a rounding error, are equal: the first in the list comes first. */
const ROUNDING = 1e-9;

/** Every strategy by the name it has in settings. */
export const STRATEGIES = {
  /** In the order of their ids. While the candidates stay the same, no two counts differ by more than one. */
  round_robin: {
    meaning: 'each in turn',
    create: () => inTurns(() => 0),
  },

  /**
   * The lowest `inFlight`; candidates with equal numbers take turns, so that an idle pool is used evenly. The count is right only if
   * the send that counts follows the pick without an `await`.
   */
  least_connections: {
    meaning: 'the one with the fewest calls in flight',
    create: () => inTurns((candidate, chosen) => candidate.inFlight - chosen.inFlight),
  },

  /**
   * Smooth weighted round robin, keyed by id. At every pick each candidate earns its share of one call; the candidate with the
   * highest credit gets the call and pays for it. Over as many calls as the sum of the weights, each candidate gets exactly its
   * weight: 3:1 over 8 picks gives 6:2. Weights are read at every pick.
   *
   * Credit is counted in calls, not in weights as in the common form of the algorithm. The order is the same while the candidates
   * stay; but when a heavy one leaves, the light ones have about one call of credit at most, not the whole weight, which would be
   * spent in one long run. Absent candidates neither earn nor pay.
   */
  weighted_round_robin: {
    meaning: 'each in turn, by weight',
    create: () => {
      const credits = new Map<string, number>();
      return (candidates) => {
        const weights = sum(candidates.map(({ weight }) => weight));
        let [chosen] = candidates;
        let highest = Number.NEGATIVE_INFINITY;
        for (const candidate of candidates) {
          const credit = (credits.get(candidate.id) ?? 0) + candidate.weight / weights;
          credits.set(candidate.id, credit);
          if (credit > highest + ROUNDING) {
            highest = credit;
            chosen = candidate;
          }
        }
        credits.set(chosen.id, highest - 1);
        if (credits.size > candidates.length + MOST_AWAY) credits.clear();
        return chosen;
      };
    },
  },

  /**
   * Draws with a probability proportional to the score squared: half the score, a quarter of the calls. The least probability is
   * 5 % of the greatest, so that a recovered instance is noticed. When all scores are 0, all probabilities are equal.
   */
  health_based: {
    meaning: 'more often to those with better health scores',
    create: ({ random = Math.random } = {}) => {
      return (candidates) => {
        const best = bestLatencyMs(candidates);
        const scores = candidates.map((candidate) => healthScore(candidate, best));
        const floor = Math.max(...scores) ** 2 * FLOOR;
        const chances = scores.map((score) => (floor === 0 ? 1 : Math.max(score ** 2, floor)));
        let rest = random() * sum(chances);
        const drawn = candidates.find((_, index) => {
          rest -= chances[index] ?? 0;
          return rest < 0;
        });
        return drawn ?? candidates.at(-1) ?? candidates[0]; // a rounding remainder belongs to the last one
      };
    },
  },

  /** Every candidate with the same probability; weights and load are ignored. The only strategy without a memory. */
  random: {
    meaning: 'any, by chance',
    create: ({ random = Math.random } = {}) => {
      return (candidates) => candidates[Math.floor(random() * candidates.length)] ?? candidates[0];
    },
  },
} satisfies Readonly<Record<string, StrategyRow>>;

export const STRATEGY_NAMES = Object.keys(STRATEGIES) as (keyof typeof STRATEGIES)[];

/** Chooses the lowest by that comparison; equal candidates take turns. Remembers one id. */
function inTurns(compare: (candidate: Candidate, chosen: Candidate) => number): Strategy {
  let lastId = '';
  return (candidates) => {
    let [chosen] = candidates;
    for (const candidate of candidates) {
      const difference = compare(candidate, chosen);
      if (difference < 0 || (difference === 0 && comesSooner(candidate.id, chosen.id, lastId)))
        chosen = candidate;
    }
    lastId = chosen.id;
    return chosen;
  };
}

/**
 * True when `first` comes sooner than `second` in the cycle of ids that starts after `last`; `last` itself comes at the end. An
 * empty `last` means that no candidate had a turn yet.
 *
 * The turn only moves forward over ids, so it cannot skip a present one: two candidates that are always eligible alternate
 * strictly, whatever the others do. An index into a changing list would favour some and starve others.
 */
function comesSooner(first: string, second: string, last: string): boolean {
  const firstIsAhead = first > last;
  const secondIsAhead = second > last;
  return firstIsAhead === secondIsAhead ? first < second : firstIsAhead;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
