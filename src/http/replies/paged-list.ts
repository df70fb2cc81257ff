// Lists whose answer is an array: the whole list, or with `limit` one page of it, whose headers tell the rest. A
// gateway holds one piece of a list, however long it is. Source: ADR 299.

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { TaskScheduler } from '../../domain/time/task-scheduler.ts';
import { idIn, PageCursor, PageLimit, pageOf } from '../records/schemas.ts';
import { bytes, type Reply } from './reply.ts';

/** UTF-16 units of JSON after which a piece is written: 16 MiB at once would stop the process for a quarter of a second. */
const PIECE_UNITS = 524_288;
/** Records that are read together; the largest have 48 Ki characters. */
const MAX_READ_TOGETHER = 32;

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

/** A text that sorts by the time of creation, for `idOf` of pagedList. */
export function creationOf({ createdAt, id }: { readonly createdAt: string; readonly id: string }): string {
  return `${createdAt}.${id}`;
}

export const PARTIAL_HEADER: Readonly<Record<string, string>> = {
  'X-Partial': 'Only if there are any: nodes that did not answer within a second, separated by commas',
};

interface Listed<T> {
  readonly items: readonly T[];
  /** Unique, in the order of the items, except those of the same time. */
  readonly idOf: (item: T) => string;
  /** The records of these items. */
  readonly read: (items: readonly T[]) => readonly object[] | Promise<readonly object[]>;
  /** The nodes whose part is missing. */
  readonly partial?: readonly string[];
}

/** A list that is longer than a piece is read and written as its client takes it. Throws INVALID_CURSOR. */
export async function pagedList<T>(
  list: string,
  { items, idOf, read, partial = [] }: Listed<T>,
  { limit, cursor }: { readonly limit?: number | undefined; readonly cursor?: string | undefined },
  scheduler: TaskScheduler,
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
  const pieces = piecesOf(page, read, scheduler);
  const { value: text, done } = await pieces.next();
  if (done === true) return bytes(200, text, { headers });
  return { kind: 'pieces', status: 200, first: text, others: pieces, headers };
}

/**
 * The pieces of an array as JSON, whose last one is the result. Each piece is made in a turn of its own, and read when the one
 * before was taken.
 */
async function* piecesOf<T>(
  items: readonly T[],
  read: Listed<T>['read'],
  scheduler: TaskScheduler,
): AsyncGenerator<string, string, void> {
  let text = '[';
  let separator = '';
  for (let start = 0; start < items.length; start += MAX_READ_TOGETHER) {
    await scheduler.turn();
    for (const record of await read(items.slice(start, start + MAX_READ_TOGETHER))) {
      text += `${separator}${JSON.stringify(record)}`;
      separator = ',';
      if (text.length < PIECE_UNITS) continue;
      yield text;
      text = '';
      await nextTurn();
    }
  }
  return `${text}]`;
}
