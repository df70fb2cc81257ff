// Lists whose answer is an array: the whole list, or with `limit` one page of it, whose headers tell the rest.

import Type from 'typebox';
import { json, type Reply } from './reply.ts';
import { PageLimit, pageOf } from './schemas.ts';

export const PAGE_QUERY = {
  limit: PageLimit,
  /** `X-Next-Cursor` of the page before. */
  cursor: Type.Optional(Type.String({ minLength: 1, maxLength: 300 })),
};

export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'X-Total-Count': 'Number of all records',
  'X-Next-Cursor': 'Send it as `cursor` for the next page; absent on the last one',
};

export const PARTIAL_HEADER: Readonly<Record<string, string>> = {
  'X-Partial': 'Only if there are any: nodes that did not answer within a second, separated by commas',
};

/** `partial`: nodes whose part is missing. `cursorOf`: unique, the cursor, which stays valid when its record is deleted: in the order of the items, except those of the same time. */
export function pagedList<T>(
  items: readonly T[],
  { limit, cursor = '' }: { readonly limit?: number | undefined; readonly cursor?: string | undefined },
  cursorOf: (item: T) => string,
  recordOf: (item: T) => object,
  partial: readonly string[] = [],
): Reply {
  const last = items.findIndex((item) => cursorOf(item) === cursor);
  const rest = last >= 0 ? items.slice(last + 1) : items.filter((item) => cursorOf(item) > cursor);
  const { page, nextCursor } = pageOf(rest, limit, cursorOf);
  const headers = [
    ...['X-Total-Count', String(items.length)],
    ...(nextCursor === null ? [] : ['X-Next-Cursor', nextCursor]),
    ...(partial.length === 0 ? [] : ['X-Partial', partial.join(',')]),
  ];
  return json(200, page.map(recordOf), { headers });
}
