// Outlier detection by the results of calls, independent of health: a candidate whose calls fail is ejected for a
// time, one whose calls stay silent is avoided; both are suspended. Then one trial call decides. pool.ts chooses;
// health does not change. Source: ADR 39, ADR 40.
//
//   in ── calls fail ──► ejected ──┬─ time is over ──► half-open ── trial call ──► answered: in
//     └── calls silent ─► avoided ─┘                                           └─► failed, or silent: out for longer
//
//   ejected: gets no call while another candidate may get it. At most half of the pool.
//   avoided: gets a call only when no other candidate can take it; readmitted at the first message of one of its calls.
//   half-open: gets its trial call before others are chosen.

import { counted } from '../domain/text.ts';
import type { Clock } from '../domain/time/clock.ts';
import { ewma } from './health-score.ts';
import type { TemplatePolicy } from './policy.ts';
import { RecentCount } from './recent-count.ts';

/**
 * A candidate is ejected after `ejectionFailures` in a row, or above this share of at least twice as many outcomes
 * in ten seconds.
 */
const FAILED_SHARE = 0.5;
/** Part of the pool that may be ejected. */
const EJECTED_SHARE = 0.5;
/**
 * Duration of the first suspension, doubled for each further one up to the longest; each minute in the pool undoes
 * one doubling.
 */
const FIRST_OUT_MS = 5_000;
const LONGEST_OUT_MS = 60_000;
const FORGIVEN_MS = 60_000;
/** For this time after a suspension the trial must be a repeatable call. */
const REPEATABLE_TRIAL_MS = 1_000;
/** A candidate that was chosen for a trial but got no call (a session was opened there) is offered again after this time. */
const OFFER_MS = 5_000;
/** Silence: this many of the newest calls have no message for this time, and for this multiple of the usual latency. */
const SILENT_CALLS = 3;
const SILENT_MS = 3_000;
const SILENT_TIMES_USUAL = 10;
/** Interval of the check for silent calls; no timer runs while every call has had a message, or without calls. */
const CHECK_MS = 500;

/** `answered`: also with an error. `failed`: no answer of the backend. `neither`: says nothing about the backend. */
export type CallVerdict = 'answered' | 'failed' | 'neither';

/** One call at one candidate, for `noteMessage` and `ended`. */
export interface SentCall<C> {
  readonly record: CandidateRecord<C>;
  readonly atMs: number;
  isAnswered: boolean;
  /** True when the silence was reported. */
  isSilent: boolean;
  /** The backend waits for the client: the call uses no capacity. */
  isAwaitingClient: boolean;
}

/** Why a candidate is ejected or avoided although it is healthy, and until when. It is shown as `ejection` (InstanceSnapshot). */
export interface Suspension {
  /** A clause: "5 calls in a row failed". */
  readonly reason: string;
  /** When a trial call may be sent, in ms of the clock. */
  readonly untilMs: number;
}

export interface OutlierOptions<C> extends Pick<Clock, 'now' | 'alarm'> {
  readonly policy: () => Pick<TemplatePolicy, 'ejectionFailures'>;
  /** True for what is a candidate now. */
  readonly isUp: (candidate: C) => boolean;
  readonly suspended: (candidate: C, suspension: Suspension, forMs: number) => void;
  readonly readmitted: (candidate: C) => void;
  /** A call there has been silent for SILENT_MS: the candidate may need a probe. */
  readonly silent: (candidate: C) => void;
}

interface CandidateRecord<C> {
  readonly candidate: C;
  /** Part of `Outliers.activeCalls`, while the candidate is up. */
  activeCalls: number;
  readonly successes: RecentCount;
  readonly failures: RecentCount;
  failuresInARow: number;
  /** The newest calls without a message, in the order in which they were sent. */
  readonly unanswered: SentCall<C>[];
  /** Doublings of the next suspension. */
  level: number;
  inSinceMs: number;
}

interface Out extends Suspension {
  readonly isAvoided: boolean;
  /** When it may be chosen for a trial, in ms of the clock. */
  offerAtMs: number;
  trial: Pick<SentCall<unknown>, 'atMs'> | undefined;
}

export class Outliers<C extends object> {
  readonly #options: OutlierOptions<C>;
  /** Records live as long as the candidate: going down and coming up again ends only the present suspension. */
  readonly #records = new WeakMap<C, CandidateRecord<C>>();
  readonly #out = new Map<C, Out>();
  #members: readonly C[] = [];
  /** Exponentially weighted time to the first message of a call, over all candidates. */
  #usualMs: number | undefined;
  #stopCheck: (() => void) | undefined;
  /** Active calls at the candidates that are up: not those that wait for their client. */
  activeCalls = 0;
  /** Calls that have not ended, at any candidate. */
  #calls = 0;

  constructor(options: OutlierOptions<C>) {
    this.#options = options;
  }

