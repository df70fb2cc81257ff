// One glob with wildcards, compiled for any number of texts. A match takes a few steps for each character of the
// text, whatever the glob is, so that no list of globs and texts stops the process. Characters are code points.
// Source: ADR 230, ADR 306.

const ANY = '?'.charCodeAt(0);

/** True for a text that the glob matches. */
export type GlobMatcher = (text: string) => boolean;

export function patternOf(glob: string): GlobMatcher {
  const [start = '', ...others] = glob.split('*');
  const end = others.pop();
  if (end === undefined) return (text) => endAt(start, text, 0, text.length) === text.length;
  const parts = others.filter((part) => part !== '').map(searchOf);
  return (text) => {
    const last = beginningOf(end, text);
    let at = endAt(start, text, 0, last);
    // The first place of each part is enough: a later one leaves less text to the others.
    for (const search of parts) {
      if (at < 0) return false;
      at = search(text, at, last);
    }
    return at >= 0;
  };
}

/** The place behind the part if the text has it at `at`, and it ends at `last` or before; else -1. */
function endAt(part: string, text: string, at: number, last: number): number {
  let end = at;
  for (let index = 0; index < part.length; ) {
    if (end >= last) return -1;
    const wanted = characterAt(part, index);
    const found = characterAt(text, end);
    if (wanted !== ANY && wanted !== found) return -1;
    index += unitsOf(wanted);
    end += unitsOf(found);
  }
  return end <= last ? end : -1;
}

/** The place of the part at the end of the text; -1 if the text does not end with it. */
function beginningOf(part: string, text: string): number {
  if (!part.includes('?')) return text.endsWith(part) ? text.length - part.length : -1;
  let at = text.length;
  for (let left = [...part].length; left > 0; left -= 1) {
    if (at <= 0) return -1;
    at -= at < 2 ? 1 : unitsOf(characterAt(text, at - 2));
  }
  return endAt(part, text, at, text.length) < 0 ? -1 : at;
}

/**
 * The character at a place, like `codePointAt`, which V8 compiles wrongly at the end of a part of another string: for
 * half of a character there, it gives the whole character of the other string.
 */
function characterAt(text: string, at: number): number {
  const unit = text.charCodeAt(at);
  if ((unit & HALF_BITS) !== FIRST_HALF || at + 1 >= text.length) return unit;
  const next = text.charCodeAt(at + 1);
  if ((next & HALF_BITS) !== SECOND_HALF) return unit;
  return 0x10000 + ((unit - FIRST_HALF) << 10) + (next - SECOND_HALF);
}

const HALF_BITS = 0xfc00;
const FIRST_HALF = 0xd800;
const SECOND_HALF = 0xdc00;

/** The number of UTF-16 units of a character. */
function unitsOf(character: number): number {
  return character > 0xffff ? 2 : 1;
}

/** The place behind the first occurrence of a part from `at` on, which ends at `last` or before; -1 if there is none. */
type Search = (text: string, at: number, last: number) => number;

/** Characters of a part that is compared at each place of the text: longer ones would take too many steps. */
const SHORT = 4;

function searchOf(part: string): Search {
  if (!part.includes('?'))
    return (text, at, last) => {
      const found = text.indexOf(part, at);
      return found < 0 || found + part.length > last ? -1 : found + part.length;
    };
  if (part.length > SHORT) return longSearch(part);
  return (text, at, last) => {
    for (let from = at; from + part.length <= last; from += unitsOf(characterAt(text, from))) {
      const end = endAt(part, text, from, last);
      if (end >= 0) return end;
    }
    return -1;
  };
}

/**
 * Tables are larger than their part, and there are thousands of lists of globs: they stay until the next
 * collection of garbage.
 */
function longSearch(part: string): Search {
  let kept: WeakRef<Places> | undefined;
  return (text, at, last) => {
    if (last - at < part.length) return -1;
    let places = kept?.deref();
    if (places === undefined) {
      places = new Places(part);
      kept = new WeakRef(places);
    }
    return places.endIn(text, at, last);
  };
}

/** Characters in one word of bits. */
const WORD = 32;
const ASCII = 128;

/**
 * A search for a part, in which `?` is any character, that never goes back in the text: a bit for each prefix of the
 * part says whether the text read so far ends with that prefix. Source: the algorithm Shift-And of Baeza-Yates and
 * Gonnet.
 */
class Places {
  readonly #words: number;
  /** The last bit of the part. */
  readonly #final: number;
  /** The places of `?` in the part, as bits; and those of each character with them: of ASCII in one table. */
  readonly #any: Int32Array;
  readonly #ascii: Int32Array;
  readonly #others = new Map<number, Int32Array>();

  constructor(part: string) {
    const characters = [...part].map((each) => each.codePointAt(0) ?? 0);
    this.#words = Math.ceil(characters.length / WORD);
    this.#final = 1 << ((characters.length - 1) % WORD);
    this.#any = new Int32Array(this.#words);
    characters.forEach((wanted, place) => {
      if (wanted === ANY) setBit(this.#any, place);
    });
    this.#ascii = new Int32Array(ASCII * this.#words);
    for (let each = 0; each < ASCII; each += 1) this.#ascii.set(this.#any, each * this.#words);
    characters.forEach((wanted, place) => {
      if (wanted !== ANY) setBit(this.#bitsOf(wanted), place);
    });
  }

  #bitsOf(wanted: number): Int32Array {
    if (wanted < ASCII) return this.#ascii.subarray(wanted * this.#words, (wanted + 1) * this.#words);
    const bits = this.#others.get(wanted) ?? this.#any.slice();
    this.#others.set(wanted, bits);
    return bits;
  }

  /** See Search. */
  endIn(text: string, at: number, last: number): number {
    return this.#words === 1 ? this.#endInWord(text, at, last) : this.#endInWords(text, at, last);
  }

  /** The search for a part of one word, in half the time of the general one; most parts have one word. */
  #endInWord(text: string, at: number, last: number): number {
    const ascii = this.#ascii;
    const final = this.#final;
    let state = 0;
    for (let index = at; index < last; ) {
      const found = characterAt(text, index);
      index += unitsOf(found);
      const bits = found < ASCII ? ascii[found] : (this.#others.get(found) ?? this.#any)[0];
      state = ((state << 1) | 1) & (bits ?? 0);
      if ((state & final) !== 0) return index;
    }
    return -1;
  }

  #endInWords(text: string, at: number, last: number): number {
    const words = this.#words;
    const state = new Int32Array(words);
    for (let index = at; index < last; ) {
      const found = characterAt(text, index);
      index += unitsOf(found);
      const isAscii = found < ASCII;
      const bits = isAscii ? this.#ascii : (this.#others.get(found) ?? this.#any);
      const first = isAscii ? found * words : 0;
      let carry = 1;
      let next = 0;
      for (let word = 0; word < words; word += 1) {
        const before = state[word] ?? 0;
        next = ((before << 1) | carry) & (bits[first + word] ?? 0);
        state[word] = next;
        carry = before >>> (WORD - 1);
      }
      if ((next & this.#final) !== 0) return index;
    }
    return -1;
  }
}

function setBit(words: Int32Array, place: number): void {
  words[place >>> 5] = (words[place >>> 5] ?? 0) | (1 << (place & (WORD - 1)));
}
