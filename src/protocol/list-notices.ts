// Notices of changed lists: one for many changes, and at a bounded rate. Source: ADR 28.

import {
  audit,
  connect,
  EMPTY,
  endWith,
  groupBy,
  ignoreElements,
  map,
  merge,
  mergeMap,
  type Observable,
  takeUntil,
  throttle,
} from 'rxjs';
import { listNotice, type Notification, type ServerMessage } from '../domain/mcp/client.ts';
import { changedList, type ListField } from '../domain/mcp/mcp.ts';
import { timer$ } from '../domain/time/clock-streams.ts';
import type { Timing } from '../domain/time/task-scheduler.ts';
import { inTask } from '../domain/time/task-streams.ts';

/** Changes within this time make one notice, in ms. */
const AUDIT_MS = 50;
/** The shortest time between two notices of one list, in ms. */
const THROTTLE_MS = 1_000;

/**
 * Adds notices of changed lists to messages: at most one per list and THROTTLE_MS, and the last change is always
 * announced. Notices have no params, since those of a backend may be meant for another client. Completes with the
 * messages. Each notice is a task, because thousands of clients may get it.
 */
export function withListNotices<M extends ServerMessage>(
  messages$: Observable<M>,
  changes$: Observable<ListField>,
  { scheduler, clock }: Timing,
  own$: Observable<Notification> = EMPTY,
): Observable<M | Notification> {
  return messages$.pipe(
    connect((shared$) =>
      merge(shared$, own$, changes$.pipe(map(listNotice))).pipe(
        groupBy(({ method }) => changedList(method)),
        mergeMap((same$) => {
          const { key: list } = same$;
          if (list === undefined) return same$;
          const limited$ = same$.pipe(
            audit(() => timer$(clock, AUDIT_MS)),
            throttle(() => timer$(clock, THROTTLE_MS), BOTH),
          );
          return limited$.pipe(mergeMap(() => inTask(listNotice(list), scheduler)));
        }),
        takeUntil(shared$.pipe(ignoreElements(), endWith(true))),
      ),
    ),
  );
}

const BOTH = { leading: true, trailing: true };
