// Notices of changed lists for a client: one notice for many changes, soon, and at a bounded rate. The caller decides which
// changes the client may see.

import {
  auditTime,
  connect,
  endWith,
  filter,
  groupBy,
  ignoreElements,
  map,
  merge,
  mergeMap,
  type Observable,
  takeUntil,
  throttleTime,
} from 'rxjs';
import type { ServerMessage, ServerNotification } from '../../domain/client.ts';
import { changedList, LIST_NOTICES, type ListField } from '../../domain/mcp.ts';

/** Changes that come so close together are one notice. */
const TOGETHER_MS = 50;
/** Shortest time between two notices of one kind. */
const BETWEEN_MS = 1_000;

/**
 * Notices of changed lists, at most one of each kind per BETWEEN_MS. The last change always leads to a notice, BETWEEN_MS and
 * TOGETHER_MS after it at the latest.
 */
export function listNotices(changes$: Observable<ListField>): Observable<ServerNotification> {
  return changes$.pipe(
    map((list) => LIST_NOTICES[list]),
    groupBy((method) => method),
    mergeMap((same$) =>
      same$.pipe(
        auditTime(TOGETHER_MS),
        throttleTime(BETWEEN_MS, undefined, { leading: true, trailing: true }),
      ),
    ),
    map((method) => ({ kind: 'notification', method, params: {} })),
  );
}

/**
 * The messages, whose notices of lists are merged with the changes as in `listNotices`. Completes with the messages, without
 * the notices that are left.
 */
export function withListNotices<M extends ServerMessage>(
  messages$: Observable<M>,
  changes$: Observable<ListField>,
): Observable<M | ServerNotification> {
  return messages$.pipe(
    connect((said$) => {
      const lists$ = said$.pipe(
        map(({ method }) => changedList(method)),
        filter((list) => list !== undefined),
      );
      const others$ = said$.pipe(filter(({ method }) => changedList(method) === undefined));
      const ended$ = said$.pipe(ignoreElements(), endWith(true));
      return merge(listNotices(merge(changes$, lists$)).pipe(takeUntil(ended$)), others$);
    }),
  );
}
