// Simulated timers and clock that only the spec advances.

import { mock } from 'node:test';
import type { Suite } from './suite.ts';

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
