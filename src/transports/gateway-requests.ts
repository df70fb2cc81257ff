// Requests of the gateway itself, which no Call carries: health probes, lists, and state of a client that its backend
// has to remember.

import { catchError, defer, filter, lastValueFrom, type Observable } from 'rxjs';
import type { ExchangeRequest } from '../domain/calls/exchange.ts';
import { type ExchangeEvent, type FinalEvent, isFinal } from '../domain/calls/exchange-event.ts';
import { backendTimeout } from '../domain/errors/backend-errors.ts';
import { asGatewayError } from '../domain/errors/errors.ts';
import type { Clock } from '../domain/time/clock.ts';
import { startsWithin } from '../domain/time/clock-streams.ts';
import type { Conversation } from './transport.ts';

/** Sends a request of the gateway itself; cold, like `exchange`. */
export function gatewayExchange(
  conversation: Pick<Conversation, 'exchange'>,
  request: ExchangeRequest,
): Observable<ExchangeEvent> {
  return defer(() => conversation.exchange(request)).pipe(
    catchError((thrown: unknown) => {
      if (!asGatewayError(thrown).facts.isRepaired) throw thrown;
      return conversation.exchange({ ...request, isResent: true });
    }),
  );
}

/**
 * Resolves with the answer in an exchange of the gateway itself. The exchange is cancelled after `timeoutMs`: rejects
 * with BACKEND_TIMEOUT.
 */
export function answerOf(
  exchange$: Observable<ExchangeEvent>,
  timeoutMs: number,
  clock: Clock,
): Promise<FinalEvent> {
  const inTime = startsWithin<FinalEvent>(clock, timeoutMs, () => backendTimeout(timeoutMs));
  return lastValueFrom(exchange$.pipe(filter(isFinal), inTime));
}
