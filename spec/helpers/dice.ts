// Chance that comes again: the same seed, the same numbers. Every actor of a journey has dice of its own, so that what one
// of them does changes nothing for the others.

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
  #state: number;

  constructor(seed: number) {
    this.#state = seed | 0;
  }

  /** In [0, 1): mulberry32. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
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
