// The one answer of an exchange as a promise, for callers that do not stream: no notifications, only the end.

import { filter, fromEvent, lastValueFrom, type Observable, takeUntil } from 'rxjs';
import { errorOfAnswer } from '../../domain/answer-errors.ts';
import { backendUnavailable } from '../../domain/error-catalogue.ts';
import { type Answer, type ExchangeRequest, type FinalAnswer, isFinalAnswer } from '../../domain/exchange.ts';
import { RPC } from '../../domain/jsonrpc.ts';

/** Resolves with the last event. Aborting cancels on the backend and rejects with the signal's reason. */
export async function finalAnswer(answers$: Observable<Answer>, signal?: AbortSignal): Promise<FinalAnswer> {
  signal?.throwIfAborted();
  const final$ = answers$.pipe(filter(isFinalAnswer));
  const bounded$ = signal === undefined ? final$ : final$.pipe(takeUntil(fromEvent(signal, 'abort')));
  const answer = await lastValueFrom(bounded$, { defaultValue: undefined });
  signal?.throwIfAborted();
  if (answer === undefined) throw backendUnavailable('it ended without an answer', { delivered: 'unknown' });
  return answer;
}

/**
 * The result of an answer. Throws what errorOfAnswer makes of an error answer, and BACKEND_UNAVAILABLE for a
 * result whose transport took it without proof that it is JSON. `form`: see JsonText.
 */
export function resultOf(
  { event }: FinalAnswer,
  request: ExchangeRequest,
  form: 'value' | 'exactValue' = 'value',
): unknown {
  if (event.kind === 'error') throw errorOfAnswer(request, event.error);
  try {
    return event.result[form];
  } catch (cause) {
    throw backendUnavailable('its answer is not JSON', { delivered: 'yes', cause });
  }
}

/** True when the backend does not know the method at all. */
export function isUnknownMethod({ event }: FinalAnswer): boolean {
  return event.kind === 'error' && event.error.code === RPC.methodNotFound;
}
