// Work of one turn of the event loop that is ended if it takes too long: the author of a template chooses a pattern, and a caller
// the text; a pattern prone to backtracking takes hours for some texts. Source: ADR 116.

import { runInNewContext } from 'node:vm';

/**
 * The result of the work; undefined if it took more than `mostMs`, or went deeper than the stack. Work that is ended has no
 * `finally`: it must not change what others use.
 */
export function withinTurn<T>(mostMs: number, work: () => T): { readonly value: T } | undefined {
  try {
    return { value: runInNewContext('work()', { work }, { timeout: mostMs }) };
  } catch (thrown) {
    const { code, name } = Object(thrown); // an error of the other context is no `Error` here
    if (code === 'ERR_SCRIPT_EXECUTION_TIMEOUT' || name === 'RangeError') return undefined;
    throw thrown;
  }
}
