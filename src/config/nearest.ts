// Finds the word somebody probably meant: the one with the fewest edits between.
// It knows nothing of settings.

/** The candidate nearest to `written` by edit distance; the first of several equals, `''` without candidates. */
export function nearest(written: string, candidates: readonly string[]): string {
  let best = '';
  let fewest = Number.POSITIVE_INFINITY;
  for (const candidate of candidates) {
    const distance = editDistance(written, candidate);
    if (distance < fewest) {
      fewest = distance;
      best = candidate;
    }
  }
  return best;
}

/** Insertions, deletions and replacements that turn one word into the other (Levenshtein). */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (const [line, letter] of [...from].entries()) {
    const next = [line + 1];
    for (const [column, other] of [...to].entries()) {
      const replaced = (row[column] ?? 0) + (letter === other ? 0 : 1);
      next.push(Math.min(replaced, (row[column + 1] ?? 0) + 1, (next[column] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
