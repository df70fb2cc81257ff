// Requests over HTTP that are not calls (http-exchange.ts): `ask` awaits one answer, for handshakes and session deletes. A
// message whose answer does not matter is sent, and nothing waits for it.

import { tooManyMessages } from '../../domain/errors/request-errors.ts';
import { LIMITS } from '../../domain/limits.ts';
import { type AnswerMessage, numberMeant } from '../../domain/mcp/jsonrpc.ts';
import { type Clock, timeLimit } from '../../domain/time/clock.ts';
import type { AnswerEnding } from './answers/answer-ending.ts';
import { HttpAnswer } from './answers/http-answer.ts';
import { connectionClosed } from './answers/http-failures.ts';
import type { HttpEndpoint } from './http-endpoint.ts';

/** Replies to a backend that are under way; more are dropped. Of notifications half as many. */
const MAX_REPLIES = 64;

/** The answer to the request's id, or the ending of the HTTP answer without it. */
type SentRequest = (AnswerEnding | { readonly kind: 'answered'; readonly answer: AnswerMessage }) & {
  readonly sessionId: string | undefined;
};

/**
 * Resolves with the answer to the request with this id, or with the end of the HTTP answer. Without an id, for a
 * notification, also when a success begins: some servers accept a notification with a stream that stays open.
 * Never rejects.
 */
export function ask(
  send: (answer: HttpAnswer) => void,
  id: number | undefined,
  signal: AbortSignal,
): Promise<SentRequest> {
  return new Promise((resolve) => {
    const settle = (outcome: AnswerEnding | { kind: 'answered'; answer: AnswerMessage }): void => {
      signal.removeEventListener('abort', abort);
      resolve({ ...outcome, sessionId: answer.sessionId });
    };
    const answer = new HttpAnswer({
      began() {
        if (id !== undefined || answer.status < 200 || answer.status >= 300) return;
        settle({ kind: 'complete', detail: '', isStreamed: false });
        answer.abortLater();
      },
      message(message) {
        if (message.kind === 'notification' || message.kind === 'request') return;
        if (id === undefined || numberMeant(message.id) !== id) return;
        settle({ kind: 'answered', answer: message });
        answer.abortLater();
      },
      finished: settle,
    });
    const abort = (): void => {
      const failure = connectionClosed('the gateway stopped waiting for its answer', answer.isSent);
      answer.abort();
      settle({ kind: 'broken', failure });
    };
    if (signal.aborted) return abort();
    signal.addEventListener('abort', abort, { once: true });
    send(answer);
  });
}

/**
 * The status with which the request of this id is refused; 0 for any other end. Never rejects, waits at most
 * LIMITS.backgroundMs.
 */
export async function refusedStatus(
  clock: Clock,
  send: (answer: HttpAnswer) => void,
  id: number,
): Promise<number> {
  const asked = await ask(send, id, timeLimit(clock, LIMITS.backgroundMs));
  return asked.kind === 'refused' ? asked.status : 0;
}

/** Sends a message whose answer does not matter. Never rejects, waits at most LIMITS.backgroundMs. */
export async function sendUnawaited(clock: Clock, send: (answer: HttpAnswer) => void): Promise<void> {
  await ask(send, undefined, timeLimit(clock, LIMITS.backgroundMs));
}

/** Memory of a request that is under way, besides its body. */
const POST_BYTES = 4 * 1024;

/**
 * The messages of one session or stream whose answers do not matter: while many are under way, others are dropped.
 * Their memory is counted for the owner.
 */
export class UnawaitedMessages {
  readonly #endpoint: Pick<HttpEndpoint, 'clock' | 'waitingBytes'>;
  #underWay = 0;

  constructor(endpoint: Pick<HttpEndpoint, 'clock' | 'waitingBytes'>) {
    this.#endpoint = endpoint;
  }

  /**
   * Sends a message as sendUnawaited does. Half of the places are for urgent messages, which calls wait for. Throws QUEUE_FULL
   * when the owner may not hold more memory, unless the message is urgent.
   */
  send(
    body: string,
    post: (answer: HttpAnswer) => void,
    { isUrgent, ownerId }: { readonly isUrgent: boolean; readonly ownerId: string },
  ): Promise<void> | void {
    if (this.#underWay >= MAX_REPLIES / (isUrgent ? 1 : 2)) return;
    const { clock, waitingBytes } = this.#endpoint;
    const bytes = body.length + POST_BYTES;
    if (isUrgent) waitingBytes?.add(ownerId, bytes);
    else if (waitingBytes?.take(ownerId, bytes) === false) throw tooManyMessages();
    this.#underWay += 1;
    return sendUnawaited(clock, post).then(() => {
      this.#underWay -= 1;
      waitingBytes?.release(ownerId, bytes);
    });
  }
}
