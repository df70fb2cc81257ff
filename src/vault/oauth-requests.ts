// Asks an authorization server by the library, through the guarded requests, and makes one kind of failure of all errors.

import type { OutsidePlace } from '../net/outside/outside-places.ts';
import { type BackendFetch, BackendFetchFailure } from './backend-fetch.ts';

/** The server has answered with an error of OAuth. `code`: such as `invalid_grant`. */
export class OAuthRefusal extends BackendFetchFailure {
  override readonly name = 'OAuthRefusal';
  readonly code: string;

  constructor(code: string) {
    super(`its authorization server refuses (${code})`);
    this.code = code;
  }
}

type AskOptions = Awaited<ReturnType<typeof optionsFor>>;

/** Lends the library the guarded requests. The library is loaded with the first request. */
export class OAuthRequests {
  readonly #fetch: BackendFetch;

  constructor(fetch: BackendFetch) {
    this.#fetch = fetch;
  }

  /** Waits for a place for one request to this address; undefined if there was none within the time, in ms. */
  place(address: string, maxWaitMs: number): Promise<OutsidePlace | undefined> {
    return this.#fetch.place(address, maxWaitMs);
  }

  /**
   * Runs a function of the library. `endpoint`: that of the backend; `place`: that of its only request, if it has waited for
   * one. Throws OAuthRefusal, and BackendFetchFailure.
   */
  async ask<T>(endpoint: string, run: (options: AskOptions) => Promise<T>, place?: OutsidePlace): Promise<T> {
    const options = await optionsFor((url, { method, headers, body }) =>
      this.#fetch.send(endpoint, url, {
        ...{ method, headers, place },
        ...(body == null ? {} : { body: String(body) }),
      }),
    );
    try {
      return await run(options);
    } catch (thrown) {
      throw await failureOf(thrown);
    }
  }
}

/** The options of the library. BackendFetch decides which addresses may be asked without TLS. */
async function optionsFor(send: (url: string, sent: Sent) => Promise<Response>) {
  const { customFetch, allowInsecureRequests } = await import('oauth4webapi');
  return { [customFetch]: send, [allowInsecureRequests]: true };
}

async function failureOf(thrown: unknown): Promise<BackendFetchFailure> {
  const { ResponseBodyError, AuthorizationResponseError } = await import('oauth4webapi');
  if (thrown instanceof BackendFetchFailure) return thrown;
  const isRefusal = thrown instanceof ResponseBodyError || thrown instanceof AuthorizationResponseError;
  // `temporarily_unavailable` is not a refusal of this request.
  if (isRefusal && REFUSAL.test(thrown.error) && !TEMPORARY.has(thrown.error))
    return new OAuthRefusal(thrown.error);
  return new BackendFetchFailure(
    isRefusal
      ? 'its authorization server cannot answer at this moment'
      : 'its authorization server gave an answer that cannot be used',
  );
}

const REFUSAL = /^[a-z_]{1,64}$/;
const TEMPORARY: ReadonlySet<string> = new Set(['temporarily_unavailable', 'server_error', 'slow_down']);

interface Sent {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: unknown;
}
