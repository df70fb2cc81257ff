// Outlier detection by the results of calls, independent of health: a candidate whose calls fail is ejected for a time, one whose
// calls stay silent is avoided. Then one trial call decides. pool.ts chooses; health does not change. Source: ADR 39, ADR 40.
//
//   in ── calls fail ──► ejected ──┬─ time is over ──► due ── trial call ──► answered: in
//     └── calls silent ─► avoided ─┘                                     └─► failed, or silent: out for longer
//
//   ejected: gets no call while another candidate may get it. At most half of the pool.
//   avoided: gets a call only when no other candidate can take it; readmitted at the first message of one of its calls.

import type { Clock } from '../domain/clock.ts';
import { ewma } from './health-score.ts';
import { RecentCounts } from './recent-counts.ts';

/** A candidate is ejected after this many failures in a row, or above this share of at least this many outcomes in ten seconds. */
const FAILURES_IN_A_ROW = 5;
const FAILED_SHARE = 0.5;
const LEAST_OUTCOMES = 10;
/** Part of the pool that may be ejected. */
const EJECTED_SHARE = 0.5;
/** Duration of the first ejection, doubled for each further one up to the longest; each minute in the pool undoes one doubling. */
const FIRST_OUT_MS = 5_000;
const LONGEST_OUT_MS = 60_000;
const FORGIVEN_MS = 60_000;
/** For this time after an ejection the trial must be a repeatable call. */
const REPEATABLE_TRIAL_MS = 1_000;
/** A candidate that was chosen for a trial but got no call (a session was opened there) is offered again after this time. */
const OFFER_MS = 5_000;
/** Silence: this many of the newest calls have no message for this time, and for this multiple of the usual latency. */
const SILENT_CALLS = 3;
const SILENT_MS = 3_000;
const SILENT_TIMES_USUAL = 10;
/** Interval of the check for silent calls; no timer runs while every call has had a message. */
const CHECK_MS = 500;

/** `answered`: also with an error. `failed`: no answer of the backend. `neither`: says nothing about the backend. */
export type CallVerdict = 'answered' | 'failed' | 'neither';

/** One call at one candidate, for `noteMessage` and `ended`. */
export interface SentCall<C> {
  readonly record: CandidateRecord<C>;
  readonly atMs: number;
  readonly order: number;
  isAnswered: boolean;
  /** Its silence was reported. */
  isSilent: boolean;
}

/** Why a candidate is out of the pool although it is healthy, and until when. */
export interface Ejection {
  /** A clause: "5 calls in a row failed". */
  readonly reason: string;
  /** When a trial call may be sent, in ms of the clock. */
  readonly untilMs: number;
}

export interface OutlierOptions<C> extends Clock {
  readonly ejected: (candidate: C, ejection: Ejection, forMs: number) => void;
  readonly readmitted: (candidate: C) => void;
  /** A call there has been silent for SILENT_MS: the candidate may need a probe. */
  readonly silent: (candidate: C) => void;
}

interface Out extends Ejection {
  readonly isAvoided: boolean;
  /** The time of its last choice for a trial. */
  offeredAtMs: number;
  trial: Pick<SentCall<unknown>, 'atMs'> | undefined;
}

export class Outliers<C extends object> {
  readonly #options: OutlierOptions<C>;
  /** Records live as long as the candidate: going down and coming up again ends only the present ejection. */
  readonly #records = new WeakMap<C, CandidateRecord<C>>();
  readonly #out = new Set<CandidateRecord<C>>();
  #members: readonly C[] = [];
  /** Exponentially weighted time to the first message of a call, over all candidates. */
  #usualMs: number | undefined;
  #stopCheck: (() => void) | undefined;

  constructor(options: OutlierOptions<C>) {
    this.#options = options;
  }

  /** True when no candidate is out. */
  get isEmpty(): boolean {
    return this.#out.size === 0;
  }

  /** Undefined while it is in the pool. */
  ejectionOf(candidate: C): Ejection | undefined {
    return this.#records.get(candidate)?.out;
  }

  isEjected(candidate: C): boolean {
    return this.#records.get(candidate)?.out?.isAvoided === false;
  }

