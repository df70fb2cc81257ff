// Lists whose answer is an array: the whole list, or with `limit` one page of it, whose headers tell the rest.

import { json, type Reply } from './reply.ts';
import { idIn, PageCursor, PageLimit, pageOf } from './schemas.ts';

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
export function pagedList<T>(
  list: string,
  items: readonly T[],
  { limit, cursor }: { readonly limit?: number | undefined; readonly cursor?: string | undefined },
  idOf: (item: T) => string,
  recordOf: (item: T) => object,
  partial: readonly string[] = [],
): Reply {
  const id = idIn(list, cursor) ?? '';
  const last = items.findIndex((item) => idOf(item) === id);
  const rest = last >= 0 ? items.slice(last + 1) : items.filter((item) => idOf(item) > id);
  const { page, nextCursor } = pageOf(list, rest, limit, idOf);
  const headers = [
    ...['X-Total-Count', String(items.length)],
    ...(nextCursor === null ? [] : ['X-Next-Cursor', nextCursor]),
    ...(partial.length === 0 ? [] : ['X-Partial', partial.join(',')]),
  ];
  return json(200, page.map(recordOf), { headers });
}
