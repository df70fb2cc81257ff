// The handshake with an HTTP backend of unknown era. `server/discover` comes first, but legacy servers may leave it unanswered:
// after a timeout `initialize` is sent as well, and a server that answers it gets `server/discover` once more, so that a modern
// server that was only slow still counts as modern. http-handshake.ts carries the messages.

import { settlesWithin } from '../../domain/clock.ts';
import { GatewayError } from '../../domain/errors.ts';
import type { ExchangeRequest } from '../../domain/exchange.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { Era, Peer } from '../../domain/mcp.ts';
import {
  type ClientInfo,
  type HandshakeAnswer,
  type HandshakeChannel,
  isModernAnswer,
  shakeHands,
} from '../handshake.ts';
import type { OpeningMemory } from '../transport.ts';
import { wasCutOff } from './http-failures.ts';
import type { HttpHandshake } from './http-handshake.ts';

/** Longest wait for `server/discover` before `initialize` is sent, too; at most a quarter of the handshake's time. */
export const DISCOVER_TIMEOUT_MS = 3_000;

/** Shortest timeout of the second `server/discover`; it is longer if `initialize` took longer. */
const SECOND_DISCOVER_MS = 250;

export interface FirstHandshakeOptions {
  readonly client: ClientInfo;
  readonly discoverTimeoutMs: number;
  readonly memory: OpeningMemory;
  /** Aborted when the handshake is cancelled: a failure then says nothing about the server. */
  readonly signal: AbortSignal;
}

/** Shakes hands with a backend of which only `memory` is known, and adds the results to it. */
export async function shakeFirstHands(
  channel: HttpHandshake,
  { client, discoverTimeoutMs, memory, signal }: FirstHandshakeOptions,
): Promise<Peer> {
  const probe = isDiscoveredFirst(memory, performance.now())
    ? new HttpProbe(channel, discoverTimeoutMs)
    : undefined;
  try {
    const first = probe === undefined ? 'legacy' : 'probe';
    const peer = await shakeHands(probe ?? channel, { client, first });
    noteOpened(memory, peer.era, probe?.outcome, performance.now());
    return peer;
  } catch (thrown) {
    const hasServer = !signal.aborted && !(thrown instanceof GatewayError && thrown.facts.unreachable);
    noteFailed(memory, probe?.outcome, hasServer);
    throw thrown;
  }
}

type HandshakeResult = { readonly answer: HandshakeAnswer } | { readonly thrown: unknown };

class HttpProbe implements HandshakeChannel {
  readonly #channel: HttpHandshake;
  readonly #timeoutMs: number;
  readonly #withdrawn = new AbortController();
  #question: ExchangeRequest = { method: 'server/discover' };
  #outcome: DiscoverOutcome | undefined;
  #latest: HandshakeAnswer | undefined;
  /** The answer to `server/discover` that counts after `initialize` was sent; the request is not repeated then. */
  #answer: HandshakeAnswer | undefined;
  /** Settles with the first `server/discover`: with the answer of a modern server, else undefined. */
  #late: Promise<HandshakeAnswer | undefined> = Promise.resolve(undefined);

  constructor(channel: HttpHandshake, discoverTimeoutMs: number) {
    this.#channel = channel;
    this.#timeoutMs = discoverTimeoutMs;
  }

  get outcome(): DiscoverOutcome | undefined {
    return this.#outcome;
  }

  request(request: ExchangeRequest, era: Era): Promise<HandshakeAnswer> {
    if (era === 'modern') return this.#discover(request);
    return request.method === 'initialize' ? this.#initialize(request) : this.#channel.request(request, era);
  }

  notify(method: string, params: JsonObject): Promise<void> {
    return this.#channel.notify(method, params);
  }

