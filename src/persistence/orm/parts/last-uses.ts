// The last uses of many rows, which are written together: groups of them, and the statement of one group.

import { raw } from '@mikro-orm/core';

/** The keys of rows with the times of their last uses. */
type LastUses = readonly (readonly [key: string, at: string])[];

/** The most keys in one write, which a distant database must finish within the timeout of one operation. */
const MAX_KEYS = 100;

/** The uses of one write each, in the same order on every node, so that two nodes cannot deadlock. */
export function* lastUsesByWrite(usedAt: ReadonlyMap<string, string>): Generator<LastUses> {
  const sorted = [...usedAt].sort(([left], [right]) => (left < right ? -1 : 1));
  for (let start = 0; start < sorted.length; start += MAX_KEYS) yield sorted.slice(start, start + MAX_KEYS);
}

/** The new value of `column` in rows with these keys: `case key when .. then .. else column end`. */
export function newLastUse(keyColumn: string, column: string, uses: LastUses) {
  const cases = uses.map(() => 'when ? then ?').join(' ');
  const values = uses.flatMap(([key, at]) => [key, new Date(at)]);
  // The last part gives the expression the type of the column.
  return raw(`case ?? ${cases} else ?? end`, [keyColumn, ...values, column]);
}
