// The clock of all code that measures time or waits; specs pass their own. An alarm is not an Observable, because
// every call sets one; clock-streams.ts has those.

/** The waits of a clock. The functions that they return cancel them. */
export interface Waits {
  /** Calls `callback` once, after `waitMs`, or after the longest wait of a timer. */
  readonly alarm: (waitMs: number, callback: () => void) => () => void;
  /** Calls `callback` again and again, each `everyMs`, the first time after the first of them. */
  readonly every: (everyMs: number, callback: () => void) => () => void;
}

export interface Clock extends Waits {
  /** Monotonic, in ms: for ages and waits. Setting the clock of the machine does not change it. */
  readonly now: () => number;
  /** Milliseconds since 1970: only for times that are shown or stored, or compared with such times. */
  readonly wall: () => number;
  /** Waits that do not keep the process running. */
  readonly background: Waits;
}

export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;

/** The clock of this process. */
export const systemClock: Clock = {
  now: () => performance.now(),
  wall: () => Date.now(),
  alarm: (waitMs, callback) => once(setTimeout(callback, timerMs(waitMs))),
  every: (everyMs, callback) => repeated(setInterval(callback, everyMs)),
  background: {
    alarm: (waitMs, callback) => once(setTimeout(callback, timerMs(waitMs)).unref()),
    every: (everyMs, callback) => repeated(setInterval(callback, everyMs).unref()),
  },
};

/** The longest wait of a timer of Node, 24.8 days: a longer one would end at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** The time of a timer for this wait, in ms: the shortest one for a wait that is over, as Node warns of negative ones. */
function timerMs(waitMs: number): number {
  return Math.min(Math.max(waitMs, 0), MAX_TIMER_MS);
}

function once(timer: NodeJS.Timeout): () => void {
  return () => clearTimeout(timer);
}

function repeated(timer: NodeJS.Timeout): () => void {
  return () => clearInterval(timer);
}

