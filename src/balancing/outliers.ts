// Outlier detection by the results of calls, independent of health: a candidate whose calls fail is ejected for a
// time, one whose calls stay silent is avoided; both are suspended. Then one trial call decides. pool.ts chooses;
// health does not change. Source: ADR 39.
//
//   in ── calls fail ────────► ejected ──┬─ time is over ──► half-open ── trial call ──► answered: in
//     └── calls silent ──────► avoided ──┘                                           └─► failed, or silent: out for longer
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
 * A candidate is ejected after `ejectionFailures` failures in a row, or when failures exceed this share of the
 * outcomes of ten seconds, of which there must be at least twice as many.
 */
const FAILED_SHARE = 0.5;
/** The largest part of the pool that may be ejected. */
const EJECTED_SHARE = 0.5;
/** The duration of the first suspension, in ms. Each further one takes twice as long. */
const FIRST_OUT_MS = 5_000;
/** The longest suspension, in ms. */
const MAX_OUT_MS = 60_000;
/** The time in the pool that undoes one doubling, in ms. */
const DOUBLING_FORGIVEN_MS = 60_000;
/** The time after a suspension, in ms, in which only a repeatable call may be the trial. */
const REPEATABLE_TRIAL_MS = 1_000;
/**
 * A candidate that was chosen for a trial but got no call (a session was opened at it) may be chosen again after this
 * time, in ms.
 */
const RETRIAL_MS = 5_000;
/** A candidate is avoided when this many of its newest calls are silent. */
const SILENT_CALLS = 3;
/** The time without a message after which a call is silent, in ms. */
const SILENT_MS = 3_000;
/** The same as a multiple of the usual latency; the longer one of both counts. */
const SILENT_TIMES_USUAL = 10;
/**
 * The interval of the check for silent calls, in ms. No timer runs while every call has had a message, or there are
 * no calls.
 */
const CHECK_MS = 500;

/**
 * What the end of an attempt says about its backend. `answered`: it answered, perhaps with an error. `failed`: it did not
 * answer. `inconclusive`: nothing.
 */
export type AttemptVerdict = 'answered' | 'failed' | 'inconclusive';

/** One attempt of a call at one candidate, to be passed to `noteMessage` and `ended`. */
export interface AttemptRecord<C> {
  readonly at: CandidateRecord<C>;
  readonly atMs: number;
  /** The time since which the backend may answer, in ms of the clock; infinite while the request is held back. */
  sinceMs: number;
  hasMessage: boolean;
  /** True once it was reported that the attempt is silent. */
  isReported: boolean;
}

/**
 * Why a candidate is ejected or avoided although it is healthy, and until when. Shown as `ejection` of
 * InstanceSnapshot.
 */
export interface Suspension {
  /** The reason as a clause, such as "5 calls in a row failed". */
  readonly reason: string;
  /** The time from which a trial call may be sent, in ms of the clock. */
  readonly untilMs: number;
}

export interface OutlierOptions<C> {
  readonly clock: Clock;
  readonly policy: () => Pick<TemplatePolicy, 'ejectionFailures'>;
  /** The candidates in the pool. */
  readonly members: () => readonly C[];
  /** True for a candidate that is in the pool. */
  readonly isUp: (candidate: C) => boolean;
  readonly onSuspended: (candidate: C, suspension: Suspension, forMs: number) => void;
  readonly onReadmitted: (candidate: C) => void;
  /** Called when a call has had no message for SILENT_MS: the candidate may need a probe. */
  readonly onSilent: (candidate: C) => void;
}

interface CandidateRecord<C> {
  readonly candidate: C;
  /** The number of its active calls, which are part of `Outliers.activeCalls` while the candidate is up. */
  activeCalls: number;
  readonly successes: RecentCount;
  readonly failures: RecentCount;
  failuresInARow: number;
  /** The newest attempts without a message, in the order of sending. */
  readonly silent: AttemptRecord<C>[];
  /** The number of doublings of the next suspension. */
  doublings: number;
  inSinceMs: number;
}

/** A candidate that is out, as the head of this file draws it. It is half-open once its time is over, without a trial. */
interface Suspended extends Suspension {
  readonly kind: 'ejected' | 'avoided';
  /** The time from which the candidate may be chosen for a trial, in ms of the clock. */
  nextTrialAtMs: number;
  trial: Pick<AttemptRecord<unknown>, 'sinceMs'> | undefined;
}

/** The records of one pool: how the last calls of each candidate went, and which candidates are suspended. */
export class Outliers<C extends object> {
  readonly #options: OutlierOptions<C>;
  /** Records live as long as their candidate: its doublings and its calls under way count again after it was down. */
  readonly #records = new WeakMap<C, CandidateRecord<C>>();
  readonly #suspended = new Map<C, Suspended>();
  /**
   * The exponentially weighted time to the first message of a call, over all candidates, in ms; undefined before the
   * first.
   */
  #usualMs: number | undefined;
  #stopCheck: (() => void) | undefined;
  /** The number of active calls at candidates that are up, without those that wait for their client. */
  activeCalls = 0;
  /** The number of calls that have not ended, at any candidate. */
  #calls = 0;

