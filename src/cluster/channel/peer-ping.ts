// One ping of another node: a greeting, whose answer also has the clock of the node, and perhaps a question with it.

import type { ConnectionPool } from '../../net/http1/connection-pool.ts';
import type { Http1Connection, RequestSink } from '../../net/http1/http1-connection.ts';
import { PEER_HEADERS } from './peer-protocol.ts';
import type { TokenIssuer } from './trust/peer-tokens.ts';

/**
 * The time after which a ping without an answer is given up, in ms. After a cut TCP repeats lost bytes ever more rarely, so
 * its connection may be dead for as long again as the cut; a new one is not. Source: ADR 196.
 */
export const LOST_PING_MS = 3_000;
/** The largest answer to a greeting. */
const MAX_CHARACTERS = 1_024;

/** Sends a ping, and reports its answer once. Only a node with the key of the deployment can answer one. */
export class Ping implements RequestSink {
  readonly sentAtMs: number;
  readonly #greeting: ReturnType<TokenIssuer['greeting']>;
  readonly #over: (answer: string | undefined | Error) => void;
  #connection: Http1Connection | undefined;
  #isAborted = false;
  #status = 0;
  #text = '';

  /** `over` gets the text of a valid answer, or why there is none; undefined: another program answered. */
  constructor(
    issuer: Pick<TokenIssuer, 'greeting'>,
    sentAtMs: number,
    over: (answer: string | undefined | Error) => void,
  ) {
    this.#greeting = issuer.greeting();
    this.sentAtMs = sentAtMs;
    this.#over = over;
  }

  /** Called once. `target`: path and query, as in PEER_PATHS. */
  send(pool: Pick<ConnectionPool, 'dispatch'>, host: string, target: string): void {
    const token = `${PEER_HEADERS.token}: ${this.#greeting.text}`;
    pool.dispatch({ text: `GET ${target} HTTP/1.1\r\nhost: ${host}\r\n${token}\r\n\r\n`, answer: this });
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
    if (this.#status !== 200) this.#over(new Error('it refuses this node: another secret, or another life'));
    else this.#over(this.#greeting.answered(this.#text) ? this.#text : undefined);
  }

  onResponseError(error: Error): void {
    if (!this.#isAborted) this.#over(error);
  }
}
