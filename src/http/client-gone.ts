// The disconnect of the client of a request.

import type { ServerResponse } from 'node:http';

/** Thrown when the client disconnects before its request was read or answered. It is neither answered nor logged as an error. */
export class ClientGone extends Error {
  constructor() {
    super('The client disconnected.');
    this.name = 'ClientGone';
  }
}

/** Status in the logs for a client that disconnects before its answer begins, as in nginx. The request may have been executed. */
export const CLIENT_CLOSED_REQUEST = 499;

/** A request whose connection may close. The state is that of RequestState. */
interface ClosingContext {
  readonly res: ServerResponse;
  readonly state: { readonly isObserved?: boolean; whenClosed?: () => void };
}

/** Calls back when the client disconnects before the answer is complete; at once if it already has. */
export function onGone(context: ClosingContext, listener: () => void): void {
  const { res: response } = context;
  if (response.destroyed) {
    if (!response.writableFinished) listener();
    return;
  }
  atClose(context, () => {
    if (!response.writableFinished) listener();
  });
}

/** Calls back once, when the connection or the answer has ended; `once` would make two more functions for each request, and a third listener a list of 19 places. */
export function atClose({ res: response, state }: ClosingContext, listener: () => void): void {
  if (state.isObserved === true && state.whenClosed === undefined) state.whenClosed = listener;
  else response.on('close', listener);
}