  constructor(options: OutlierOptions<C>) {
    this.#options = options;
  }

  /** True when no candidate is suspended. */
  get isEmpty(): boolean {
    return this.#suspended.size === 0;
  }

  /** The suspension of a candidate; undefined while it gets calls as usual. */
  suspensionOf(candidate: C): Suspension | undefined {
    return this.#suspended.get(candidate);
  }

  /** True when the candidate is ejected or avoided. */
  isSuspended(candidate: C): boolean {
    return this.#suspended.has(candidate);
  }

  isEjected(candidate: C): boolean {
    return this.#suspended.get(candidate)?.kind === 'ejected';
  }

  /**
   * Records an attempt. Must be called in the synchronous block that chose the candidate; then `noteMessage` at the first
   * message, and `ended` once.
   */
  sent(candidate: C): AttemptRecord<C> {
    const at = this.#recordOf(candidate);
    const atMs = this.#options.clock.now();
    const attempt: AttemptRecord<C> = { at, atMs, sinceMs: atMs, hasMessage: false, isReported: false };
    at.silent.push(attempt);
    this.#calls += 1;
    this.#countActive(at, 1);
    const suspended = this.#suspended.get(candidate);
    if (suspended !== undefined && suspended.trial === undefined && atMs >= suspended.untilMs)
      suspended.trial = attempt;
    if (this.#stopCheck === undefined) this.#scheduleCheck();
    return attempt;
  }

  /**
   * A half-open candidate: one whose suspension is over, and that has no trial yet. Its next call is the
   * trial.
   */
  pickHalfOpen(mayTake: (candidate: C) => boolean, isRepeatable?: (candidate: C) => boolean): C | undefined {
    const now = this.#options.clock.now();
    for (const [candidate, suspended] of this.#suspended) {
      if (suspended.trial !== undefined || now < suspended.nextTrialAtMs || !mayTake(candidate)) continue;
      if (now < suspended.untilMs + REPEATABLE_TRIAL_MS && !isRepeatable?.(candidate)) continue;
      suspended.nextTrialAtMs = now + RETRIAL_MS;
      return candidate;
    }
    return undefined;
  }

  /** Reports that the members have changed: fewer of them may be ejected than before. */
  changed(): void {
    const surplus = this.#ejected.length - this.#mostEjected;
    if (surplus <= 0) return;
    const soonest = this.#ejected.toSorted(([, a], [, b]) => a.untilMs - b.untilMs);
    for (const [candidate] of soonest.slice(0, surplus)) this.#readmit(this.#recordOf(candidate));
  }

  /**
   * Reports that a candidate is up, perhaps again and with calls under way. Its earlier results do not count, since health
   * checks took care of them.
   */
  joined(candidate: C): void {
    const record = this.#records.get(candidate);
    if (record === undefined) return;
    this.activeCalls += record.activeCalls;
    this.#forgive(record);
  }

  /** Reports that a candidate has left the pool. */
  left(candidate: C): void {
    this.#suspended.delete(candidate);
    this.activeCalls -= this.#records.get(candidate)?.activeCalls ?? 0;
  }

  close(): void {
    this.#endCheck();
    this.activeCalls = 0;
    this.#suspended.clear();
  }

  // --- results of calls ------------------------------------------------------------------------------------

  /** Reports the first message of an attempt. Idempotent. */
  noteMessage(attempt: AttemptRecord<C>): void {
    if (attempt.hasMessage) return;
    attempt.hasMessage = true;
    const { at } = attempt;
    const { candidate, silent } = at;
    this.#usualMs = ewma(this.#usualMs, this.#options.clock.now() - attempt.sinceMs);
    // The attempts before it are silent, but no longer the newest.
    silent.splice(0, silent.indexOf(attempt) + 1);
    const suspended = this.#suspended.get(candidate);
    if (suspended !== undefined && (suspended.kind === 'avoided' || suspended.trial === attempt))
      this.#readmit(at);
  }

  /** Reports each change: while the backend waits for the client the call uses no capacity. */
  setAwaitingClient({ at }: AttemptRecord<C>, isAwaitingClient: boolean): void {
    this.#countActive(at, isAwaitingClient ? -1 : 1);
  }

  /** Reports each change: while the request is held back, the backend cannot answer, and is not silent. */
  setHeld(attempt: AttemptRecord<C>, isHeld: boolean): void {
    attempt.sinceMs = isHeld ? Number.POSITIVE_INFINITY : this.#options.clock.now();
  }

  /** Reports the end of an attempt, once. One that waits for its client must be resumed first. */
  ended(attempt: AttemptRecord<C>, verdict: AttemptVerdict): void {
    const { at } = attempt;
    const how = attempt.sinceMs === Number.POSITIVE_INFINITY ? 'inconclusive' : verdict;
    this.#calls -= 1;
    if (this.#calls === 0) this.#endCheck();
    this.#countActive(at, -1);
    const index = attempt.hasMessage ? -1 : at.silent.lastIndexOf(attempt);
    if (index >= 0) at.silent.splice(index, 1);
    const suspended = this.#suspended.get(at.candidate);
    if (suspended !== undefined) {
      if (suspended.trial !== attempt) return;
      if (how === 'failed') this.#suspend(at, 'its trial call failed', suspended.kind);
      else {
        suspended.trial = undefined;
        suspended.nextTrialAtMs = suspended.untilMs;
      }
    } else if (attempt.atMs < at.inSinceMs) return;
    else if (how === 'answered') this.#countSuccess(at);
    else if (how === 'failed') this.#countFailure(at);
  }

  #countActive(record: CandidateRecord<C>, change: 1 | -1): void {
    record.activeCalls += change;
    if (this.#options.isUp(record.candidate)) this.activeCalls += change;
  }

  #countSuccess(record: CandidateRecord<C>): void {
    record.failuresInARow = 0;
    record.successes.add(this.#options.clock.now());
  }

  #countFailure(record: CandidateRecord<C>): void {
    const now = this.#options.clock.now();
    record.failuresInARow += 1;
    record.failures.add(now);
    const reason = whyEjected(record, now, this.#options.policy().ejectionFailures);
    if (reason === undefined || !this.#options.isUp(record.candidate)) return;
    if (this.#ejected.length < this.#mostEjected) this.#suspend(record, reason, 'ejected');
  }

  get #ejected(): [C, Suspended][] {
    return [...this.#suspended].filter(([, { kind }]) => kind === 'ejected');
  }

  get #mostEjected(): number {
    return Math.floor(this.#options.members().length * EJECTED_SHARE);
  }

  #suspend(record: CandidateRecord<C>, reason: string, kind: Suspended['kind']): void {
    const { candidate, inSinceMs } = record;
    const now = this.#options.clock.now();
    if (!this.#suspended.has(candidate))
      record.doublings = Math.max(0, record.doublings - Math.floor((now - inSinceMs) / DOUBLING_FORGIVEN_MS));
    const forMs = Math.min(FIRST_OUT_MS * 2 ** record.doublings, MAX_OUT_MS);
    if (forMs < MAX_OUT_MS) record.doublings += 1;
    const untilMs = now + forMs;
    const suspended = { reason, untilMs, kind, nextTrialAtMs: untilMs, trial: undefined };
    this.#suspended.set(candidate, suspended);
    this.#options.onSuspended(candidate, suspended, forMs);
  }

  #readmit(record: CandidateRecord<C>): void {
    this.#forgive(record);
    this.#options.onReadmitted(record.candidate);
  }

  /** Ends the suspension of a candidate, if any, and forgets its earlier results. */
  #forgive(record: CandidateRecord<C>): void {
    this.#suspended.delete(record.candidate);
    record.failuresInARow = 0;
    record.successes.clear();
    record.failures.clear();
    record.inSinceMs = this.#options.clock.now();
  }

  #endCheck(): void {
    this.#stopCheck?.();
    this.#stopCheck = undefined;
  }

  /** Sets the one timer for all calls of the pool, as long as there are some. */
  #scheduleCheck(): void {
    this.#stopCheck = this.#options.clock.alarm(CHECK_MS, () => {
      this.#stopCheck = undefined;
      let isNeeded = false;
      // The pool changes its list when a candidate that does not answer is found unhealthy.
      for (const candidate of [...this.#options.members()]) {
        const record = this.#records.get(candidate);
        const { trial } = this.#suspended.get(candidate) ?? {};
        if (record === undefined || (record.silent.length === 0 && trial === undefined)) continue;
        isNeeded = true;
        this.#check(record);
      }
      if (isNeeded && this.#stopCheck === undefined) this.#scheduleCheck();
    });
  }

  #check(record: CandidateRecord<C>): void {
    const { candidate, silent } = record;
    const now = this.#options.clock.now();
    const late = silent.filter(({ sinceMs, isReported }) => !isReported && sinceMs <= now - SILENT_MS);
    for (const call of late) call.isReported = true; // reported once
    if (late.length > 0) this.#options.onSilent(candidate);
    const thresholdMs = Math.max(SILENT_MS, SILENT_TIMES_USUAL * (this.#usualMs ?? 0));
    const suspended = this.#suspended.get(candidate);
    if (suspended !== undefined) {
      if (suspended.trial !== undefined && suspended.trial.sinceMs <= now - thresholdMs)
        this.#suspend(record, 'its trial call is unanswered', suspended.kind);
      return;
    }
    const unanswered = silent.filter(({ sinceMs }) => sinceMs <= now - thresholdMs);
    if (this.#usualMs === undefined || unanswered.length < SILENT_CALLS) return;
    const seconds = Math.round(thresholdMs / 100) / 10;
    const reason = `its newest ${SILENT_CALLS} calls or more have been unanswered for over ${seconds} s`;
    this.#suspend(record, reason, 'avoided');
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
      silent: [],
      doublings: 0,
      inSinceMs: this.#options.clock.now(),
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
