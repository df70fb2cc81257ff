// Sends HTTP requests to the MCP endpoint, and repeats a request while the gateway is unreachable and certainly did not get it.

import { setTimeout as delay } from 'node:timers/promises';
import { codeOf, messageOf } from '../../domain/errors/errors.ts';
import { definedFields } from '../../domain/json/json.ts';
import { LIMITS } from '../../domain/limits.ts';
import { EVENT_STREAM_TYPE } from '../../domain/mcp/media-types.ts';
import { bytesWithin } from '../../domain/memory/bounded-bytes.ts';
import { SseReader } from '../../net/http1/sse-reader.ts';
import type { RequestCredentials } from '../accounts/request-credentials.ts';
import { PROVEN_MS, ProofUnavailable } from '../accounts/require-proof.ts';
import { CommandFailure } from '../failures.ts';

/** The longest wait for an unreachable gateway, and for one that answers 503 without having acted, in ms. */
const [AWAY_MS, BUSY_MS] = [60_000, 10_000];
/** The most bytes of an answer: a message, and what the gateway adds to it. */
const MAX_ANSWER = 2 * LIMITS.backendMessageBytes;
/** The waits between two attempts, in ms: the first, and the longest. */
const [FIRST_WAIT_MS, MAX_WAIT_MS] = [100, 2_000];

/** The request may have reached the gateway: whether it took effect is unknown. */
export class LostRequest extends Error {}

export interface LinkRequest {
  readonly method: 'POST' | 'GET' | 'DELETE';
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal: AbortSignal;
  /** True for a message that may be sent again when its delivery is unknown. */
  readonly isRepeatable: boolean;
}

/** The endpoint of one template, with the credentials for it. */
export class GatewayLink {
  readonly #endpoint: string;
  readonly #credentials: () => RequestCredentials;
  #current: RequestCredentials;
  #provenAtMs = Number.NEGATIVE_INFINITY;
  readonly #log: (text: string) => void;
  readonly #awayMs: number;
  #isAway = false;
  /** The renewal of the credentials that is under way. */
  #renewal: Promise<void> | undefined;

  /** `credentials` is called again after a 401: the user may have logged in again. */
  constructor(
    endpoint: string,
    credentials: () => RequestCredentials,
    log: (text: string) => void,
    awayMs = AWAY_MS,
  ) {
    this.#endpoint = endpoint;
    this.#credentials = credentials;
    this.#current = credentials();
    this.#log = log;
    this.#awayMs = awayMs;
  }

