// The deadline of a call. The timeout restarts at each message, up to a hard maximum, and pauses while the backend waits
// for its client. The deadline also reports when a call has been silent (without a message) for a third of its timeout;
// call.ts decides what follows.

import { longestCallMs } from '../../balancing/policy.ts';
import type { Linked } from '../../domain/memory/linked-set.ts';
import type { Clock } from '../../domain/time/clock.ts';
import type { SharedTimer, Waiter } from '../../domain/time/shared-timer.ts';
import type { CallDeps, RunningCall } from './call-route.ts';

/**
 * Calls that take longer than this, in ms, get a timer of their own; all shorter ones share one timer. A call that
 * begins while others wait may get its own timer earlier.
 */
export const OWN_TIMER_AFTER_MS = 50;

/** A call counts as silent after its timeout divided by this number. */
export const HEDGE_DIVISOR = 3;

/** The time for which common MCP clients wait for an answer, in ms. Source: ADR 40. */
const CLIENTS_WAIT_MS = 60_000;

/** Measures one call, from its start until `end`. */
export class Deadline implements Waiter {
  readonly #call: RunningCall;
  readonly #clock: Clock;
  readonly #shortCallTimer: SharedTimer;
  links: Linked['links'];
  dueAtMs = 0;
  readonly #timeoutMs: number;
  readonly #hardEndMs: number;
  readonly beganAtMs: number;
  #lastMessageAtMs: number;
  /** The clock time in ms at which the call is next reported as silent. */
  #silentAtMs: number;
  #isPaused = false;
  #isEnded = false;
  #disarm: (() => void) | undefined;

  /** `shortCallTimer`: what all short calls share; it fires after OWN_TIMER_AFTER_MS. `arrivedAtMs`: see ExchangeRequest. */
  constructor(
    call: RunningCall,
    deps: CallDeps,
    shortCallTimer: SharedTimer,
    timeoutMs: number,
    arrivedAtMs: number | undefined,
  ) {
    const { clock, maxCallMs } = deps;
    this.#call = call;
    this.#clock = clock;
    this.#shortCallTimer = shortCallTimer;
    this.#timeoutMs = timeoutMs;
    const now = clock.now();
    this.beganAtMs = arrivedAtMs ?? now;
    this.#hardEndMs = this.beganAtMs + longestCallMs(timeoutMs, maxCallMs);
    this.#lastMessageAtMs = this.beganAtMs;
    this.#silentAtMs = this.beganAtMs + this.silentAfterMs;
    if (this.#waitAt(now) > OWN_TIMER_AFTER_MS) shortCallTimer.add(this);
    else this.#arm(now);
  }

  /**
   * True when the timeout is shorter than that of common MCP clients: the backend is then asked for progress, which
   * restarts it. Source: ADR 40.
   */
  get needsProgress(): boolean {
    return this.#timeoutMs < CLIENTS_WAIT_MS;
  }

  /** The time without a message after which a call counts as silent, in ms. */
  get silentAfterMs(): number {
    return this.#timeoutMs / HEDGE_DIVISOR;
  }

  /** The clock time in ms at which the first timeout ends, if no message restarts it. */
  get timeoutAtMs(): number {
    return this.beganAtMs + this.#timeoutMs;
  }

  /** The time until the hard maximum, in ms. */
  get longestLeftMs(): number {
    return this.#hardEndMs - this.#clock.now();
  }

  /** Restarts the timeout; from now on the call does not count as silent. */
  noteMessage(): void {
    this.#lastMessageAtMs = this.#clock.now();
    this.#silentAtMs = Number.POSITIVE_INFINITY;
  }

  /** Pauses or resumes the timeout. While it is paused only the hard maximum counts; afterwards the timeout restarts. */
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

  /**
   * Called by the shared timer when the call is no longer short: sets a timer for it. The call may have been paused,
   * and resumed, before.
   */
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

  /** Sets the one timer of this call. When it fires too early, because a message came meanwhile, #ring sets it again. */
  #arm(nowMs: number): void {
    this.#disarm = this.#clock.alarm(this.#waitAt(nowMs), () => this.#ring());
  }

  #cancel(): void {
    this.#shortCallTimer.delete(this);
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
