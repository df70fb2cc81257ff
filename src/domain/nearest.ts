// Finds the known word nearest to a misspelt one: the word with the fewest edits.

/** The candidate nearest to `written` by edit distance; the first of equals, `''` without candidates. */
export function nearest(written: string, candidates: readonly string[]): string {
  return closest(written, candidates).word;
}

/** The same, but only when the difference is probably a typing error: one edit in two letters, two in six. Else undefined. */
export function nearMiss(written: string, candidates: readonly string[]): string | undefined {
  const { word, edits } = closest(written, candidates);
  const letters = Math.min(written.length, word.length);
  const slips = letters >= LETTERS_FOR_TWO ? MAX_SLIPS : letters >= LETTERS_FOR_ONE ? 1 : 0;
  return edits <= slips ? word : undefined;
}

/** `did you mean "files"?` for such a near miss; else undefined. */
export function didYouMean(written: string, candidates: readonly string[]): string | undefined {
  const word = nearMiss(written, candidates);
  return word === undefined ? undefined : `did you mean "${word}"?`;
}

/** The same for a name that a caller sent, among the names of servers: of any length, and of any number. */
export function nearName(written: string, names: Iterable<string>): string | undefined {
  if (written.length > LONGEST_MISSPELT) return undefined;
  const similar = [...names].filter((name) => Math.abs(name.length - written.length) <= MAX_UNITS_APART);
  return nearMiss(written, similar.slice(0, MAX_COMPARED));
}

/** Names that a misspelt one is compared with, and its UTF-16 units. */
const MAX_COMPARED = 1_000;
const LONGEST_MISSPELT = 100;

const MAX_SLIPS = 2;
const MAX_UNITS_APART = 2 * MAX_SLIPS;
const LETTERS_FOR_ONE = 2;
const LETTERS_FOR_TWO = 6;

function closest(written: string, candidates: readonly string[]): { word: string; edits: number } {
  let best = { word: '', edits: Number.POSITIVE_INFINITY };
  for (const word of candidates) {
    const edits = editDistance(written, word);
    if (edits < best.edits) best = { word, edits };
  }
  return best;
}

/** The number of insertions, deletions, replacements and swaps of neighbours that turn one word into the other. */
function editDistance(from: string, to: string): number {
  const [letters, others] = [[...from], [...to]];
  let before: readonly number[] = [];
  let row: readonly number[] = Array.from({ length: others.length + 1 }, (_, column) => column);
  for (const [line, letter] of letters.entries()) {
    const next = [line + 1];
    for (const [column, other] of others.entries()) {
      const replaced = (row[column] ?? 0) + (letter === other ? 0 : 1);
      const isSwap = letter === others[column - 1] && letters[line - 1] === other;
      const swapped = isSwap ? (before[column - 1] ?? 0) + 1 : Number.POSITIVE_INFINITY;
      next.push(Math.min(replaced, swapped, (row[column + 1] ?? 0) + 1, (next[column] ?? 0) + 1));
    }
    [before, row] = [row, next];
  }
  return row.at(-1) ?? 0;
}