  /**
   * The answer, whatever its status. Throws LostRequest, the reason of the signal, or an error after AWAY_MS
   * without a gateway.
   */
  async send(request: LinkRequest): Promise<Response> {
    const beganAtMs = performance.now();
    let mayRenew = true;
    for (let waitMs = FIRST_WAIT_MS; ; waitMs = Math.min(waitMs * 2, MAX_WAIT_MS)) {
      const { reason, sent } = await this.#try(request);
      const pastMs = performance.now() + waitMs - beganAtMs;
      if (reason instanceof Response) {
        // Retry-After and 401 mean that nothing was done. A gateway that has just started has no healthy instances yet.
        const isRefused: boolean = reason.status === 401 && (await this.#hasOtherCredentials(sent, mayRenew));
        const isBusy = reason.status === 503 && reason.headers.has('retry-after') && pastMs < BUSY_MS;
        if (!isRefused && !isBusy) return reason;
        await reason.body?.cancel();
        mayRenew &&= !isRefused;
        if (isRefused) continue;
      } else {
        if (pastMs > this.#awayMs)
          throw new Error(`the gateway at ${this.#endpoint} cannot be reached: ${reason}`);
        if (!this.#isAway) this.#log(`the gateway is unreachable (${reason}); waiting for it`);
        this.#isAway = true;
      }
      await delay(waitMs, undefined, { signal: request.signal });
    }
  }

  refused(reason: string): string {
    return this.#credentials().refused(reason);
  }

  /**
   * True when there are other credentials than those that a request was refused with: reads them again, and renews them, if they
   * may be. Requests that are refused together share one renewal.
   */
  async #hasOtherCredentials(refused: string, mayRenew: boolean): Promise<boolean> {
    const isOther = () => JSON.stringify(this.#current.headers) !== refused;
    if (this.#renewal === undefined && !isOther()) {
      this.#current = this.#credentials();
      this.#provenAtMs = Number.NEGATIVE_INFINITY;
      // When that fails, the client gets the refusal of the gateway.
      if (mayRenew && !isOther())
        this.#renewal = this.#current
          .renew?.(undefined, true)
          .catch(() => undefined)
          .finally(() => {
            this.#renewal = undefined;
          });
    }
    await this.#renewal;
    return isOther();
  }

  /**
   * Renews the credentials if need be, and awaits a proof of the gateway, unless one is fresh. A GET always needs
   * one: it opens a stream, often because the one before ended with the gateway.
   */
  async #prove(method: LinkRequest['method']): Promise<void> {
    await this.#current.renew?.();
    const isProven = method !== 'GET' && performance.now() - this.#provenAtMs < PROVEN_MS;
    if (this.#current.prove === undefined || isProven) return;
    this.#provenAtMs = Number.NEGATIVE_INFINITY;
    await this.#current.prove();
    this.#provenAtMs = performance.now();
  }

  /** The response, or the reason why the request was certainly not delivered; and the credentials that were sent. */
  async #try({ method, headers, body, signal, isRepeatable }: LinkRequest) {
    try {
      await this.#prove(method);
    } catch (error) {
      if (error instanceof CommandFailure && !(error instanceof ProofUnavailable)) throw error;
      return { reason: codeOf(error) ?? messageOf(error), sent: '' };
    }
    const sent = JSON.stringify(this.#current.headers);
    try {
      const response = await fetch(this.#endpoint, {
        method,
        signal,
        redirect: 'error',
        headers: { ...this.#current.headers, ...headers },
        ...definedFields({ body }),
      });
      if (this.#isAway) this.#log('the gateway is reachable again');
      this.#isAway = false;
      return { reason: response, sent };
    } catch (error) {
      this.#provenAtMs = Number.NEGATIVE_INFINITY;
      signal.throwIfAborted();
      const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
      const code = codeOf(cause) ?? messageOf(cause);
      if (isRepeatable || NOT_DELIVERED.includes(code)) return { reason: code, sent };
      throw new LostRequest(`the connection to the gateway broke (${code})`, { cause: error });
    }
  }
}

const NOT_DELIVERED: readonly string[] = [
  ...['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'EHOSTDOWN'],
  'UND_ERR_CONNECT_TIMEOUT',
];

/**
 * Passes on the messages of an answer one after the other. Resolves with the id of the last event, undefined without one; the
 * wait before the next request that the gateway asked for, in ms; whether the answer broke off before its end; and whether it
 * had a message.
 */
export async function readMessages(response: Response, pass: (data: Buffer) => Promise<void>) {
  const isStream = response.headers.get('content-type')?.startsWith(EVENT_STREAM_TYPE) === true;
  const events: Buffer[] = [];
  let isBroken = false;
  let hasMessages = false;
  const take = (data: Buffer): Promise<void> => {
    hasMessages = true;
    return pass(data);
  };
  const reader = new SseReader(LIMITS.backendMessageBytes, (data, type) => {
    if (type === 'message' && data.length > 0) events.push(data);
  });
  try {
    if (!isStream) {
      const body = response.body === null ? undefined : await bytesWithin(response.body, MAX_ANSWER);
      if (body !== undefined && body.length > 0) await take(body);
    } else
      for await (const chunk of response.body ?? []) {
        if (!reader.push(Buffer.from(chunk))) break;
        for (const event of events.splice(0)) await take(event);
      }
  } catch {
    isBroken = true; // or aborted: the caller requests the missing messages again
  }
  return { lastEventId: reader.lastEventId || undefined, retryMs: reader.retryMs, isBroken, hasMessages };
}