  /** True when no candidate is suspended. */
  get isEmpty(): boolean {
    return this.#out.size === 0;
  }

  /** Undefined while it gets calls as usual. */
  suspensionOf(candidate: C): Suspension | undefined {
    return this.#out.get(candidate);
  }

  /** Ejected or avoided. */
  isSuspended(candidate: C): boolean {
    return this.#out.has(candidate);
  }

  isEjected(candidate: C): boolean {
    return this.#out.get(candidate)?.isAvoided === false;
  }

  /**
   * To be called in the synchronous block that chose the candidate; then `noteMessage` at the first message, and
   * `ended` once.
   */
  sent(candidate: C): SentCall<C> {
    const record = this.#recordOf(candidate);
    const atMs = this.#options.now();
    const call: SentCall<C> = { record, atMs, isAnswered: false, isSilent: false, isAwaitingClient: false };
    record.unanswered.push(call);
    this.#calls += 1;
    this.#countActive(record, 1);
    const out = this.#out.get(candidate);
    if (out !== undefined && out.trial === undefined && atMs >= out.untilMs) out.trial = call;
    if (this.#stopCheck === undefined) this.#scheduleCheck();
    return call;
  }

  /** A half-open candidate: its suspension is over, and it has no trial yet. Choosing it offers the trial to it. */
  pickHalfOpen(mayTake: (candidate: C) => boolean, isRepeatable?: (candidate: C) => boolean): C | undefined {
    const now = this.#options.now();
    for (const [candidate, out] of this.#out) {
      if (out.trial !== undefined || now < out.offerAtMs || !mayTake(candidate)) continue;
      if (now < out.untilMs + REPEATABLE_TRIAL_MS && !isRepeatable?.(candidate)) continue;
      out.offerAtMs = now + OFFER_MS;
      return candidate;
    }
    return undefined;
  }

  changed(members: readonly C[]): void {
    this.#members = members;
    const surplus = this.#ejected.length - this.#mostEjected;
    if (surplus <= 0) return;
    const soonest = this.#ejected.toSorted(([, a], [, b]) => a.untilMs - b.untilMs);
    for (const [candidate] of soonest.slice(0, surplus)) this.#readmit(this.#recordOf(candidate));
  }

  /** The candidate is up; perhaps again, with calls under way. */
  joined(candidate: C): void {
    this.activeCalls += this.#records.get(candidate)?.activeCalls ?? 0;
  }

  /** The candidate left the pool. When it returns, its earlier results do not count: health checks took care of it. */
  left(candidate: C): void {
    const record = this.#records.get(candidate);
    if (record === undefined) return;
    this.activeCalls -= record.activeCalls;
    this.#forgive(record);
  }

  close(): void {
    this.#endCheck();
    this.#members = [];
    this.activeCalls = 0;
    this.#out.clear();
  }

  // --- results of calls ------------------------------------------------------------------------------------

  /** The first message of the call came. Idempotent. */
  noteMessage(call: SentCall<C>): void {
    if (call.isAnswered) return;
    call.isAnswered = true;
    const { record } = call;
    const { candidate, unanswered } = record;
    this.#usualMs = ewma(this.#usualMs, this.#options.now() - call.atMs);
    // The calls before it are silent, but no longer the newest.
    unanswered.splice(0, unanswered.indexOf(call) + 1);
    const out = this.#out.get(candidate);
    if (out !== undefined && (out.isAvoided || out.trial === call)) this.#readmit(record);
  }

  setAwaitingClient(call: SentCall<C>, isAwaitingClient: boolean): void {
    if (isAwaitingClient !== call.isAwaitingClient) this.#countActive(call.record, isAwaitingClient ? -1 : 1);
    call.isAwaitingClient = isAwaitingClient;
  }

  ended(call: SentCall<C>, how: CallVerdict): void {
    const { record } = call;
    this.#calls -= 1;
    if (this.#calls === 0) this.#endCheck();
    if (!call.isAwaitingClient) this.#countActive(record, -1);
    const index = call.isAnswered ? -1 : record.unanswered.lastIndexOf(call);
    if (index >= 0) record.unanswered.splice(index, 1);
    const out = this.#out.get(record.candidate);
    if (out !== undefined) {
      if (out.trial !== call) return;
      if (how === 'failed') this.#suspend(record, 'its trial call failed', out.isAvoided);
      else {
        out.trial = undefined;
        out.offerAtMs = out.untilMs;
      }
    } else if (call.atMs < record.inSinceMs) return;
    else if (how === 'answered') this.#countSuccess(record);
    else if (how === 'failed') this.#countFailure(record);
  }

  // ---------------------------------------------------------------------------------------------------------

  #countActive(record: CandidateRecord<C>, change: 1 | -1): void {
    record.activeCalls += change;
    if (this.#options.isUp(record.candidate)) this.activeCalls += change;
  }

  #countSuccess(record: CandidateRecord<C>): void {
    record.failuresInARow = 0;
    record.successes.add(this.#options.now());
  }

  #countFailure(record: CandidateRecord<C>): void {
    const now = this.#options.now();
    record.failuresInARow += 1;
    record.failures.add(now);
    const reason = whyEjected(record, now, this.#options.policy().ejectionFailures);
    if (reason === undefined || !this.#options.isUp(record.candidate)) return;
    if (this.#ejected.length < this.#mostEjected) this.#suspend(record, reason, false);
  }

  get #ejected(): [C, Out][] {
    return [...this.#out].filter(([, { isAvoided }]) => !isAvoided);
  }

  get #mostEjected(): number {
    return Math.floor(this.#members.length * EJECTED_SHARE);
  }

  #suspend(record: CandidateRecord<C>, reason: string, isAvoided: boolean): void {
    const { candidate, inSinceMs } = record;
    const now = this.#options.now();
    if (!this.#out.has(candidate))
      record.level = Math.max(0, record.level - Math.floor((now - inSinceMs) / FORGIVEN_MS));
    const forMs = Math.min(FIRST_OUT_MS * 2 ** record.level, LONGEST_OUT_MS);
    if (forMs < LONGEST_OUT_MS) record.level += 1;
    const untilMs = now + forMs;
    const out = { reason, untilMs, isAvoided, offerAtMs: untilMs, trial: undefined };
    this.#out.set(candidate, out);
    this.#options.suspended(candidate, out, forMs);
  }

  #readmit(record: CandidateRecord<C>): void {
    this.#forgive(record);
    this.#options.readmitted(record.candidate);
  }

  /** The candidate is in the pool, and its earlier results no longer count. */
  #forgive(record: CandidateRecord<C>): void {
    this.#out.delete(record.candidate);
    record.failuresInARow = 0;
    record.successes.clear();
    record.failures.clear();
    record.inSinceMs = this.#options.now();
  }

  #endCheck(): void {
    this.#stopCheck?.();
    this.#stopCheck = undefined;
  }

  /** One timer for all calls of the pool, set only while there are some. */
  #scheduleCheck(): void {
    this.#stopCheck = this.#options.alarm(CHECK_MS, () => {
      this.#stopCheck = undefined;
      let isNeeded = false;
      // The pool changes its list when a silent candidate is found unhealthy.
      for (const candidate of [...this.#members]) {
        const record = this.#records.get(candidate);
        const { trial } = this.#out.get(candidate) ?? {};
        if (record === undefined || (record.unanswered.length === 0 && trial === undefined)) continue;
        isNeeded = true;
        this.#check(record);
      }
      if (isNeeded && this.#stopCheck === undefined) this.#scheduleCheck();
    });
  }

