// The disconnect of the client of a request.

import type { HttpContext } from './context.ts';

/** Thrown when the client disconnects before its request was read or answered. It is neither answered nor logged as an error. */
export class ClientGone extends Error {
  constructor() {
    super('The client disconnected.');
    this.name = 'ClientGone';
  }
}

/** Status in the logs for a client that disconnects before its answer begins, as in nginx. The request may have been executed. */
export const CLIENT_CLOSED_REQUEST = 499;

/** Calls back once, when the connection or the answer has ended; `once` would make two more functions for each request, and a third listener a list of 19 places. */
export function atClose(
  { res: response, state }: Pick<HttpContext, 'res' | 'state'>,
  listener: () => void,
): void {
  if (state.isObserved === true && state.whenClosed === undefined) state.whenClosed = listener;
  else response.on('close', listener);
}

/** Removes a listener of `atClose`. */
export function offClose(
  { res: response, state }: Pick<HttpContext, 'res' | 'state'>,
  listener: () => void,
): void {
  if (state.whenClosed === listener) state.whenClosed = undefined;
  else response.off('close', listener);
}
