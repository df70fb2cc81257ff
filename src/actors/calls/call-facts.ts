// What is told of a call, from its start to its end at each instance. When it is told is decided by who carries it.

import type { ErrorCode } from '../../domain/error-codes.ts';
import type { GatewayEvent } from '../../domain/events.ts';
import { factOf } from '../instances/instance-facts.ts';
import type { ExchangeEnding } from './reply.ts';

/** The instance that it is told of. */
type Asked = Parameters<typeof factOf>[0];

/** That it came in. */
export function startedFact(template: string, method: string): GatewayEvent {
  return { type: 'exchange.started', atMs: Date.now(), template, method };
}

/** That it never reached an instance. */
export function refusedFact(template: string, method: string, code: ErrorCode): GatewayEvent {
  return { type: 'exchange.refused', atMs: Date.now(), template, method, code };
}

/** That it goes on after this one failed it. */
export function retriedFact(failed: Asked, method: string, code: ErrorCode): GatewayEvent {
  return { type: 'exchange.retried', ...factOf(failed), method, code };
}

/** How it ended there. */
export function finishedFact(asked: Asked, method: string, ending: ExchangeEnding): GatewayEvent {
  const { outcome, durationMs, error } = ending;
  const failure = error === undefined ? {} : { code: error.code };
  return { type: 'exchange.finished', ...factOf(asked), method, outcome, durationMs, ...failure };
}
