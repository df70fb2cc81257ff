// Bounds for clients that do not read their answers: unread bytes of each caller, and a write timeout for each
// connection.

import type { ServerResponse } from 'node:http';
import type { GatewayError } from '../../domain/errors/errors.ts';
import { answerNotKept, tooMuchUnread } from '../../domain/errors/request-errors.ts';
import { type ByteBounds, HeldBytes, type Holding, UNCOUNTED_BYTES } from '../../domain/memory/held-bytes.ts';
import { type Clock, systemClock } from '../../domain/time/clock.ts';
import type { HttpContext } from '../context.ts';
import { HTTP_LIMITS } from '../http-limits.ts';

const UNKNOWN = '';

/**
 * The unread bytes of all callers. Over the byte bounds the slowest readers are disconnected; a caller near its bound
 * may not ask servers for more. Source: ADR 45.
 */
export class UnreadAnswers {
  readonly #held: HeldBytes;
  readonly #holdings = new Map<ServerResponse, Holding>();

  constructor(bounds: ByteBounds, { now }: Clock) {
    this.#held = new HeldBytes(bounds, now);
  }

  /** Counts the unread bytes of a response; called after each write. */
  count({ res: response, state }: Pick<HttpContext, 'res' | 'state'>): void {
    const unread = response.writableLength;
    if (unread <= UNCOUNTED_BYTES || response.destroyed) return;
    const holding = this.#holdings.get(response) ?? this.#hold(response, state.principal?.id ?? UNKNOWN);
    holding.set(unread);
  }

  /**
   * The error in the place of an answer of this length, for which another new one of the caller would be cut after its 200;
   * undefined when there is room.
   */
  refusalOf({ state }: Pick<HttpContext, 'state'>, bytes: number): GatewayError | undefined {
    if (bytes <= UNCOUNTED_BYTES || !this.#held.isCrowded(state.principal?.id ?? UNKNOWN, bytes))
      return undefined;
    return answerNotKept(bytes);
  }

  /** Refuses a request of a caller with too many unread bytes: QUEUE_FULL. */
  requireRoom({ state }: Pick<HttpContext, 'state'>): void {
    if (this.#held.isPressed(state.principal?.id ?? UNKNOWN)) throw tooMuchUnread();
  }

  #hold(response: ServerResponse, ownerId: string): Holding {
    const holding = this.#held.hold(ownerId, () => response.destroy());
    this.#holdings.set(response, holding);
    response.on('drain', () => holding.set(response.writableLength));
    response.once('close', () => {
      this.#holdings.delete(response);
      holding.release();
    });
    return holding;
  }
}

/** Checks per write timeout: a connection is closed at most one check too late. */
const CHECKS = 15;

/**
 * Closes the connection once bytes of the answer wait and the client has read none for `unreadMs`; otherwise a
 * client that reads nothing would hold them forever. Called at the beginning of a stream, and for an answer that
 * waits in memory at its end. A second call does nothing.
 *
 * Node emits the socket timeout when there was no progress since the last check. With a single check per
 * `unreadMs`, a client that stops reading early in one period would be noticed only at the end of the next.
 */
export function limitReader(response: ServerResponse, unreadMs: number = HTTP_LIMITS.unreadAnswerMs): void {
  const checkMs = Math.max(1, Math.ceil(unreadMs / CHECKS));
  if (response.listenerCount('timeout') > 0) return;
  let quietSinceMs = 0;
  let checkedAtMs = 0;
  response.on('timeout', () => {
    // No bytes are waiting; the next write restarts the timeout.
    if (response.writableLength === 0) return;
    const nowMs = systemClock.now();
    // A missing timeout means progress.
    if (nowMs - checkedAtMs > checkMs * 1.5) quietSinceMs = nowMs - checkMs;
    checkedAtMs = nowMs;
    if (nowMs - quietSinceMs >= unreadMs) response.destroy();
    else response.setTimeout(checkMs);
  });
  response.setTimeout(checkMs);
  // Node would keep it for a pipelined answer that is slow, and close the connection. Its own listener starts that answer.
  response.prependOnceListener('finish', () => response.setTimeout(0));
}
