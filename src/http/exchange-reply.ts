// One exchange with a backend as one reply: the result's bytes as they came, or an event stream of everything.
// This is the hot path: one subscription, no operators, and the result is never parsed.

import { concatMap, from, type Observable, of, throwError } from 'rxjs';
import { backendUnavailable, type GatewayError } from '../domain/errors.ts';
import type { ExchangeEvent, ExchangeRequest } from '../domain/exchange.ts';
import type { Gateway } from '../gateway.ts';
import { ClientGone } from './client-gone.ts';
import type { StreamEvent } from './event-stream.ts';
import { bytes, eventStream, type Reply } from './reply.ts';
import type { RequestFacts } from './request-facts.ts';

/** Media types of the answer, for the API description; `Accept` selects. */
export const RESULT_TYPES = ['application/json', 'text/event-stream'] as const;

type Exchanger = Pick<Gateway, 'exchange' | 'errorOf'>;

/**
 * Carries one request to an instance of the template. Answers with the MCP result as it is and who gave it; with
 * `Accept: text/event-stream`, with the events `progress`, `log`, `notification` as they come and `result` at the end.
 * A JSON-RPC error becomes the error that the gateway makes of it (`errorOf`). When the client goes away the backend is
 * told. Source: decisions, "Surface A bodies" and "Errors".
 */
export function exchangeReply(
  gateway: Exchanger,
  template: string,
  request: ExchangeRequest,
  facts: RequestFacts,
): Reply | Promise<Reply> {
  if (!facts.wantsEventStream) return resultReply(gateway, template, request, facts);
  const answers$ = gateway.exchange(template, request);
  // concatMap for order: what came before the error is told before it.
  return eventStream(
    answers$.pipe(
      concatMap((answer) => {
        if (answer.event.kind !== 'error') return of(eventOf(answer.event, answer.instanceId));
        const { instanceId, event } = answer;
        return failing(gateway.errorOf(template, request, { instanceId, error: event.error }, facts.signal));
      }),
    ),
  );
}

function resultReply(
  gateway: Exchanger,
  template: string,
  request: ExchangeRequest,
  facts: RequestFacts,
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    let isAnswered = false;
    const subscription = gateway.exchange(template, request).subscribe({
      next: ({ event, instanceId }) => {
        if (event.kind === 'notification') return;
        isAnswered = true;
        if (event.kind === 'result') resolve(bytes(200, event.result.bytes, { instanceId }));
        else
          void gateway
            .errorOf(template, request, { instanceId, error: event.error }, facts.signal)
            .then(reject);
      },
      error: reject,
      complete: () => {
        if (!isAnswered) reject(backendUnavailable('it ended without an answer', { delivered: 'unknown' }));
      },
    });
    facts.onGone(() => {
      subscription.unsubscribe();
      reject(new ClientGone());
    });
  });
}

function failing(error: Promise<GatewayError>): Observable<never> {
  return from(error).pipe(concatMap((known) => throwError(() => known)));
}

function eventOf(event: Exclude<ExchangeEvent, { kind: 'error' }>, instanceId: string): StreamEvent {
  if (event.kind === 'result') {
    return { name: 'result', data: event.result.bytes, instanceId, essential: true };
  }
  const { method, params } = event;
  const name = EVENT_NAMES[method] ?? 'notification';
  return { name, data: JSON.stringify({ method, params }), instanceId };
}

const EVENT_NAMES: Readonly<Record<string, string>> = {
  'notifications/progress': 'progress',
  'notifications/message': 'log',
};
