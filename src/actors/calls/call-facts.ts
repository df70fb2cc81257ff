// What is told of a call, from its start to its end at each instance. When it is told is decided by who carries it.

import { ANONYMOUS } from '../../domain/account.ts';
import type { ErrorCode } from '../../domain/error-codes.ts';
import type { GatewayEvent } from '../../domain/events.ts';
import type { ExchangeRequest } from '../../domain/exchange.ts';
import { factOf } from '../instances/instance-facts.ts';
import type { ExchangeEnding } from './reply.ts';

/** The instance that it is told of. */
type Asked = Parameters<typeof factOf>[0];

/** What an event says of the request itself: no argument. */
type Told = Pick<ExchangeRequest, 'method' | 'caller'>;

/** That it came in. */
export function startedFact(template: string, { method, caller = ANONYMOUS.id }: Told): GatewayEvent {
  return { type: 'exchange.started', atMs: Date.now(), template, method, principal: caller };
}

/** That it never reached an instance. */
export function refusedFact(
  template: string,
  { method, caller = ANONYMOUS.id }: Told,
  code: ErrorCode,
): GatewayEvent {
  return { type: 'exchange.refused', atMs: Date.now(), template, method, principal: caller, code };
}

/** That it goes on after this one failed it. */
export function retriedFact(
  failed: Asked,
  { method, caller = ANONYMOUS.id }: Told,
  code: ErrorCode,
): GatewayEvent {
  return { type: 'exchange.retried', ...factOf(failed), method, principal: caller, code };
}

/** How it ended there. */
export function finishedFact(
  asked: Asked,
  { method, caller = ANONYMOUS.id }: Told,
  { outcome, durationMs, error }: ExchangeEnding,
): GatewayEvent {
  const failure = error === undefined ? {} : { code: error.code };
  return {
    type: 'exchange.finished',
    ...factOf(asked),
    method,
    principal: caller,
    outcome,
    durationMs,
    ...failure,
  };
}
