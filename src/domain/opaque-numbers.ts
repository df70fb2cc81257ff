// Replaces consecutive numbers that callers can see, which would reveal how much all callers do. It keeps no state
// besides its key.

import { createCipheriv, randomBytes } from 'node:crypto';

const HALF_BITS = 24;
const HALF = 2 ** HALF_BITS;
/** The numbers that can be hidden are the integers from 0 to this one, exclusive. */
export const OPAQUE_NUMBERS = HALF ** 2;
/** The rounds of the cipher: four make a strong pseudorandom permutation. Source: Luby and Rackoff, 1988. */
const ROUNDS = [0, 1, 2, 3];

/**
 * A secret permutation of the integers below 2 ** 48, so that a hidden number is an integer in JSON. Each object has
 * its own.
 */
export class OpaqueNumbers {
  // The mode ECB encrypts each block by itself.
  readonly #cipher = createCipheriv('aes-128-ecb', randomBytes(16), null).setAutoPadding(false);
  readonly #block = Buffer.alloc(16);

  hide(number: number): number {
    let [left, right] = [Math.floor(number / HALF), number % HALF];
    for (const round of ROUNDS) [left, right] = [right, left ^ this.#mix(round, right)];
    return left * HALF + right;
  }

  /** The number that was hidden as `hidden`; for any other value, some integer below OPAQUE_NUMBERS. */
  reveal(hidden: number): number {
    let [left, right] = [Math.floor(hidden / HALF), hidden % HALF];
    for (const round of ROUNDS.toReversed()) [left, right] = [right ^ this.#mix(round, left), left];
    return left * HALF + right;
  }

  #mix(round: number, half: number): number {
    this.#block.writeUInt8(round, 0);
    this.#block.writeUIntBE(half, 1, HALF_BITS / 8);
    return this.#cipher.update(this.#block).readUIntBE(0, HALF_BITS / 8);
  }
}
