// The events of a call, from its start to its end at each instance. The call, or the session that carries it, emits them.

import { ANONYMOUS } from '../../domain/account.ts';
import type { ErrorCode } from '../../domain/errors.ts';
import { eventOf, type GatewayEvent } from '../../domain/events.ts';
import type { ExchangeRequest } from '../../domain/exchange.ts';
import type { ExchangeEnding } from './call-reply.ts';

/** The instance of the event. */
type EventInstance = Parameters<typeof eventOf>[0];

/** The fields of the request in an event: no argument. */
type EventRequest = Pick<ExchangeRequest, 'method' | 'caller'>;

/** That it came in. */
export function startedEvent(
  template: string,
  { method, caller = ANONYMOUS.id }: EventRequest,
): GatewayEvent {
  return { type: 'exchange.started', atMs: Date.now(), template, method, principal: caller };
}

/** A call that never reached an instance. */
export function refusedEvent(
  template: string,
  { method, caller = ANONYMOUS.id }: EventRequest,
  code: ErrorCode,
): GatewayEvent {
  return { type: 'exchange.refused', atMs: Date.now(), template, method, principal: caller, code };
}

/** A call that goes on after a failure at this instance. */
export function retriedEvent(
  failed: EventInstance,
  { method, caller = ANONYMOUS.id }: EventRequest,
  code: ErrorCode,
): GatewayEvent {
  return { type: 'exchange.retried', ...eventOf(failed), method, principal: caller, code };
}

/** How it ended there. */
export function finishedEvent(
  asked: EventInstance,
  { method, caller = ANONYMOUS.id }: EventRequest,
  { outcome, durationMs, error }: ExchangeEnding,
): GatewayEvent {
  const failure = error === undefined ? {} : { code: error.code };
  return {
    type: 'exchange.finished',
    ...eventOf(asked),
    method,
    principal: caller,
    outcome,
    durationMs,
    ...failure,
  };
}