/** Stops this thread, with all that runs in it, for code that must not become asynchronous. */
export function pauseSync(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

/** Times of two clocks that differ by more than this are not compared, in ms. */
export const MAX_SKEW_MS = 60_000;
const STEADY_SHARE = 0.1;
/** The wall clock has whole milliseconds, and the process may stand still between the readings of the two clocks. */
const UNEVEN_MS = 1_000;

/**
 * True when a stored time is less than `withinMs` before `nowMs`, or after it by no more than clocks of nodes differ. One that is
 * further ahead was stored by a wrong clock: it would count as recent until then. All in ms since 1970.
 */
export function isRecent(atMs: number, withinMs: number, nowMs: number): boolean {
  const ageMs = nowMs - atMs;
  return ageMs < withinMs && ageMs >= -MAX_SKEW_MS;
}

/**
 * The returned function is true when the wall clock was set since it was last asked, or since the function was made: it did not
 * advance as the monotonic clock did, within 10 % and 1 s.
 */
export function clockSteps({ wall, now }: Pick<Clock, 'wall' | 'now'>): () => boolean {
  let wallMs = wall();
  let monotonicMs = now();
  return () => {
    const wallPassedMs = wall() - wallMs;
    const passedMs = now() - monotonicMs;
    wallMs += wallPassedMs;
    monotonicMs += passedMs;
    return Math.abs(wallPassedMs - passedMs) > STEADY_SHARE * passedMs + UNEVEN_MS;
  };
}

/**
 * The returned function resolves with the reason why the wall clock may be wrong, as a clause. Undefined when what is too old
 * by it may be deleted for good: it was not set, see `clockSteps`, and agrees with the clock of the database, if that has one of
 * its own. Source: ADR 386.
 */
export function clockDoubt(
  clock: Pick<Clock, 'wall' | 'now'>,
  serverTimeMs: () => Promise<number | undefined>,
): () => Promise<string | undefined> {
  const wasSet = clockSteps(clock);
  return async () => {
    if (wasSet()) return 'was set since it was last compared';
    const present = clock.wall();
    const skewMs = Math.abs(((await serverTimeMs()) ?? present) - present);
    return skewMs <= MAX_SKEW_MS ? undefined : 'differs from the clock of the database';
  };
}

type Runner = { readonly run: (task: () => void) => void };

/** An alarm; those that are due at the same time ring over several turns of the event loop. */
export function spreadAlarm(scheduler: Runner, alarm: Waits['alarm']): Waits['alarm'] {
  return (waitMs, callback) => {
    let isCancelled = false;
    const cancel = alarm(waitMs, () =>
      scheduler.run(() => {
        if (!isCancelled) callback();
      }),
    );
    return () => {
      isCancelled = true;
      cancel();
    };
  };
}

/** A clock whose alarms that are due at the same time ring over several turns of the event loop. */
export function spreadClock(scheduler: Runner, clock: Clock): Clock {
  const { background } = clock;
  return {
    ...clock,
    alarm: spreadAlarm(scheduler, clock.alarm),
    background: { ...background, alarm: spreadAlarm(scheduler, background.alarm) },
  };
}

/** The clock of xstate with these alarms. */
export function machineClock({ alarm }: Waits) {
  return {
    setTimeout: (callback: () => void, waitMs: number) => alarm(waitMs, callback),
    clearTimeout: (cancel: () => void) => cancel(),
  };
}

/** A clock none of whose waits keeps the process running. */
export function backgroundClock(clock: Clock): Clock {
  return { ...clock, ...clock.background };
}

/** Resolves after `ms`; rejects with the reason of the signal when that aborts before. */
export async function sleep(clock: Waits, ms: number, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const cancel = clock.alarm(ms, resolve);
  const stop = (): void => {
    cancel();
    reject(signal?.reason);
  };
  signal?.addEventListener('abort', stop);
  await promise.finally(() => signal?.removeEventListener('abort', stop));
}

/** A signal that aborts after `ms` with a TimeoutError. It does not keep the process running. */
export function timeLimit(clock: Clock, ms: number): AbortSignal {
  const limit = new AbortController();
  clock.background.alarm(ms, () => limit.abort(new DOMException(`no end within ${ms} ms`, 'TimeoutError')));
  return limit.signal;
}

/**
 * The result of `work`; a rejection once `signal` aborts, with `failure` or else with the reason of the signal. Leaves nothing on
 * the signal, which may live much longer than the work.
 */
export async function unlessAborted<T>(
  signal: AbortSignal | undefined,
  work: Promise<T>,
  failure?: () => Error,
): Promise<T> {
  if (signal === undefined) return work;
  const { promise: refused, reject } = Promise.withResolvers<never>();
  const stop = (): void => reject(failure?.() ?? signal.reason);
  if (signal.aborted) stop();
  signal.addEventListener('abort', stop);
  try {
    return await Promise.race([work, refused]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

/** The time since 1970 of a monotonic time, by the wall clock as it is set now. */
export function wallAt({ now, wall }: Clock, monotonicMs: number): number {
  return wall() - now() + monotonicMs;
}

/** True when it resolves or rejects within `ms`. Never rejects. */
export async function settlesWithin(promise: Promise<unknown>, ms: number, clock: Waits): Promise<boolean> {
  const late = Promise.withResolvers<boolean>();
  const cancel = clock.alarm(ms, () => late.resolve(false));
  const settles = () => true;
  const settled = await Promise.race([promise.then(settles, settles), late.promise]);
  cancel();
  return settled;
}

/** Writes times in ms since 1970 as ISO 8601. Remembers the last one: many calls end in the same millisecond. */
export function isoTimes(): (atMs: number) => string {
  let lastMs = Number.NaN;
  let last = '';
  return (atMs) => {
    if (atMs !== lastMs) last = new Date(atMs).toISOString();
    lastMs = atMs;
    return last;
  };
}
