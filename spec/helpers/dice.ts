// Repeatable random choices: the same seed gives the same numbers. Each client of a spec has its own dice, so that one
// client's choices do not depend on the others.

import { seeded } from '../balancing/candidates.ts';

/** The variable with the seed; without it every run uses the same one. */
const VARIABLE = 'STAGEDOOR_CHAOS_SEED';
const usualSeed = 20_261_120;

/** The seed of this run. */
export function chosenSeed(environment: NodeJS.ProcessEnv = process.env): number {
  const seed = Number(environment[VARIABLE]);
  return Number.isSafeInteger(seed) && seed > 0 ? seed : usualSeed;
}

/** The hint for repeating a failed run. */
export function againWith(seed: number): string {
  return `again with ${VARIABLE}=${seed}`;
}

export class Dice {
  /** In [0, 1). */
  readonly next: () => number;

  constructor(seed: number) {
    this.next = seeded(seed);
  }

  /** An integer in [0, bound). */
  below(bound: number): number {
    return Math.floor(this.next() * bound);
  }

  /** One of them at random; throws when there is none. */
  pick<T>(these: readonly T[]): T {
    const picked = these[this.below(these.length)];
    if (picked === undefined) throw new Error('there is nothing to pick from');
    return picked;
  }

  /** One of them at random, with probability proportional to its weight. */
  weighted<T extends { readonly weight: number }>(these: readonly T[]): T {
    return this.pick(these.flatMap((one) => Array.from({ length: one.weight }, () => one)));
  }
}
