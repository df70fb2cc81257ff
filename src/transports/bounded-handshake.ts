// Ends a handshake that takes too long, or that the caller cancels.

import { alarmOf } from '../domain/clock.ts';
import { backendUnavailable, openingCancelled } from '../domain/error-catalogue.ts';
import { asGatewayError, GatewayError } from '../domain/errors.ts';
import type { TaskScheduler } from '../domain/task-scheduler.ts';

export interface HandshakeBounds {
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  /** Runs timeouts that come due together. */
  readonly scheduler: TaskScheduler;
  /** Ends the handshake, which then rejects. */
  readonly abort: () => void;
}

/** Shakes hands and resolves with the outcome. Rejects with GatewayError, `delivered: 'no'`. */
export async function boundedHandshake<T>(
  { signal, timeoutMs, scheduler, abort }: HandshakeBounds,
  shakeHands: () => Promise<T>,
): Promise<T> {
  let failure: GatewayError | undefined;
  const fail = (error: GatewayError): void => {
    failure = error;
    abort();
  };
  const cancel = (): void => fail(openingCancelled());
  const giveUp = (): void => {
    const reason = `no handshake within ${Math.ceil(timeoutMs) / 1000} s`;
    fail(backendUnavailable(reason, { delivered: 'no' }));
  };
  const cancelTimeout = alarmOf(scheduler)(timeoutMs, giveUp);
  signal.addEventListener('abort', cancel);
  try {
    if (signal.aborted) cancel();
    const outcome = await shakeHands();
    if (failure === undefined) return outcome;
    throw failure;
  } catch (thrown) {
    if (failure !== undefined) throw failure;
    const { code, message, facts } = asGatewayError(thrown);
    throw new GatewayError(code, message, { ...facts, delivered: 'no' });
  } finally {
    cancelTimeout();
    signal.removeEventListener('abort', cancel);
  }
}
