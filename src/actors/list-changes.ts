// The subscription at a modern backend to changes of its lists, which a legacy one tells by itself. What follows from a change
// is session.ts's and the fleet's business.

import { catchError, defer, EMPTY, from, mergeMap, type Observable, repeat, throwError, timer } from 'rxjs';
import type { ExchangeEvent, ExchangeRequest, FinalEvent } from '../domain/exchange.ts';
import { RPC } from '../domain/jsonrpc.ts';
import { LIMITS } from '../domain/limits.ts';
import type { ListField, Peer } from '../domain/mcp.ts';
import { announcesChanges, changedList, NOTICED_LISTS } from '../domain/notices.ts';
import { backOffMs } from './instances/instance-statistics.ts';

export interface ListChangesOptions {
  /** Opens the subscription; its events are those of an exchange. */
  readonly listen: (request: ExchangeRequest) => Observable<ExchangeEvent>;
  /** Monotonic clock in ms. */
  readonly now: () => number;
}

/**
 * Cold: subscribes at a modern backend to the changes of those lists for which it announces them, and again whenever that
 * ends, with a back-off. What changed in between nobody heard, so after that all of them count as changed. Never
 * errors; completes at once where there is nothing to subscribe to, and when the backend refuses the method.
 * Source: MCP 2026-07-28 basic/patterns/subscriptions.
 */
export function listChanges(peer: Peer, { listen, now }: ListChangesOptions): Observable<ListField> {
  const lists =
    peer.era === 'modern' ? NOTICED_LISTS.filter((list) => announcesChanges(peer.capabilities, list)) : [];
  if (lists.length === 0) return EMPTY;
  const notifications = Object.fromEntries(lists.map((list) => [`${list}ListChanged`, true]));
  const request = { method: 'subscriptions/listen', params: { notifications } };

  return defer(() => {
    let tries = 0;
    let openedAtMs = now();
    const once$ = defer(() => {
      const missed = tries > 0 ? lists : [];
      tries += 1;
      openedAtMs = now();
      return listen(request).pipe(mergeMap((event) => listsIn(event, missed)));
    });
    const delay = () => {
      if (now() - openedAtMs >= LIMITS.restartForgivenMs) tries = 1;
      return timer(backOffMs(tries, LIMITS.restartLongestMs, MIDDLE));
    };
    return once$.pipe(
      catchError((thrown: unknown) => (isRefusal(thrown) ? throwError(() => thrown) : EMPTY)),
      repeat({ delay }),
      catchError(() => EMPTY), // it was refused: the backend does not tell
    );
  });
}

/** Subscriptions of one instance need no jitter. */
const MIDDLE = 0.5;

/** `missed` are those that may have changed before the backend acknowledged the subscription. */
function listsIn(event: ExchangeEvent, missed: readonly ListField[]): Observable<ListField> {
  if (event.kind === 'error') return throwError(() => event);
  if (event.kind !== 'notification') return EMPTY;
  if (event.method === 'notifications/subscriptions/acknowledged') return from(missed);
  const list = changedList(event.method);
  return list === undefined ? EMPTY : from([list]);
}

function isRefusal(thrown: unknown): boolean {
  return isFinalError(thrown) && thrown.error.code === RPC.methodNotFound;
}

function isFinalError(thrown: unknown): thrown is Extract<FinalEvent, { kind: 'error' }> {
  return typeof thrown === 'object' && thrown !== null && 'kind' in thrown && thrown.kind === 'error';
}
