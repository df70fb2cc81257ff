// Outlier detection by the results of calls, independent of health: a candidate with failed calls is ejected for a time, a
// candidate with silent calls is avoided. Then one trial call decides. Choosing is in pool.ts; health does not change.
// Pure, except for the clock that it is given. Source: ADR 39, ADR 40.
//
//   in ── calls fail ──► ejected ──┬─ time is over ──► due ── trial call ──► answered: in
//     └── calls silent ─► avoided ─┘                                     └─► failed, or silent: out for longer
//
//   ejected: gets no call while another candidate may get it. At most half of the pool.
//   avoided: gets a call when no other candidate can take it; in again at the first message of one of its calls.

import type { Clock } from '../domain/clock.ts';
import { ewma } from './health-score.ts';
import { RecentCounts } from './recent-counts.ts';

/** Transport failures in a row that eject; or more than this share of at least so many outcomes in ten seconds. */
const FAILURES_IN_A_ROW = 5;
const FAILED_SHARE = 0.5;
const LEAST_OUTCOMES = 10;
/** Part of the pool that may be ejected. */
const EJECTED_SHARE = 0.5;
/** The first time out, doubled each time up to the longest; each minute in the pool takes one doubling back. */
const FIRST_OUT_MS = 5_000;
const LONGEST_OUT_MS = 60_000;
const FORGIVEN_MS = 60_000;
/** For this time after the ejection the trial has to be a call that may be repeated. */
const REPEATABLE_TRIAL_MS = 1_000;
/** A trial candidate that gets no call, because a session was opened there, is offered again after this time. */
const OFFER_MS = 5_000;
/** Silence: this many of the newest calls have no message for this time, and for this multiple of the usual time. */
const SILENT_CALLS = 3;
const SILENT_MS = 3_000;
const SILENT_TIMES_USUAL = 10;
/** Interval of the check for silent calls; no timer runs while every call has had a message. */
const LOOK_MS = 500;

/** `answered`: also with an error. `failed`: the backend gave no answer. `neither`: it says nothing about the backend. */
export type CallEnd = 'answered' | 'failed' | 'neither';

/** One call at one candidate, for `noteMessage` and `ended`. */
export interface Sent<C> {
  readonly record: CandidateRecord<C>;
  readonly atMs: number;
  readonly order: number;
  isAnswered: boolean;
  /** Its silence was noticed. */
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
  /** A call there has been silent for SILENT_MS: the candidate may want a probe. */
  readonly silent: (candidate: C) => void;
}

interface Out extends Ejection {
  readonly isAvoided: boolean;
  /** When it was chosen for a trial. */
  offeredAtMs: number;
  trial: object | undefined;
  trialAtMs: number;
}

export class Outliers<C extends object> {
  readonly #options: OutlierOptions<C>;
  /** Records live as long as the candidate: going down and coming up again ends only the present ejection. */
  readonly #records = new WeakMap<C, CandidateRecord<C>>();
  readonly #out = new Set<CandidateRecord<C>>();
  #members: readonly C[] = [];
  /** Exponentially weighted time to the first message of a call, over all candidates. */
  #usualMs: number | undefined;
  #stopLooking: (() => void) | undefined;

  constructor(options: OutlierOptions<C>) {
    this.#options = options;
  }

  /** True when no candidate is out. */
  get isEmpty(): boolean {
    return this.#out.size === 0;
  }

  /** Undefined while it is in. */
  ejectionOf(candidate: C): Ejection | undefined {
    return this.#records.get(candidate)?.out;
  }

  isEjected(candidate: C): boolean {
    return this.#records.get(candidate)?.out?.isAvoided === false;
  }