  /** To be called in the synchronous block that chose the candidate; then `noteMessage` at the first message, and `ended` once. */
  sent(candidate: C): SentCall<C> {
    const record = this.#recordOf(candidate);
    const atMs = this.#options.now();
    record.sent += 1;
    const call: SentCall<C> = { record, atMs, order: record.sent, isAnswered: false, isSilent: false };
    record.unanswered.push(call);
    const { out } = record;
    if (out !== undefined && out.trial === undefined && atMs >= out.untilMs) out.trial = call;
    if (this.#stopCheck === undefined) this.#scheduleCheck();
    return call;
  }

  /** A candidate whose ejection is over and that has no trial yet. Choosing it offers the trial to it. */
  chooseForTrial(eligible: readonly C[], isRepeatable?: (candidate: C) => boolean): C | undefined {
    const now = this.#options.now();
    for (const { candidate, out } of this.#out) {
      if (
        out === undefined ||
        out.trial !== undefined ||
        now < Math.max(out.untilMs, out.offeredAtMs + OFFER_MS)
      )
        continue;
      if (!eligible.includes(candidate)) continue;
      if (now < out.untilMs + REPEATABLE_TRIAL_MS && !isRepeatable?.(candidate)) continue;
      out.offeredAtMs = now;
      return candidate;
    }
    return undefined;
  }

  changed(members: readonly C[]): void {
    this.#members = members;
    while (this.#ejected > this.#mostEjected) {
      const [first] = [...this.#out].filter(isEjected).sort(byEnd);
      if (first === undefined) break;
      this.#readmit(first);
    }
  }

  /** The candidate left the pool. When it returns, its earlier results do not count: health checks took care of it. */
  left(candidate: C): void {
    const record = this.#records.get(candidate);
    if (record !== undefined) this.#forgive(record);
  }

  close(): void {
    this.#stopCheck?.();
    this.#stopCheck = undefined;
    this.#members = [];
    this.#out.clear();
  }

  // --- results of calls --------------------------------------------------------------------------------------------

  /** The first message of the call came. Idempotent. */
  noteMessage(call: SentCall<C>): void {
    if (call.isAnswered) return;
    call.isAnswered = true;
    const { record } = call;
    const { out, unanswered } = record;
    this.#usualMs = ewma(this.#usualMs, this.#options.now() - call.atMs);
    // The calls before it are silent, but no longer the newest.
    let older = 0;
    for (const other of unanswered) {
      if (other.order > call.order) break;
      older += 1;
    }
    if (older === unanswered.length) unanswered.length = 0;
    else if (older > 0) unanswered.splice(0, older);
    if (out !== undefined && (out.isAvoided || out.trial === call)) this.#readmit(record);
  }

  ended(call: SentCall<C>, how: CallVerdict): void {
    const { record } = call;
    const { out } = record;
    if (!call.isAnswered) record.remove(call);
    if (out !== undefined) {
      if (out.trial !== call) return;
      if (how === 'failed') this.#eject(record, 'its trial call failed', out.isAvoided);
      else {
        out.trial = undefined;
        out.offeredAtMs = Number.NEGATIVE_INFINITY;
      }
    } else if (how !== 'neither' && call.atMs >= record.inSinceMs) this.#count(record, how === 'failed');
  }

  // -----------------------------------------------------------------------------------------------------------------

  #count(record: CandidateRecord<C>, isFailure: boolean): void {
    const now = this.#options.now();
    if (!isFailure) {
      record.failuresInARow = 0;
      record.outcomes.addFirst(now);
      return;
    }
    record.failuresInARow += 1;
    record.outcomes.addSecond(now);
    const reason = whyEjected(record, now);
    if (reason === undefined || !this.#members.includes(record.candidate)) return;
    if (this.#ejected + 1 <= this.#mostEjected) this.#eject(record, reason, false);
  }

  get #ejected(): number {
    let count = 0;
    for (const record of this.#out) if (isEjected(record)) count += 1;
    return count;
  }

  get #mostEjected(): number {
    return Math.floor(this.#members.length * EJECTED_SHARE);
  }

  #eject(record: CandidateRecord<C>, reason: string, isAvoided: boolean): void {
    const now = this.#options.now();
    if (record.out === undefined) record.forgiveLevels(now);
    const forMs = Math.min(FIRST_OUT_MS * 2 ** record.level, LONGEST_OUT_MS);
    if (forMs < LONGEST_OUT_MS) record.level += 1;
    const offeredAtMs = Number.NEGATIVE_INFINITY;
    record.out = { reason, untilMs: now + forMs, isAvoided, offeredAtMs, trial: undefined };
    this.#out.add(record);
    this.#options.ejected(record.candidate, record.out, forMs);
  }

  #readmit(record: CandidateRecord<C>): void {
    this.#forgive(record);
    this.#options.readmitted(record.candidate);
  }

  #forgive(record: CandidateRecord<C>): void {
    record.reset(this.#options.now());
    this.#out.delete(record);
  }

  /** One timer for all calls of the pool, set only while there are some. */
  #scheduleCheck(): void {
    this.#stopCheck = this.#options.alarm(CHECK_MS, () => {
      this.#stopCheck = undefined;
      let isNeeded = false;
      for (const candidate of this.#members) {
        const record = this.#records.get(candidate);
        if (record === undefined || (record.unanswered.length === 0 && record.out?.trial === undefined))
          continue;
        isNeeded = true;
        this.#check(record);
      }
      if (isNeeded && this.#stopCheck === undefined) this.#scheduleCheck();
    });
  }

  #check(record: CandidateRecord<C>): void {
    const now = this.#options.now();
    if (record.hasNewSilence(now - SILENT_MS)) this.#options.silent(record.candidate);
    const thresholdMs = Math.max(SILENT_MS, SILENT_TIMES_USUAL * (this.#usualMs ?? 0));
    const { out, unanswered } = record;
    if (out !== undefined) {
      if (out.trial !== undefined && out.trial.atMs <= now - thresholdMs)
        this.#eject(record, 'its trial call is unanswered', out.isAvoided);
      return;
    }
    const [, , third] = unanswered; // SILENT_CALLS
    if (this.#usualMs === undefined || third === undefined || third.atMs > now - thresholdMs) return;
    const seconds = Math.round(thresholdMs / 100) / 10;
    this.#eject(
      record,
      `its newest ${SILENT_CALLS} calls or more are unanswered for over ${seconds} s`,
      true,
    );
  }

  #recordOf(candidate: C): CandidateRecord<C> {
    const known = this.#records.get(candidate);
    if (known !== undefined) return known;
    const record = new CandidateRecord(candidate, this.#options.now());
    this.#records.set(candidate, record);
    return record;
  }
}

