// Requests to the servers that a backend names: its authorization server, and its own documents.

import type { LookupAddress } from 'node:dns';
import type { IncomingMessage } from 'node:http';
import { isLoopback } from '../domain/local-address.ts';
import { NO_BYTES } from '../domain/memory/bounded-bytes.ts';
import type { Clock } from '../domain/time/clock.ts';
import { lookupOutside } from '../net/lookup.ts';
import type { AddressCheck } from '../net/network-guard.ts';
import { OutsideClient, whyUnanswered } from '../net/outside/outside-client.ts';
import type { OutsidePlace } from '../net/outside/outside-places.ts';
import { OutsideFailure, type OutsideRequest, responseOf } from '../net/outside/outside-request.ts';
import { SystemLookups } from '../net/system-lookups.ts';

/** The most bytes of a body: metadata of large servers has some 10 kB. */
const MAX_ANSWER_BYTES = 64 * 1024;
/** The most bytes of a body that is read partly. */
const MAX_PARTLY_BYTES = 8 * 1024 * 1024;
const TIMEOUT_MS = 10_000;
/** The most characters that are shown of the issuer that a backend names. */
const MAX_SHOWN_CHARACTERS = 200;

/** The failure of a request. Its message is a clause in own words: it contains nothing of the answer. */
export class BackendFetchFailure extends Error {
  override readonly name: string = 'BackendFetchFailure';
}

/** The backend names another authorization server than before: it is not used until an admin confirms it. */
export class ServerChanged extends BackendFetchFailure {
  override readonly name = 'ServerChanged';

  constructor(issuer: string) {
    super(
      `authorization server changed to ${issuer.slice(0, MAX_SHOWN_CHARACTERS)}; an admin has to confirm the new one`,
    );
  }
}

interface BackendFetchOptions {
  readonly clock: Clock;
  /** Whether no endpoint may have an address. */
  readonly isDenied: AddressCheck;
  /** The system look-ups of the process. Default: new ones. */
  readonly systemLookups?: SystemLookups | undefined;
  /** The networks that are reached although they are not public, in CIDR form. */
  readonly openNetworks: readonly string[];
}

export interface BackendFetchRequest {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** True when only the status and the headers are needed. */
  readonly isBodyIgnored?: boolean;
  /** The rules for reading a body that may never end: the part of it that came counts. */
  readonly partly?: PartlyRead;
  /** The place for which was waited. Default: one of those that are free. */
  readonly place?: OutsidePlace | undefined;
}

/**
 * The rules for reading a part of a body: to its end; or until nothing came for `restMs` and `isEnough` holds for it;
 * or for the time that is allowed.
 */
interface PartlyRead {
  readonly isEnough: (body: Buffer) => boolean;
  readonly restMs: number;
  /** Called when the body had not ended. */
  readonly onLeftOpen: () => void;
}

/**
 * Sends requests to the servers that a backend names. At the origin of the backend the rules of endpoints hold.
 * Elsewhere only https at public addresses is allowed; on this machine also http, for a backend that is on it itself.
 * No redirect is followed, and size, time and number are bounded.
 */
export class BackendFetch {
  readonly #options: BackendFetchOptions;
  readonly #client: OutsideClient;
  readonly #systemLookups: SystemLookups;

  constructor(options: BackendFetchOptions) {
    this.#options = options;
    this.#client = new OutsideClient(options.clock, options.openNetworks);
    this.#systemLookups = options.systemLookups ?? new SystemLookups(options);
  }

  /** Waits for a place for a request to this address; undefined if there was none within the time, in ms. */
  place(address: string, maxWaitMs: number): Promise<OutsidePlace | undefined> {
    return this.#client.waitForPlace(readUrl(address), maxWaitMs);
  }

