// Finds the known word nearest to a misspelt one: the word with the fewest edits.

/**
 * The candidate nearest to `written`, of which only the beginning counts, by edit distance; the first of equals. There must be
 * a candidate.
 */
export function nearest(written: string, candidates: readonly string[]): string {
  const found = closest(written.slice(0, MAX_MISSPELT_LENGTH), candidates);
  if (found === undefined) throw new RangeError('no word is nearest of none');
  return found.word;
}

/**
 * The nearest word, but only when the difference is probably a typing error: one edit in two letters, two in six.
 * Else undefined.
 */
export function nearMiss(
  written: string,
  candidates: readonly string[],
  isShown?: IsShown,
): string | undefined {
  const found = closest(written, candidates, MAX_SLIPS, isShown);
  if (found === undefined) return undefined;
  const { word, edits } = found;
  const letters = Math.min(written.length, word.length);
  const slips = letters >= LETTERS_FOR_TWO ? MAX_SLIPS : letters >= LETTERS_FOR_ONE ? 1 : 0;
  return edits <= slips ? word : undefined;
}

/** False for a word that must not be found. Asked only about near ones, because rights to names may be long lists. */
type IsShown = (word: string) => boolean;

/** `did you mean "files"?` for a near miss that is another word; else undefined. */
export function didYouMean(written: string, candidates: readonly string[]): string | undefined {
  const word = nearMiss(written, candidates);
  return word === undefined || word === written ? undefined : `did you mean "${word}"?`;
}

/** The near miss of a name that a caller sent, among names of servers: of any length, and of any number. See `nearMiss`. */
export function nearName(written: string, names: Iterable<string>, isShown?: IsShown): string | undefined {
  if (written.length > MAX_MISSPELT_LENGTH) return undefined;
  const similar = [...names].filter((name) => Math.abs(name.length - written.length) <= MAX_UNITS_APART);
  return nearMiss(written, similar.slice(0, MAX_COMPARED), isShown);
}

/** The names that a misspelt one is compared with, and its UTF-16 units. */
const MAX_COMPARED = 1_000;
const MAX_MISSPELT_LENGTH = 100;

const MAX_SLIPS = 2;
const MAX_UNITS_APART = 2 * MAX_SLIPS;
const LETTERS_FOR_ONE = 2;
const LETTERS_FOR_TWO = 6;

/** A word with more than `most` edits is not found. */
function closest(
  written: string,
  candidates: readonly string[],
  most = Number.POSITIVE_INFINITY,
  isShown: IsShown = () => true,
): { readonly word: string; readonly edits: number } | undefined {
  const letters = [...written];
  let best: ReturnType<typeof closest>;
  for (const word of candidates) {
    const wanted = best === undefined ? most : best.edits - 1;
    const edits = editDistance(letters, [...word], wanted);
    if (edits <= wanted && isShown(word)) best = { word, edits };
  }
  return best;
}

/**
 * The number of insertions, deletions, replacements and swaps of neighbours that turn one word into the other;
 * infinite when there are more than `most`, which the first letters of most words show.
 */
function editDistance(letters: readonly string[], others: readonly string[], most: number): number {
  const width = others.length + 1;
  if (Math.abs(letters.length - others.length) > most) return Number.POSITIVE_INFINITY;
  let [before, row, next] = [new Uint16Array(width), new Uint16Array(width), new Uint16Array(width)];
  for (let column = 0; column < width; column += 1) row[column] = column;
  for (const [line, letter] of letters.entries()) {
    // What is further from the diagonal has more edits, and is not looked at, except for its first column on either side.
    const from = Math.max(0, line - most);
    const to = Math.min(others.length, line + most + 1);
    next[from] = from === 0 ? line + 1 : FAR;
    if (to < others.length) next[to + 1] = FAR;
    let least = Number(next[from]);
    for (let column = from; column < to; column += 1) {
      const replaced = Number(row[column]) + (letter === others[column] ? 0 : 1);
      const isSwap = line > 0 && letter === others[column - 1] && letters[line - 1] === others[column];
      const swapped = isSwap ? Number(before[column - 1]) + 1 : FAR;
      const edits = Math.min(replaced, swapped, Number(row[column + 1]) + 1, Number(next[column]) + 1);
      next[column + 1] = edits;
      least = Math.min(least, edits);
    }
    if (least > most) return Number.POSITIVE_INFINITY;
    [before, row, next] = [row, next, before];
  }
  return row[others.length] ?? 0;
}

/** More edits than any word takes. */
const FAR = 60_000;
