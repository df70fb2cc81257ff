// The tokens of an index, with a number each: words, and their meanings.

import { isConcept } from './search-words.ts';

/** Words are alike that share so many first letters. */
const LIKE_LETTERS = 4;
/** Words with one beginning, and beginnings, that are remembered. */
const MAX_LIKE = 1_000;
const MAX_BEGINNINGS = 50_000;
/** Memory of a token besides its text, about. */
const BYTES_PER_TOKEN = 96;

/** Numbers the tokens as they come, and finds words by their beginning. */
export class Vocabulary {
  readonly #numbers = new Map<string, number>();
  /** Words by their first letters. */
  readonly #words = new Map<string, string[]>();
  /** The bytes that it takes in memory, about. */
  bytes = 0;

  get size(): number {
    return this.#numbers.size;
  }

  numberOf(token: string): number | undefined {
    return this.#numbers.get(token);
  }

  /** The number of a token, which is added if it is not known. */
  numbered(token: string): number {
    const known = this.#numbers.get(token);
    if (known !== undefined) return known;
    const number = this.#numbers.size;
    const kept = Buffer.from(token).toString(); // a part of a text would keep the text in memory
    this.#numbers.set(kept, number);
    this.bytes += BYTES_PER_TOKEN + kept.length;
    if (kept.length >= LIKE_LETTERS && !isConcept(kept)) this.#remember(kept);
    return number;
  }

  /** Words that begin like this one. */
  beginningLike(word: string): readonly string[] {
    return word.length < LIKE_LETTERS ? [] : (this.#words.get(beginningOf(word)) ?? []);
  }

  #remember(word: string): void {
    const beginning = beginningOf(word);
    const words = this.#words.get(beginning);
    if (words === undefined && this.#words.size < MAX_BEGINNINGS) this.#words.set(beginning, [word]);
    else if (words !== undefined && words.length < MAX_LIKE) words.push(word);
  }
}

function beginningOf(word: string): string {
  return word.slice(0, LIKE_LETTERS);
}