export class CandidateRecord<C> {
  readonly candidate: C;
  /** Answered calls, and failed ones. */
  readonly outcomes = new RecentCounts();
  failuresInARow = 0;
  sent = 0;
  /** The newest calls without a message, in the order in which they were sent. */
  readonly unanswered: SentCall<C>[] = [];
  out: Out | undefined;
  /** Doublings of the next ejection. */
  level = 0;
  inSinceMs: number;

  constructor(candidate: C, nowMs: number) {
    this.candidate = candidate;
    this.inSinceMs = nowMs;
  }

  /** The candidate is readmitted, and its earlier results no longer count. */
  reset(nowMs: number): void {
    this.out = undefined;
    this.failuresInARow = 0;
    this.outcomes.clear();
    this.inSinceMs = nowMs;
  }

  forgiveLevels(nowMs: number): void {
    this.level = Math.max(0, this.level - Math.floor((nowMs - this.inSinceMs) / FORGIVEN_MS));
  }

  remove(call: SentCall<C>): void {
    const index = this.unanswered.lastIndexOf(call);
    if (index >= 0) this.unanswered.splice(index, 1);
  }

  /** True if a call that was sent before that time has no message; true only once per call. */
  hasNewSilence(beforeMs: number): boolean {
    let hasNew = false;
    for (const call of this.unanswered) {
      if (call.atMs > beforeMs) break;
      hasNew ||= !call.isSilent;
      call.isSilent = true;
    }
    return hasNew;
  }
}

function whyEjected(
  { failuresInARow, outcomes }: CandidateRecord<unknown>,
  nowMs: number,
): string | undefined {
  if (failuresInARow >= FAILURES_IN_A_ROW) return `${failuresInARow} calls in a row failed`;
  const [answered, failed] = outcomes.sums(nowMs);
  const all = answered + failed;
  if (all < LEAST_OUTCOMES || failed <= all * FAILED_SHARE) return undefined;
  return `${failed} of ${all} calls failed within 10 s`;
}

function isEjected({ out }: { readonly out: Out | undefined }): boolean {
  return out?.isAvoided === false;
}

function byEnd(
  { out: a }: { readonly out: Out | undefined },
  { out: b }: { readonly out: Out | undefined },
): number {
  return (a?.untilMs ?? 0) - (b?.untilMs ?? 0);
}
