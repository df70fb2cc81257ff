// The fact that nobody is left to answer. It is thrown to unwind a request, never answered and never logged as an error.

import type { ServerResponse } from 'node:http';

/** Thrown when the client went away before its request was read or answered. */
export class ClientGone extends Error {
  constructor() {
    super('The client went away.');
    this.name = 'ClientGone';
  }
}

/** For the logs: the status nginx gave to a client that left before its answer began. What it asked for may have happened. */
export const CLIENT_CLOSED_REQUEST = 499;

/** Calls back when the client goes away before the answer is complete; at once if it has. */
export function whenGone(response: ServerResponse, listener: () => void): void {
  if (response.closed) {
    if (!response.writableFinished) listener();
    return;
  }
  response.once('close', () => {
    if (!response.writableFinished) listener();
  });
}
