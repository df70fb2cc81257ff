// Lists the tools of an HTTP backend anew, for calls that it refused because a header was missing: it may have begun to ask
// for one, or was called before its tools were listed. What is learned of the lists is tool-headers.ts.

import {
  catchError,
  defer,
  EMPTY,
  expand,
  ignoreElements,
  type Observable,
  share,
  takeUntil,
  tap,
  timer,
} from 'rxjs';
import type { ExchangeEvent, ExchangeRequest } from '../../domain/exchange.ts';
import { isJsonObject } from '../../domain/json.ts';
import { LIMITS } from '../../domain/limits.ts';

/**
 * Asks for every page through `exchange` when somebody subscribes, once for all who do at the same time, and completes
 * when that is done, has failed, or has taken LIMITS.toolLookupMs. Who comes within LIMITS.toolListAgeMs afterwards asks
 * for nothing. It is done to its end even if nobody waits any more: whoever leaves does not spoil it for the next. Never
 * errors. `now`: a clock in ms.
 */
export function toolListing(
  exchange: (request: ExchangeRequest) => Observable<ExchangeEvent>,
  now: () => number = () => performance.now(),
): Observable<never> {
  let endedAtMs = Number.NEGATIVE_INFINITY;
  const ask = (cursor?: string) =>
    exchange(cursor === undefined ? { method: 'tools/list' } : { method: 'tools/list', params: { cursor } });
  const listing$ = defer(() => ask()).pipe(
    expand((event, index) => {
      const cursor = index + 1 < LIMITS.listPages ? cursorIn(event) : undefined;
      return cursor === undefined ? EMPTY : ask(cursor);
    }),
    takeUntil(timer(LIMITS.toolLookupMs)),
    ignoreElements(),
    catchError(() => EMPTY), // the call that needs it tells its caller what the backend said
    tap({
      complete: () => {
        endedAtMs = now();
      },
    }),
    share({ resetOnRefCountZero: false }),
  );
  return defer(() => (now() - endedAtMs < LIMITS.toolListAgeMs ? EMPTY : listing$));
}

function cursorIn(event: ExchangeEvent): string | undefined {
  if (event.kind !== 'result') return undefined;
  const { value } = event.result;
  return isJsonObject(value) && typeof value.nextCursor === 'string' ? value.nextCursor : undefined;
}
