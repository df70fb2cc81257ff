// The differences between two texts or JSON values, line by line.

import { isLongNumber } from './json.ts';

export interface DiffLine {
  readonly kind: 'same' | 'gone' | 'new';
  readonly text: string;
}

/** Longer parts that differ are shown as a whole: first the former lines, then the new ones. */
const MAX_CELLS = 1_000_000;

/** Undefined is not a line. Keys of objects are sorted: their order says nothing. */
function linesOf(value: unknown): readonly string[] {
  if (value === undefined) return [];
  const text = typeof value === 'string' ? value : JSON.stringify(sorted(value), null, 2);
  return text.split('\n');
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null || isLongNumber(value)) return value;
  const fields = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(fields.map(([key, field]) => [key, sorted(field)]));
}

export function diffOf(before: unknown, after: unknown): readonly DiffLine[] {
  const [former, next] = [linesOf(before), linesOf(after)];
  let start = 0;
  while (start < Math.min(former.length, next.length) && former[start] === next[start]) start += 1;
  let end = 0;
  const most = Math.min(former.length, next.length) - start;
  while (end < most && former.at(-1 - end) === next.at(-1 - end)) end += 1;
  const line =
    (kind: DiffLine['kind']) =>
    (text: string): DiffLine => ({ kind, text });
  return [
    ...former.slice(0, start).map(line('same')),
    ...middle(former.slice(start, former.length - end), next.slice(start, next.length - end)),
    ...former.slice(former.length - end).map(line('same')),
  ];
}

/** The lines between the common beginning and end, by the longest common subsequence. */
function middle(former: readonly string[], next: readonly string[]): readonly DiffLine[] {
  const width = next.length + 1;
  const isLarge = (former.length + 1) * width > MAX_CELLS;
  const lengths = new Uint32Array(isLarge ? 0 : (former.length + 1) * width);
  const at = (row: number, column: number): number => lengths[row * width + column] ?? 0;
  for (let row = former.length - 1; row >= 0 && !isLarge; row -= 1)
    for (let column = next.length - 1; column >= 0; column -= 1)
      lengths[row * width + column] =
        former[row] === next[column]
          ? at(row + 1, column + 1) + 1
          : Math.max(at(row + 1, column), at(row, column + 1));
  const lines: DiffLine[] = [];
  let [row, column] = [0, 0];
  while (row < former.length || column < next.length) {
    const [old, fresh] = [former[row], next[column]];
    if (!isLarge && old !== undefined && old === fresh) {
      lines.push({ kind: 'same', text: old });
      row += 1;
      column += 1;
    } else if (old !== undefined && (fresh === undefined || at(row + 1, column) >= at(row, column + 1))) {
      lines.push({ kind: 'gone', text: old });
      row += 1;
    } else {
      lines.push({ kind: 'new', text: fresh ?? '' });
      column += 1;
    }
  }
  return lines;
}
