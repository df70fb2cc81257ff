// Ends a handshake that takes too long, or that its caller cancels.

import { backendUnavailable, openingCancelled } from '../domain/errors/backend-errors.ts';
import { asGatewayError, GatewayError } from '../domain/errors/errors.ts';
import { spreadAlarm } from '../domain/time/clock.ts';
import type { OpenOptions } from './open-options.ts';

export type HandshakeBounds = Pick<OpenOptions, 'signal' | 'handshakeTimeoutMs' | 'scheduler' | 'clock'>;

/**
 * Runs `shakeHands` within its bounds, and resolves with its result. `shakeHands` must reject soon after its signal
 * aborts. Throws GatewayError and `delivered: 'no'`.
 */
export async function boundedHandshake<T>(
  { signal, handshakeTimeoutMs, scheduler, clock }: HandshakeBounds,
  shakeHands: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  if (signal.aborted) throw openingCancelled();
  const bound = new AbortController();
  const cancel = (): void => bound.abort(openingCancelled());
  const giveUp = (): void => {
    const reason = `no handshake within ${Math.ceil(handshakeTimeoutMs) / 1000} s`;
    bound.abort(backendUnavailable(reason, { delivered: 'no' }));
  };
  const cancelTimeout = spreadAlarm(scheduler, clock.alarm)(handshakeTimeoutMs, giveUp);
  signal.addEventListener('abort', cancel); // removed below: a signal may live as long as the gateway
  try {
    const outcome = await shakeHands(bound.signal);
    bound.signal.throwIfAborted();
    return outcome;
  } catch (thrown) {
    if (bound.signal.aborted) throw bound.signal.reason;
    const { code, message, facts } = asGatewayError(thrown);
    throw new GatewayError(code, message, { ...facts, delivered: 'no' });
  } finally {
    cancelTimeout();
    signal.removeEventListener('abort', cancel);
  }
}
