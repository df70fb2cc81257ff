// `stagedoor gateway restart`: starts the program of an instance anew, or connects to its endpoint again.

import { instanceOrder, leftThere } from '../instance-order.ts';

/** Row of the command table. */
export const restart = instanceOrder({
  word: 'restart',
  summary:
    'Start the program of an instance anew, or connect to its endpoint again, when its calls have ended',
  done: (record) => {
    const left = leftThere(record);
    return left === '' ? 'restarts' : `restarts when its calls have ended, in 30 s at the latest; ${left}`;
  },
});
