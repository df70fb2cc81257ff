// Numbers that callers see in place of consecutive ones, which would show how much all callers do. It keeps no
// state besides its key.

import { createCipheriv, randomBytes } from 'node:crypto';

const HALF_BITS = 24;
const HALF = 2 ** HALF_BITS;
/** The numbers that can be hidden: integers from 0 up to this one, not included. */
export const OPAQUE_NUMBERS = HALF ** 2;
/** Source: Luby and Rackoff, 1988: four rounds make a strong pseudorandom permutation. */
const ROUNDS = [0, 1, 2, 3];

/**
 * A secret permutation of the integers below 2 ** 48, so that a hidden number is an integer in JSON. Another one
 * for each instance.
 */
export class OpaqueNumbers {
  // In this mode each block is encrypted by itself.
  readonly #cipher = createCipheriv('aes-128-ecb', randomBytes(16), null).setAutoPadding(false);
  readonly #block = Buffer.alloc(16);

  hide(number: number): number {
    let [left, right] = [Math.floor(number / HALF), number % HALF];
    for (const round of ROUNDS) [left, right] = [right, left ^ this.#mix(round, right)];
    return left * HALF + right;
  }

  /** The number that was hidden as this one; any integer below OPAQUE_NUMBERS for one that was not. */
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