  /** Sends a request. `endpoint`: that of the backend that caused it. Throws BackendFetchFailure. */
  async send(endpoint: string, address: string, request: BackendFetchRequest = {}): Promise<Response> {
    const url = readUrl(address);
    const isAllowed = this.#ruleFor(new URL(endpoint), url);
    const { place = this.#client.place(url), ...asked } = request;
    if (place === undefined)
      throw new BackendFetchFailure('too many authorization servers are being asked at this moment');
    try {
      return await this.#send(url, place, isAllowed, asked);
    } catch (thrown) {
      if (thrown instanceof BackendFetchFailure) throw thrown;
      throw new BackendFetchFailure(`the server ${url.host} ${whyUnanswered(thrown)}`);
    }
  }

  /** True when the address may be asked, or shown to a browser, on behalf of the backend, as far as its text says. */
  mayName(endpoint: string, address: string): boolean {
    try {
      this.#ruleFor(new URL(endpoint), readUrl(address));
      return true;
    } catch {
      return false;
    }
  }

  /** The rule for the addresses that may be reached. Throws BackendFetchFailure for a URL that no address makes right. */
  #ruleFor(endpoint: URL, url: URL): AddressCheck {
    const { isDenied } = this.#options;
    if (url.origin === endpoint.origin) return (address) => !isDenied(address);
    if (isLoopback(endpoint.hostname) && isLoopback(url.hostname)) return isLoopback;
    if (url.protocol !== 'https:') throw new BackendFetchFailure(`the address of ${url.host} is not https`);
    return (address) => !isDenied(address) && this.#client.isPublic(address);
  }

  async #send(
    url: URL,
    place: OutsidePlace,
    isAllowed: AddressCheck,
    { headers, isBodyIgnored = false, partly, ...others }: Omit<BackendFetchRequest, 'place'>,
  ): Promise<Response> {
    const rules = {
      isAllowed,
      find: (hostname: string, family: number) => this.#lookup(hostname, family),
      refused: () => new BackendFetchFailure(`the server ${url.host} has no address that may be asked`),
    };
    const read: OutsideRequest['read'] = isBodyIgnored
      ? async () => NO_BYTES
      : partly &&
        ((response, untimed) => {
          untimed();
          return readPartly(response, partly, this.#options.clock);
        });
    const answer = await this.#client.ask(url, place, rules, {
      ...others,
      headers: { accept: 'application/json', 'user-agent': 'stagedoor', ...headers },
      timeoutMs: TIMEOUT_MS,
      mostBytes: MAX_ANSWER_BYTES,
      read,
    });
    return responseOf(answer);
  }

  /** Looks a name up. Some names are known to the system only, such as those below its search domains. */
  async #lookup(hostname: string, family: number): Promise<LookupAddress[]> {
    const { now } = this.#options.clock;
    const beganAtMs = now();
    try {
      return await lookupOutside(hostname, { family });
    } catch {
      return this.#systemLookups.findLast(hostname, family, beganAtMs + TIMEOUT_MS - now());
    }
  }
}

/**
 * Reads a body in part. It looks at the received bytes in pauses only, and keeps them in one piece: many small pieces
 * take no more work, and no more memory, than a large one.
 */
function readPartly(
  response: IncomingMessage,
  { isEnough, restMs, onLeftOpen }: PartlyRead,
  { alarm, now }: Clock,
): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  let held = Buffer.alloc(0);
  let length = 0;
  let lastAtMs = now();
  const finish = (isOpen: boolean): void => {
    for (const cancel of [stop, pause]) cancel();
    response.removeAllListeners('data').removeAllListeners('end');
    if (isOpen) onLeftOpen();
    resolve(held.subarray(0, length));
  };
  const look = (): void => {
    const restedMs = now() - lastAtMs;
    if (restedMs >= restMs && isEnough(held.subarray(0, length))) finish(true);
    else pause = alarm(restedMs >= restMs ? restMs : restMs - restedMs, look);
  };
  const stop = alarm(TIMEOUT_MS, () => finish(true));
  let pause = alarm(restMs, look);
  response.on('data', (chunk: Buffer) => {
    lastAtMs = now();
    if (length + chunk.length > MAX_PARTLY_BYTES) {
      for (const cancel of [stop, pause]) cancel();
      response.removeAllListeners('data');
      reject(new OutsideFailure(`answered with more than ${MAX_PARTLY_BYTES} bytes`));
      return;
    }
    if (length + chunk.length > held.length) {
      const larger = Buffer.alloc(Math.max(2 * held.length, length + chunk.length));
      held.copy(larger, 0, 0, length);
      held = larger;
    }
    chunk.copy(held, length);
    length += chunk.length;
  });
  response.on('error', () => finish(false));
  response.on('end', () => finish(false));
  return promise;
}

function readUrl(address: string): URL {
  const url = URL.parse(address);
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '')
    throw new BackendFetchFailure('an address is not an http or https URL');
  return url;
}
