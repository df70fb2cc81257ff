// Simulated timers and clock that only the spec advances.

import { mock } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { type Clock, systemClock } from '../../../src/domain/time/clock.ts';
import type { Suite } from '../suite.ts';

/**
 * Simulates the global timers in each test of the suite. `open` makes a harness. After a test, hooks that are declared before
 * this call run with real time, those declared after it with simulated time.
 */
export function simulateTime(test: Pick<Suite, 'before' | 'after'>, open: () => void = () => {}): void {
  test.before.each(() => {
    mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'] });
    open();
  });
  test.after.each(() => mock.timers.reset());
}

/** The clock of the simulated timers: its monotonic time advances with them. */
export const simulatedClock: Clock = { ...systemClock, now: () => Date.now() };

/** A clock whose background alarms of this length wait for `ring`; all else is the real time. */
export function alarmsOf(lengthMs: number): {
  readonly clock: Clock;
  readonly waiting: ReadonlySet<() => void>;
  ring(): void;
} {
  const waiting = new Set<() => void>();
  const { background } = systemClock;
  const alarm: typeof background.alarm = (waitMs, callback) => {
    if (waitMs !== lengthMs) return background.alarm(waitMs, callback);
    waiting.add(callback);
    return () => void waiting.delete(callback);
  };
  return {
    clock: { ...systemClock, background: { ...background, alarm } },
    waiting,
    ring: () => {
      const rung = [...waiting];
      waiting.clear();
      for (const callback of rung) callback();
    },
  };
}

/** A clock whose background intervals of this length end only with `ring`; all else is the real time. */
export function intervalsOf(lengthMs: number): { readonly clock: Clock; ring(times?: number): void } {
  const running = new Set<() => void>();
  const { background } = systemClock;
  const every: typeof background.every = (everyMs, callback) => {
    if (everyMs !== lengthMs) return background.every(everyMs, callback);
    running.add(callback);
    return () => void running.delete(callback);
  };
  return {
    clock: { ...systemClock, background: { ...background, every } },
    ring: (times = 1) => {
      for (let n = 0; n < times; n += 1) for (const callback of [...running]) callback();
    },
  };
}

/** A clock of the real time, which `skip` puts forward; alarms do not ring earlier for that. */
export function skippingClock(): { readonly clock: Clock; skip(ms: number): void } {
  let skippedMs = 0;
  return {
    clock: { ...systemClock, now: () => systemClock.now() + skippedMs },
    skip: (ms) => {
      skippedMs += ms;
    },
  };
}

/** Waits four turns of the event loop, enough for all pending promises to settle. */
export async function settled(): Promise<void> {
  for (let turns = 0; turns < 4; turns += 1) await turn();
}

/** Advances the simulated time by `ms`; waits for `settled` before and after. */
export async function pass(ms: number): Promise<void> {
  await settled();
  mock.timers.tick(ms);
  await settled();
}