  #check(record: CandidateRecord<C>): void {
    const { candidate, unanswered } = record;
    const now = this.#options.now();
    const silent = unanswered.filter(({ atMs, isSilent }) => !isSilent && atMs <= now - SILENT_MS);
    for (const call of silent) call.isSilent = true; // reported once
    if (silent.length > 0) this.#options.silent(candidate);
    const thresholdMs = Math.max(SILENT_MS, SILENT_TIMES_USUAL * (this.#usualMs ?? 0));
    const out = this.#out.get(candidate);
    if (out !== undefined) {
      if (out.trial !== undefined && out.trial.atMs <= now - thresholdMs)
        this.#suspend(record, 'its trial call is unanswered', out.isAvoided);
      return;
    }
    const last = unanswered[SILENT_CALLS - 1];
    if (this.#usualMs === undefined || last === undefined || last.atMs > now - thresholdMs) return;
    const seconds = Math.round(thresholdMs / 100) / 10;
    const reason = `its newest ${SILENT_CALLS} calls or more are unanswered for over ${seconds} s`;
    this.#suspend(record, reason, true);
  }

  #recordOf(candidate: C): CandidateRecord<C> {
    const known = this.#records.get(candidate);
    if (known !== undefined) return known;
    const record: CandidateRecord<C> = {
      candidate,
      activeCalls: 0,
      successes: new RecentCount(),
      failures: new RecentCount(),
      failuresInARow: 0,
      unanswered: [],
      level: 0,
      inSinceMs: this.#options.now(),
    };
    this.#records.set(candidate, record);
    return record;
  }
}

function whyEjected(
  { failuresInARow, successes, failures }: CandidateRecord<unknown>,
  nowMs: number,
  most: number,
): string | undefined {
  if (failuresInARow >= most) return `${counted(failuresInARow, 'call')} in a row failed`;
  const failed = failures.sum(nowMs);
  const all = successes.sum(nowMs) + failed;
  if (all < 2 * most || failed <= all * FAILED_SHARE) return undefined;
  return `${failed} of ${all} calls failed within 10 s`;
}
