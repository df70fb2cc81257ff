// Reads a list of a gateway, which answers page by page.

import { CommandFailure } from '../failures.ts';
import { type Fields, fields, objectsOf } from './answers.ts';
import type { Remote } from './remote.ts';

/** The number of entries of one answer. */
const PAGE = 500;
/** The longest time of a list without progress: a program at the address of a gateway may answer with pages without end. */
const LIST_MS = 120_000;

/**
 * Reads at most `most` entries, from all pages. Throws the errors of `request`, and CommandFailure when the pages take longer
 * than `longestMs`, not counting those with entries where `most` bounds their number.
 */
export async function pagedEntries(
  gateway: Remote,
  path: string,
  name: string,
  { query = new URLSearchParams(), most = Number.POSITIVE_INFINITY, longestMs = LIST_MS } = {},
): Promise<readonly Fields[]> {
  let endsAtMs = performance.now() + longestMs;
  const entries: Fields[] = [];
  for (let cursor: unknown = ''; typeof cursor === 'string' && entries.length < most; ) {
    query.set('limit', String(Math.min(PAGE, most - entries.length)));
    if (cursor !== '' && performance.now() > endsAtMs)
      throw new CommandFailure(
        `${gateway.url} took more than ${longestMs / 1000} s to answer with its pages`,
      );
    if (cursor !== '') query.set('cursor', cursor);
    const page = fields(await gateway.request(`${path}?${query}`));
    const found = objectsOf(page[name]);
    for (const entry of found) entries.push(entry); // there may be millions
    if (found.length > 0 && Number.isFinite(most)) endsAtMs = performance.now() + longestMs;
    cursor = page.next_cursor;
  }
  return entries;
}
