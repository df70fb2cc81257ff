// `stagedoor gateway drain`: takes an instance out of balancing and leaves it running.

import { instanceCommand, leftThere } from '../instance-command.ts';

/** Row of the command table. */
export const drain = instanceCommand({
  word: 'drain',
  summary: 'Send an instance no new calls until it is resumed, or the gateway starts again; it keeps running',
  done: (record) => {
    const left = leftThere(record);
    return `takes nothing new until it is resumed${left && `; ${left}`}`;
  },
});
