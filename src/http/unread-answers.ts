// What answers hold in memory because their clients have not read them yet, by caller. Over the bounds the slowest readers are
// cut; a caller that is near its bound gets no new calls meanwhile. Source: ADR 45.

import type { ServerResponse } from 'node:http';
import { backendUnavailable } from '../domain/backend-errors.ts';
import type { ByteBounds } from '../domain/byte-budget.ts';
import { HeldBytes, type Holding, UNCOUNTED_BYTES } from '../domain/held-bytes.ts';
import type { HttpContext, RouteMiddleware } from './context.ts';

/** The owner of answers to callers that are not authenticated. */
const UNKNOWN = '';

/** Those of one app. */
export class UnreadAnswers {
  readonly #held: HeldBytes;
  readonly #holdings = new Map<ServerResponse, Holding>();

  constructor(bounds: ByteBounds) {
    this.#held = new HeldBytes(bounds);
  }

  /** Counts what waits in a response. To be called whenever something was written to it. */
  count({ res: response, state }: Pick<HttpContext, 'res' | 'state'>): void {
    const unread = response.writableLength;
    if (unread <= UNCOUNTED_BYTES || response.destroyed) return;
    const holding = this.#holdings.get(response) ?? this.#hold(response, state.principal?.id ?? UNKNOWN);
    holding.set(unread);
  }

  /** Refuses further calls of a caller who leaves too much unread: BACKEND_UNAVAILABLE, not delivered. */
  readonly room: RouteMiddleware = ({ method, state }, next) => {
    if (method === 'POST' && this.#held.isPressed(state.principal?.id ?? UNKNOWN)) {
      throw backendUnavailable('too much of earlier answers waits for you to read it', { delivered: 'no' });
    }
    return next();
  };

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
