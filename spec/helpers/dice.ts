// Chance that comes again: the same seed, the same numbers. Every actor of a journey has dice of its own, so that what one
// of them does changes nothing for the others.

import { seeded } from '../balancing/candidates.ts';

/** The variable that chooses the seed; without it the journey is the same every time. */
const VARIABLE = 'STAGEDOOR_CHAOS_SEED';
const usualSeed = 20_261_120;

/** The seed of this run. */
export function chosenSeed(environment: NodeJS.ProcessEnv = process.env): number {
  const said = Number(environment[VARIABLE]);
  return Number.isSafeInteger(said) && said > 0 ? said : usualSeed;
}

/** How to do the same again. */
export function againWith(seed: number): string {
  return `again with ${VARIABLE}=${seed}`;
}

export class Dice {
  /** In [0, 1). */
  readonly next: () => number;

  constructor(seed: number) {
    this.next = seeded(seed);
  }

  /** A whole number from 0 on, below `bound`. */
  below(bound: number): number {
    return Math.floor(this.next() * bound);
  }

  /** One of them; throws when there is none. */
  pick<T>(these: readonly T[]): T {
    const picked = these[this.below(these.length)];
    if (picked === undefined) throw new Error('there is nothing to pick from');
    return picked;
  }

  /** One of them, as often as its weight says. */
  weighted<T extends { readonly weight: number }>(these: readonly T[]): T {
    return this.pick(these.flatMap((one) => Array.from({ length: one.weight }, () => one)));
  }
}
