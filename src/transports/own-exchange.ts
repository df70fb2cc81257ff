// Requests of the gateway itself, which no call carries: health checks and lists.

import { catchError, defer, type Observable } from 'rxjs';
import type { ExchangeEvent, ExchangeRequest } from '../domain/calls/exchange.ts';
import { asGatewayError } from '../domain/errors/errors.ts';
import type { Conversation } from './transport.ts';

/** Sends a request of the gateway itself, which no Call carries. Cold, like `exchange`. */
export function ownExchange(
  conversation: Pick<Conversation, 'exchange'>,
  request: ExchangeRequest,
): Observable<ExchangeEvent> {
  return defer(() => conversation.exchange(request)).pipe(
    catchError((thrown: unknown) => {
      if (!asGatewayError(thrown).facts.isRepaired) throw thrown;
      return conversation.exchange({ ...request, isRepeat: true });
    }),
  );
}
