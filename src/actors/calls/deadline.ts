// How long a call may still take: so long until the next thing is heard, and never longer than the hard maximum. It stands
// still while the backend waits for its client. What happens at the end is call.ts's business.

import { answeredOnce, type ServerRequest } from '../../domain/client.ts';
import type { Clock } from '../../domain/clock.ts';
import { LIMITS } from '../../domain/limits.ts';

/** Of one call; begins when it is made, or came. */
export class Deadline {
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #onOver: (passedMs: number) => void;
  readonly #beganAtMs: number;
  #heardAtMs: number;
  /** What the client was asked and has not answered. */
  #unanswered = 0;
  #isEnded = false;
  #disarm: () => void;

  /**
   * `onOver` is told once how long the call took, in ms. `cameAtMs`: see ExchangeRequest. Source: decisions page,
   * "Timeouts".
   */
  constructor(clock: Clock, timeoutMs: number, onOver: (passedMs: number) => void, cameAtMs?: number) {
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
    this.#onOver = onOver;
    const now = clock.now();
    this.#beganAtMs = cameAtMs ?? now;
    this.#heardAtMs = this.#beganAtMs;
    this.#disarm = this.#arm(Math.min(timeoutMs, LIMITS.callLongestMs) - (now - this.#beganAtMs));
  }

  /** The time begins anew. */
  heard(): void {
    this.#heardAtMs = this.#clock.now();
  }

  /** The same request; until it is answered only the hard maximum counts. */
  standStillFor(request: ServerRequest): ServerRequest {
    this.#unanswered += 1;
    return answeredOnce(request, () => this.#goOn());
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
    return this.#clock.alarm(waitMs, () => {
      const now = this.#clock.now();
      if (now < this.#endsAtMs) this.#disarm = this.#arm(this.#endsAtMs - now);
      else this.#onOver(now - this.#beganAtMs);
    });
  }
}
