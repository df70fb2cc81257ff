// Time that stands still until the spec moves it.

import { mock } from 'node:test';
import type { Suite } from './suite.ts';

/**
 * In each test of the suite the global timers are simulated. `open` makes a harness. A hook that is declared before this call runs
 * when time goes on again, one that is declared after it runs before that.
 */
export function simulateTime(test: Pick<Suite, 'before' | 'after'>, open: () => void = () => {}): void {
  test.before.each(() => {
    mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'] });
    open();
  });
  test.after.each(() => mock.timers.reset());
}
