// The deadline of a call: the timeout restarts at each message, up to the hard maximum, and pauses while the backend waits
// for its client. It also reports a call that is silent: without a message. call.ts decides what happens then.

import { DEFAULT_POLICY } from '../../balancing/policy.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Linked } from '../../domain/memory/linked-set.ts';
import type { Clock } from '../../domain/time/clock.ts';
import type { SharedTimer, Waiter } from '../../domain/time/shared-timer.ts';

/** The call of a deadline. Source: ADR 9, ADR 40. */
export interface TimedCall {
  /** Called once, with the duration of the call in ms. */
  timedOut(passedMs: number): void;
  /** Called after a third of the timeout, unless a message came, and again at the time of the clock that it returns. */
  onSilent(): number;
}

/** Clock and bound of all deadlines of a gateway. */
export interface DeadlineDeps extends Clock {
  /** Longest call, in ms, unless its timeout is longer. Default: LIMITS.callMaximumMs. */
  readonly maxCallMs?: number | undefined;
}

/** A call that takes longer, in ms, has a timer of its own; most do not. One that begins while others wait may get it earlier. */
export const SHORT_MS = 50;

/** Runs from the start of the call until `end`. */
export class Deadline implements Waiter {
  readonly #call: TimedCall;
  readonly #clock: Clock;
  readonly #short: SharedTimer;
  links: Linked['links'];
  dueAtMs = 0;
  readonly #timeoutMs: number;
  readonly #hardEndMs: number;
  readonly beganAtMs: number;
  #lastMessageAtMs: number;
  /** The next time to report the call as silent. */
  #silentAtMs: number;
  #isPaused = false;
  #isEnded = false;
  #disarm: (() => void) | undefined;

  /** `short`: the timer that all short calls share, SHORT_MS long. `arrivedAtMs`: see ExchangeRequest. */
  constructor(
    call: TimedCall,
    deps: DeadlineDeps,
    short: SharedTimer,
    timeoutMs: number,
    arrivedAtMs: number | undefined,
  ) {
    const { maxCallMs = LIMITS.callMaximumMs } = deps;
    this.#call = call;
    this.#clock = deps;
    this.#short = short;
    this.#timeoutMs = timeoutMs;
    const now = deps.now();
    this.beganAtMs = arrivedAtMs ?? now;
    this.#hardEndMs = this.beganAtMs + Math.min(Math.max(maxCallMs, timeoutMs), LIMITS.callLongestMs);
    this.#lastMessageAtMs = this.beganAtMs;
    this.#silentAtMs = this.beganAtMs + this.silentAfterMs;
    if (this.#waitAt(now) > SHORT_MS) short.add(this);
    else this.#arm(now);
  }

  /** True for a timeout below that of MCP clients: progress has to restart it. Source: ADR 112. */
  get needsProgress(): boolean {
    return this.#timeoutMs < DEFAULT_POLICY.callTimeoutMs;
  }

  /** A call without a message for this time is silent. */
  get silentAfterMs(): number {
    return this.#timeoutMs / HEDGE_DIVISOR;
  }

  /** The end of the timeout, unless a message restarts it; in ms of the clock. */
  get timeoutAtMs(): number {
    return this.beganAtMs + this.#timeoutMs;
  }

  /** Time until the hard maximum, in ms. */
  get longestLeftMs(): number {
    return this.#hardEndMs - this.#clock.now();
  }

  /** Restarts the timeout; the call is not silent any more. */
  noteMessage(): void {
    this.#lastMessageAtMs = this.#clock.now();
    this.#silentAtMs = Number.POSITIVE_INFINITY;
  }

  /** While it is paused only the hard maximum counts; afterwards the timeout restarts. */
  setPaused(isPaused: boolean): void {
    this.#isPaused = isPaused;
    if (isPaused || this.#isEnded) return;
    this.noteMessage();
    this.#cancel(); // the timer may be set to the hard maximum
    this.#arm(this.#lastMessageAtMs);
  }

  end(): void {
    this.#isEnded = true;
    this.#cancel();
  }

  /** The call is not short. Its pause may have begun, and ended, meanwhile. */
  onDue(): void {
    if (!this.#isEnded && this.#disarm === undefined) this.#arm(this.#clock.now());
  }

  get #endsAtMs(): number {
    const hardEndMs = this.#hardEndMs;
    return this.#isPaused ? hardEndMs : Math.min(this.#lastMessageAtMs + this.#timeoutMs, hardEndMs);
  }

  #waitAt(nowMs: number): number {
    return Math.min(this.#endsAtMs, this.#silentAtMs) - nowMs;
  }

  /** One timer per call: when it fires too early, because a message came meanwhile, it is set again. */
  #arm(nowMs: number): void {
    this.#disarm = this.#clock.alarm(this.#waitAt(nowMs), () => this.#ring());
  }

  #cancel(): void {
    this.#short.delete(this);
    this.#disarm?.();
  }

  #ring(): void {
    const now = this.#clock.now();
    if (now >= this.#endsAtMs) {
      this.#call.timedOut(now - this.beganAtMs);
      return;
    }
    if (now >= this.#silentAtMs) this.#silentAtMs = this.#call.onSilent();
    if (!this.#isEnded) this.#arm(now);
  }
}

/** A call is silent after the timeout divided by this. */
export const HEDGE_DIVISOR = 3;
