// A glob for long texts: a match takes a few steps for each character of the text, whatever the glob is, so that no pair of a glob and
// a text stops the process. It is made for one match, since its tables are larger than the glob. Characters are code points.

/** Characters in one word of a `Search`. */
const WORD = 32;

export class GlobPattern {
  /** What the text begins with, or is if there is no `*`. */
  readonly #start: readonly string[];
  /** What it contains behind that, one after the other. */
  readonly #searches: readonly Search[];
  /** What it ends with; undefined without a `*`. */
  readonly #end: readonly string[] | undefined;

  constructor(glob: string) {
    const [start = '', ...others] = glob.split('*');
    const end = others.pop();
    this.#start = [...start];
    this.#searches = others.filter((part) => part !== '').map((part) => new Search([...part]));
    this.#end = end === undefined ? undefined : [...end];
  }

  /** `text`: its characters. */
  matches(text: readonly string[]): boolean {
    const start = this.#start;
    const end = this.#end ?? [];
    const last = text.length - end.length;
    if (last < start.length || !isAt(start, text, 0) || !isAt(end, text, last)) return false;
    if (this.#end === undefined) return text.length === start.length;
    let at = start.length;
    // The first place of each is enough: a later one leaves less text to the others.
    for (const search of this.#searches) {
      at = search.endIn(text, at, last);
      if (at < 0) return false;
    }
    return true;
  }
}

function isAt(part: readonly string[], text: readonly string[], at: number): boolean {
  return part.every((wanted, index) => wanted === '?' || wanted === text[at + index]);
}

/**
 * Finds a part, of which `?` is any character, without going back: a bit for each prefix of the part says whether the text read so
 * far ends with it. Source: the algorithm Shift-And of Baeza-Yates and Gonnet.
 */
class Search {
  readonly #length: number;
  /** The places of each character in the part, and of `?`, as bits. */
  readonly #places = new Map<string, Int32Array>();
  readonly #any: Int32Array;

  constructor(part: readonly string[]) {
    this.#length = part.length;
    this.#any = new Int32Array(Math.ceil(part.length / WORD));
    part.forEach((wanted, place) => {
      if (wanted === '?') setBit(this.#any, place);
    });
    part.forEach((wanted, place) => {
      if (wanted === '?') return;
      const places = this.#places.get(wanted) ?? this.#any.slice();
      this.#places.set(wanted, places);
      setBit(places, place);
    });
  }

  /** The place behind the first occurrence from `at` on, which ends at `last` or before; -1 if there is none. */
  endIn(text: readonly string[], at: number, last: number): number {
    const state = new Int32Array(this.#any.length);
    const final = 1 << ((this.#length - 1) % WORD);
    for (let index = at; index < last; index += 1) {
      const places = this.#places.get(text[index] ?? '') ?? this.#any;
      let carry = 1;
      for (let word = 0; word < state.length; word += 1) {
        const before = state[word] ?? 0;
        state[word] = ((before << 1) | carry) & (places[word] ?? 0);
        carry = before >>> (WORD - 1);
      }
      if (((state.at(-1) ?? 0) & final) !== 0) return index + 1;
    }
    return -1;
  }
}

function setBit(words: Int32Array, place: number): void {
  words[place >>> 5] = (words[place >>> 5] ?? 0) | (1 << (place & (WORD - 1)));
}
