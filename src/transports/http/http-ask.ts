// One HTTP request whose answer is awaited: a promise around HttpAnswer for everything that is off the hot path,
// which is the handshake and the delete of a session. Calls do not use it (http-call.ts).

import { backendUnavailable } from '../../domain/error-catalogue.ts';
import type { AnswerMessage } from '../../domain/jsonrpc.ts';
import { ECHOES, isEcho } from '../handshake.ts';
import { type AnswerEnding, HttpAnswer } from './http-answer.ts';
import { connectionClosed } from './http-failures.ts';

/** The answer to the request's id, or the ending of the HTTP answer without it. */
export type SentRequest = (AnswerEnding | { readonly kind: 'answered'; readonly answer: AnswerMessage }) & {
  readonly sessionId: string | undefined;
};

/**
 * Sends by calling `send` and resolves with the message that answers `request`, or with the end of the HTTP answer; for
 * a notification there is no request. Never rejects: when the signal ends the wait, or the request itself comes back, it
 * is aborted and the outcome is `broken`.
 */
export function ask(
  send: (answer: HttpAnswer) => void,
  request: { readonly id: number; readonly method: string } | undefined,
  signal: AbortSignal,
): Promise<SentRequest> {
  return new Promise((resolve) => {
    const settle = (outcome: AnswerEnding | { kind: 'answered'; answer: AnswerMessage }): void => {
      signal.removeEventListener('abort', withdraw);
      resolve({ ...outcome, sessionId: answer.sessionId });
    };
    const answer = new HttpAnswer({
      message(message) {
        if (request === undefined || message.kind === 'notification') return;
        if (message.kind === 'request') {
          if (!isEcho(message, request)) return;
          answer.abort();
          settle({ kind: 'broken', failure: backendUnavailable(ECHOES, { delivered: 'unknown' }) });
        } else if (message.id === request.id) {
          settle({ kind: 'answered', answer: message });
          answer.dismiss();
        }
      },
      unmatched() {
        // The ending says what is missing.
      },
      finished: settle,
    });
    const withdraw = (): void => {
      const failure = connectionClosed('the gateway stopped waiting for its answer', answer.sent);
      answer.abort();
      settle({ kind: 'broken', failure });
    };
    if (signal.aborted) return withdraw();
    signal.addEventListener('abort', withdraw, { once: true });
    send(answer);
  });
}
