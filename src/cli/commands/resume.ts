// `stagedoor gateway resume`: takes a drained instance back into balancing.

import { instanceCommand } from '../instance-command.ts';

/** Row of the command table. */
export const resume = instanceCommand({
  word: 'resume',
  summary: 'Let a drained instance take calls again',
  done: ({ state }) => `is in use again: ${String(state)}`,
});
