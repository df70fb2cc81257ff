// How long a call may still take: so long until the next thing is heard, and never longer than the hard maximum. It stands
// still while the backend waits for its client. What happens at the end is call.ts's business.

import type { ServerRequest } from '../domain/client.ts';
import { LIMITS } from '../domain/limits.ts';

export interface DeadlineParts {
  /** Monotonic clock in ms. */
  readonly now: () => number;
  /** Rings once after so many ms, unless the returned function was called before. */
  readonly alarm: (waitMs: number, ring: () => void) => () => void;
}

/** Of one call; begins when it is made. */
export class Deadline {
  readonly #parts: DeadlineParts;
  readonly #timeoutMs: number;
  readonly #onOver: (passedMs: number) => void;
  readonly #beganAtMs: number;
  #heardAtMs: number;
  /** What the client was asked and has not answered. */
  #unanswered = 0;
  #isEnded = false;
  #disarm: () => void;

  /** `onOver` is told once how long the call took, in ms. Source: decisions page, "Timeouts". */
  constructor(parts: DeadlineParts, timeoutMs: number, onOver: (passedMs: number) => void) {
    this.#parts = parts;
    this.#timeoutMs = timeoutMs;
    this.#onOver = onOver;
    this.#beganAtMs = parts.now();
    this.#heardAtMs = this.#beganAtMs;
    this.#disarm = this.#arm(Math.min(timeoutMs, LIMITS.callLongestMs));
  }

  /** The time begins anew. */
  heard(): void {
    this.#heardAtMs = this.#parts.now();
  }

  /** The same request; until it is answered only the hard maximum counts. */
  standStillFor(request: ServerRequest): ServerRequest {
    let isAnswered = false;
    this.#unanswered += 1;
    const answer: ServerRequest['answer'] = (reply) => {
      if (isAnswered) return;
      isAnswered = true;
      this.#goOn();
      request.answer(reply);
    };
    return { ...request, answer };
  }

  /** There is nothing left to wait for. */
  end(): void {
    this.#isEnded = true;
    this.#disarm();
  }

  #goOn(): void {
    if (this.#isEnded) return;
    this.#unanswered -= 1;
    this.heard();
    this.#disarm(); // it may be set to the hard maximum
    this.#disarm = this.#arm(this.#endsAtMs - this.#heardAtMs);
  }

  get #endsAtMs(): number {
    const hardEndMs = this.#beganAtMs + LIMITS.callLongestMs;
    return this.#unanswered > 0 ? hardEndMs : Math.min(this.#heardAtMs + this.#timeoutMs, hardEndMs);
  }

  /** One timer per call: when it rings too early, because something was heard meanwhile, it is set again. */
  #arm(waitMs: number): () => void {
    return this.#parts.alarm(waitMs, () => {
      const now = this.#parts.now();
      if (now < this.#endsAtMs) this.#disarm = this.#arm(this.#endsAtMs - now);
      else this.#onOver(now - this.#beganAtMs);
    });
  }
}
