// `stagedoor gateway resume`: takes a drained instance back into balancing.

import { instanceOrder } from '../instance-order.ts';

/** Row of the command table. */
export const resume = instanceOrder({
  word: 'resume',
  summary: 'Let a drained instance take calls again',
  done: ({ state }) => `is in use again: ${String(state)}`,
});