  async #discover(question: ExchangeRequest): Promise<HandshakeAnswer> {
    if (this.#answer !== undefined) return this.#answer;
    if (this.#outcome !== undefined) return this.#discoverAgain(question);
    this.#question = question;
    const asked = withoutRejection(this.#channel.request(question, 'modern', this.#withdrawn.signal));
    const outcome = (await settlesWithin(asked, this.#timeoutMs)) ? await asked : undefined;
    if (outcome === undefined) {
      this.#outcome = 'unanswered';
      this.#late = asked.then((late) => this.#take(late));
      return UNANSWERED;
    }
    if ('answer' in outcome) {
      this.#outcome = 'answered';
      this.#latest = outcome.answer;
      return outcome.answer;
    }
    if (!wasCutOff(outcome.thrown)) throw outcome.thrown;
    this.#outcome = 'cut';
    return UNANSWERED;
  }

  async #discoverAgain(question: ExchangeRequest): Promise<HandshakeAnswer> {
    const outcome = await this.#requestDuringProbe(question, 'modern');
    this.#withdrawn.abort();
    if (outcome !== undefined && 'thrown' in outcome) throw outcome.thrown;
    this.#latest = outcome?.answer ?? this.#answer ?? UNANSWERED;
    return this.#latest;
  }

  async #initialize(request: ExchangeRequest): Promise<HandshakeAnswer> {
    if (this.#outcome === 'answered') {
      this.#answer = this.#latest;
      return this.#channel.request(request, 'legacy');
    }
    const startedAtMs = performance.now();
    const outcome = await this.#requestDuringProbe(request, 'legacy');
    if (outcome === undefined) return IS_MODERN;
    if ('thrown' in outcome) throw outcome.thrown;
    if (outcome.answer.kind !== 'result') return outcome.answer;
    const tookMs = performance.now() - startedAtMs;
    return (await this.#answersSecondDiscover(tookMs)) ? IS_MODERN : outcome.answer;
  }

  /** Undefined when a modern server answers the first `server/discover` meanwhile: the request is aborted then. */
  async #requestDuringProbe(request: ExchangeRequest, era: Era): Promise<HandshakeResult | undefined> {
    const unneeded = new AbortController();
    const asked = withoutRejection(this.#channel.request(request, era, unneeded.signal));
    const late = this.#late.then((modern) => (modern === undefined ? asked : undefined));
    const outcome = await Promise.race([asked, late]);
    if (outcome !== undefined && 'answer' in outcome) return outcome;
    unneeded.abort();
    return (await this.#late) === undefined ? outcome : undefined;
  }

  /** Asks again: the server may have been starting, or a proxy may have dropped the first request. */
  async #answersSecondDiscover(tookMs: number): Promise<boolean> {
    this.#withdrawn.abort();
    const waitMs = Math.min(this.#timeoutMs, Math.max(SECOND_DISCOVER_MS, tookMs));
    const timeout = AbortSignal.timeout(Math.ceil(waitMs));
    const outcome = await withoutRejection(this.#channel.request(this.#question, 'modern', timeout));
    const isUnanswered = timeout.aborted || ('thrown' in outcome && wasCutOff(outcome.thrown));
    if (!isUnanswered) this.#outcome = 'answered';
    return this.#take(outcome) !== undefined;
  }

  /** Keeps the answer of a modern server. */
  #take(outcome: HandshakeResult): HandshakeAnswer | undefined {
    if (!('answer' in outcome) || !isModernAnswer(outcome.answer)) return undefined;
    this.#outcome = 'answered';
    this.#answer = outcome.answer;
    return outcome.answer;
  }
}

const UNANSWERED: HandshakeAnswer = { kind: 'none', detail: 'server/discover was not answered' };
/** Stands for the answer to `initialize` when the server turned out to be modern. */
const IS_MODERN: HandshakeAnswer = { kind: 'none', detail: 'it speaks the modern era' };

function withoutRejection(asked: Promise<HandshakeAnswer>): Promise<HandshakeResult> {
  return asked.then(
    (answer) => ({ answer }),
    (thrown: unknown) => ({ thrown }),
  );
}

// Remembered for the next opening of an HTTP backend: whether `server/discover` comes first, which costs time if it is not answered.

/** The outcome of `server/discover`. `answered`: with a result or an error; `cut`: the backend ended the connection. */
export type DiscoverOutcome = 'answered' | 'unanswered' | 'cut';

/** How long a backend that left `server/discover` unanswered gets `initialize` first; later it may be another server. */
const UNANSWERED_FOR_MS = 60 * 60_000;

/** True when the next opening begins with `server/discover`. `nowMs` is of a monotonic clock. */
export function isDiscoveredFirst({ unansweredAtMs }: OpeningMemory, nowMs: number): boolean {
  return unansweredAtMs === undefined || nowMs - unansweredAtMs >= UNANSWERED_FOR_MS;
}

/** Records a handshake that succeeded. `outcome`: undefined when `initialize` came first. */
export function noteOpened(
  memory: OpeningMemory,
  era: Era,
  outcome: DiscoverOutcome | undefined,
  nowMs: number,
): void {
  memory.wasCutOff = undefined;
  if (era !== 'legacy' || outcome === 'answered') memory.unansweredAtMs = undefined;
  else if (outcome !== undefined) memory.unansweredAtMs = nowMs;
}

/** Records an opening that failed. `hasServer`: a server answered; the next one may be another server. */
export function noteFailed(
  memory: OpeningMemory,
  outcome: DiscoverOutcome | undefined,
  hasServer: boolean,
): void {
  if (outcome === 'cut') memory.wasCutOff = true;
  if (hasServer) memory.unansweredAtMs = undefined;
}

/** The program behind the endpoint has exited. If `server/discover` may have ended it, the next one gets `initialize` first. */
export function noteExit(memory: OpeningMemory, nowMs: number): void {
  memory.unansweredAtMs = memory.wasCutOff === true ? nowMs : undefined;
  memory.wasCutOff = undefined;
}
