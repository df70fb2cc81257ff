// Lists whose answer is an array: the whole list, or with `limit` one page of it, whose headers tell the rest.

import { setImmediate as nextTurn } from 'node:timers/promises';
import { bytes, type Reply } from './reply.ts';
import { idIn, PageCursor, PageLimit, pageOf } from './schemas.ts';

/** UTF-16 units of JSON that are made in one turn: 16 MiB at once would stop the process for a quarter of a second. */
const TURN_UNITS = 524_288;

export const PAGE_QUERY = {
  limit: PageLimit,
  /** `X-Next-Cursor` of the page before. */
  cursor: PageCursor,
};

export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'X-Total-Count': 'Number of all records',
  'X-Next-Cursor': 'Send it as `cursor` for the next page; absent on the last one',
};

export const BY_CREATION =
  'In the order of their creation: all, or one page of `limit`; see `X-Total-Count` and `X-Next-Cursor`';

/** As sorted text, for `idOf` of pagedList. */
export function creationOf({ createdAt, id }: { readonly createdAt: string; readonly id: string }): string {
  return `${createdAt}.${id}`;
}

export const PARTIAL_HEADER: Readonly<Record<string, string>> = {
  'X-Partial': 'Only if there are any: nodes that did not answer within a second, separated by commas',
};

/** `partial`: nodes whose part is missing. `idOf`: unique, in the order of the items, except those of the same time. INVALID_CURSOR. */
export async function pagedList<T>(
  list: string,
  items: readonly T[],
  { limit, cursor }: { readonly limit?: number | undefined; readonly cursor?: string | undefined },
  idOf: (item: T) => string,
  recordOf: (item: T) => object,
  partial: readonly string[] = [],
): Promise<Reply> {
  const id = idIn(list, cursor) ?? '';
  const last = items.findIndex((item) => idOf(item) === id);
  const rest = last >= 0 ? items.slice(last + 1) : items.filter((item) => idOf(item) > id);
  const { page, nextCursor } = pageOf(list, rest, limit, idOf);
  const headers = [
    ...['X-Total-Count', String(items.length)],
    ...(nextCursor === null ? [] : ['X-Next-Cursor', nextCursor]),
    ...(partial.length === 0 ? [] : ['X-Partial', partial.join(',')]),
  ];
  return bytes(200, await jsonOf(page, recordOf), { headers });
}

/** An array as JSON, made in several turns. */
async function jsonOf<T>(items: readonly T[], recordOf: (item: T) => object): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let text = '[';
  for (const [at, item] of items.entries()) {
    text += `${at === 0 ? '' : ','}${JSON.stringify(recordOf(item))}`;
    if (text.length < TURN_UNITS) continue;
    pieces.push(Buffer.from(text));
    text = '';
    await nextTurn();
  }
  return Buffer.concat([...pieces, Buffer.from(`${text}]`)]);
}
