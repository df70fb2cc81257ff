// One exchange with a backend as one reply: the result's bytes as they came, or an event stream of everything.
// This is the hot path: one subscription, no operators, and the result is never parsed.

import { concatMap, filter, from, type Observable, of, throwError } from 'rxjs';
import { backendUnavailable } from '../domain/backend-errors.ts';
import type { GatewayError } from '../domain/errors.ts';
import {
  type Answer,
  type ExchangeEvent,
  type ExchangeRequest,
  isFinal,
  type Tracker,
} from '../domain/exchange.ts';
import type { JsonText } from '../domain/json.ts';
import type { Gateway } from '../gateway.ts';
import { ClientGone } from './client-gone.ts';
import type { StreamEvent } from './event-stream.ts';
import { bytes, eventStream, type Reply } from './reply.ts';
import type { RequestState } from './request-state.ts';

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
  facts: RequestState,
): Reply | Promise<Reply> {
  const { callerId } = facts;
  const asked = callerId === undefined ? request : { ...request, caller: callerId };
  if (!facts.wantsEventStream) return resultReply({ gateway, template }, asked, facts, asItIs);
  const tracker: Tracker = {};
  const answers$ = gateway.exchange(template, { ...asked, tracker });
  // concatMap for order: what came before the error is told before it.
  return eventStream(
    answers$.pipe(
      filter(isForHttp),
      concatMap((answer) => {
        if (answer.event.kind !== 'error') return of(eventOf(answer.event, answer.instanceId));
        const { instanceId, event } = answer;
        return failing(gateway.errorOf(template, request, { instanceId, error: event.error }, facts.signal));
      }),
    ),
    tracker,
  );
}

/** Whom to ask: an instance of the template, or this one. */
export interface RequestedExchange {
  readonly gateway: Exchanger;
  readonly template: string;
  readonly instanceId?: string;
}

/** The same as one answer, which `replyOf` makes of the result; what it throws is the error that is answered. */
export function resultReply(
  { gateway, template, ...options }: RequestedExchange,
  request: ExchangeRequest,
  facts: RequestState,
  replyOf: (result: JsonText, instanceId: string) => Reply,
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    let isAnswered = false;
    const subscription = gateway.exchange(template, request, options).subscribe({
      next: ({ event, instanceId }) => {
        if (!isFinal(event)) return;
        isAnswered = true;
        if (event.kind === 'result') {
          try {
            resolve(replyOf(event.result, instanceId));
          } catch (thrown) {
            reject(thrown);
          }
        } else
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

function asItIs(result: JsonText, instanceId: string): Reply {
  return bytes(200, result.bytes, { instanceId });
}

function failing(error: Promise<GatewayError>): Observable<never> {
  return from(error).pipe(concatMap((known) => throwError(() => known)));
}

/** Servers ask nothing of a caller who declared no capabilities, and are polled by the transport. */
type HttpEvent = Extract<ExchangeEvent, { kind: 'notification' | 'result' | 'error' }>;
type HttpAnswer = Answer & { readonly event: HttpEvent };

function isForHttp(answer: Answer): answer is HttpAnswer {
  return answer.event.kind !== 'request' && answer.event.kind !== 'interrupted';
}

function eventOf(event: Exclude<HttpEvent, { kind: 'error' }>, instanceId: string): StreamEvent {
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
