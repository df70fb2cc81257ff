// The answer to one ping: a greeting, which also has the clock of the node.

import type { Http1Connection, RequestSink } from '../../net/http1/http1-connection.ts';

/**
 * The time after which a ping without an answer is given up, in ms. After a cut TCP repeats lost bytes ever more rarely, so
 * its connection may be dead for as long again as the cut; a new one is not. Source: ADR 196.
 */
export const LOST_PING_MS = 3_000;
/** The largest answer to a greeting. */
const MAX_CHARACTERS = 1_024;

/** Receives the answer to a ping, and reports it once. */
export class Ping implements RequestSink {
  readonly sentAtMs: number;
  /** Gets the answer, or why there is none. */
  readonly #over: (answer: string | Error) => void;
  #connection: Http1Connection | undefined;
  #isAborted = false;
  #status = 0;
  #text = '';

  constructor(sentAtMs: number, over: (answer: string | Error) => void) {
    this.sentAtMs = sentAtMs;
    this.#over = over;
  }

  /** Closes its connection; it reports nothing more. */
  abort(): void {
    this.#isAborted = true;
    this.#connection?.abort(this);
  }

  onRequestStart(connection: Http1Connection): boolean {
    this.#connection = connection;
    return !this.#isAborted;
  }

  onResponseStart(status: number): void {
    this.#status = status;
  }

  onResponseData(part: Buffer): void {
    if (this.#text.length < MAX_CHARACTERS) this.#text += part.toString('latin1');
  }

  onResponseEnd(): void {
    if (this.#isAborted) return;
    const isRefused = this.#status !== 200;
    this.#over(isRefused ? new Error('it refuses this node: another secret, or another life') : this.#text);
  }

  onResponseError(error: Error): void {
    if (!this.#isAborted) this.#over(error);
  }
}