  /** To be called in the synchronous block that chose and counted it; then `noteMessage`, if it is, and `ended`, once. */
  sent(candidate: C): Sent<C> {
    const record = this.#recordOf(candidate);
    const atMs = this.#options.now();
    record.sent += 1;
    const call: Sent<C> = { record, atMs, order: record.sent, isAnswered: false, isSilent: false };
    record.unanswered.push(call);
    const { out } = record;
    if (out !== undefined && out.trial === undefined && atMs >= out.untilMs) {
      out.trial = call;
      out.trialAtMs = atMs;
    }
    if (this.#stopLooking === undefined) this.#lookLater();
    return call;
  }

  /** A candidate whose ejection is over and that has no trial yet; choosing it reserves the trial for it. */
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

  /** These are in the pool now. */
  changed(members: readonly C[]): void {
    this.#members = members;
    while (this.#ejected > this.#mostEjected) {
      const [first] = [...this.#out].filter(isEjected).sort(byEnd);
      if (first === undefined) break;
      this.#readmit(first);
    }
  }

  /** The candidate left the pool. When it returns it is judged anew: the health checks have taken care of it. */
  left(candidate: C): void {
    const record = this.#records.get(candidate);
    if (record !== undefined) this.#forgive(record);
  }

  close(): void {
    this.#stopLooking?.();
    this.#stopLooking = undefined;
    this.#members = [];
    this.#out.clear();
  }

  // --- what calls tell ---------------------------------------------------------------------------------------------

  /** Its first message came. Idempotent. */
  noteMessage(call: Sent<C>): void {
    if (call.isAnswered) return;
    call.isAnswered = true;
    const { record } = call;
    const { out, unanswered } = record;
    this.#usualMs = ewma(this.#usualMs, this.#options.now() - call.atMs);
    // The calls before it are silent, but no longer the newest ones.
    let older = 0;
    for (const other of unanswered) {
      if (other.order > call.order) break;
      older += 1;
    }
    if (older === unanswered.length) unanswered.length = 0;
    else if (older > 0) unanswered.splice(0, older);
    if (out !== undefined && (out.isAvoided || out.trial === call)) this.#readmit(record);
  }

  ended(call: Sent<C>, how: CallEnd): void {
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
    record.out = { reason, untilMs: now + forMs, isAvoided, offeredAtMs, trial: undefined, trialAtMs: 0 };
    this.#out.add(record);
    this.#options.ejected(record.candidate, record.out, forMs);
  }

  #readmit(record: CandidateRecord<C>): void {
    this.#forgive(record);
    this.#options.readmitted(record.candidate);
  }

  #forgive(record: CandidateRecord<C>): void {
    record.forget(this.#options.now());
    this.#out.delete(record);
  }

  /** One timer for all calls of the pool, set only while there are some. */
  #lookLater(): void {
    this.#stopLooking = this.#options.alarm(LOOK_MS, () => {
      this.#stopLooking = undefined;
      let isWanted = false;
      for (const candidate of this.#members) {
        const record = this.#records.get(candidate);
        if (record === undefined || (record.unanswered.length === 0 && record.out?.trial === undefined))
          continue;
        isWanted = true;
        this.#lookAt(record);
      }
      if (isWanted && this.#stopLooking === undefined) this.#lookLater();
    });
  }

  #lookAt(record: CandidateRecord<C>): void {
    const now = this.#options.now();
    if (record.hasNewSilence(now - SILENT_MS)) this.#options.silent(record.candidate);
    const patienceMs = Math.max(SILENT_MS, SILENT_TIMES_USUAL * (this.#usualMs ?? 0));
    const { out, unanswered } = record;
    if (out !== undefined) {
      const isSilent = out.trial !== undefined && out.trialAtMs <= now - patienceMs;
      if (isSilent) this.#eject(record, 'its trial call is silent', out.isAvoided);
      return;
    }
    const [, , third] = unanswered; // SILENT_CALLS
    if (this.#usualMs === undefined || third === undefined || third.atMs > now - patienceMs) return;
    const seconds = Math.round(patienceMs / 100) / 10;
    this.#eject(record, `its newest ${SILENT_CALLS} calls or more are silent for over ${seconds} s`, true);
  }

  #recordOf(candidate: C): CandidateRecord<C> {
    const known = this.#records.get(candidate);
    if (known !== undefined) return known;
    const record = new CandidateRecord(candidate, this.#options.now());
    this.#records.set(candidate, record);
    return record;
  }
}

/** What is remembered of one candidate. */
export class CandidateRecord<C> {
  readonly candidate: C;
  /** Answered calls, and failed ones. */
  readonly outcomes: RecentCounts;
  failuresInARow = 0;
  /** Calls so far. */
  sent = 0;
  /** The newest calls without a message, in the order in which they were sent. */
  readonly unanswered: Sent<C>[] = [];
  out: Out | undefined;
  /** Doublings of the next time out. */
  level = 0;
  inSinceMs: number;

  constructor(candidate: C, nowMs: number) {
    this.candidate = candidate;
    this.outcomes = new RecentCounts(nowMs);
    this.inSinceMs = nowMs;
  }

  /** The candidate is in, and its earlier results no longer count. */
  forget(nowMs: number): void {
    this.out = undefined;
    this.failuresInARow = 0;
    this.outcomes.clear();
    this.inSinceMs = nowMs;
  }

  forgiveLevels(nowMs: number): void {
    this.level = Math.max(0, this.level - Math.floor((nowMs - this.inSinceMs) / FORGIVEN_MS));
  }

  remove(call: Sent<C>): void {
    const index = this.unanswered.lastIndexOf(call);
    if (index >= 0) this.unanswered.splice(index, 1);
  }

  /** True once for every call that was sent before that time and has no message. */
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
  { out: one }: { readonly out: Out | undefined },
  { out: other }: { readonly out: Out | undefined },
): number {
  return (one?.untilMs ?? 0) - (other?.untilMs ?? 0);
}
