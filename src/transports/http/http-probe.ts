// The handshake with an HTTP backend of unknown era. `server/discover` comes first, but legacy servers may leave it
// unanswered: after a while `initialize` is sent beside it, and a server that turns out to be up gets the probe once more. A
// modern server that was only slow still counts as modern. http-handshake.ts carries the messages.

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

/** How long `server/discover` is waited for before `initialize` is asked, too; a quarter of the handshake's time if that is shorter. */
export const DISCOVER_PATIENCE_MS = 3_000;

/** A server that has answered `initialize` answers `server/discover` in as long as that took, or in so long. */
const AGAIN_MS = 250;

export interface FirstHandshakeOptions {
  readonly client: ClientInfo;
  readonly patienceMs: number;
  readonly memory: OpeningMemory;
  /** Aborted when the probe is no longer needed: a later failure says nothing of the server. */
  readonly signal: AbortSignal;
  /** Monotonic clock in ms. Default performance.now. */
  readonly now?: () => number;
}

/** Shakes hands with a backend of which only `memory` is known, and stores the results there. */
export async function shakeFirstHands(
  channel: HttpHandshake,
  { client, patienceMs, memory, signal, now = () => performance.now() }: FirstHandshakeOptions,
): Promise<Peer> {
  const probe = isDiscoveredFirst(memory, now()) ? new HttpProbe(channel, patienceMs) : undefined;
  try {
    const first = probe === undefined ? 'legacy' : 'probe';
    const peer = await shakeHands(probe ?? channel, { client, first });
    noteOpened(memory, peer.era, { outcome: probe?.outcome, nowMs: now() });
    return peer;
  } catch (thrown) {
    const isThere = !signal.aborted && !(thrown instanceof GatewayError && thrown.facts.unreachable);
    noteFailed(memory, { outcome: probe?.outcome, isThere });
    throw thrown;
  }
}

/** The outcome of a request: its answer, or its failure. */
type RequestOutcome = { readonly answer: HandshakeAnswer } | { readonly thrown: unknown };

/** The channel of a handshake that begins with `server/discover`. */
class HttpProbe implements HandshakeChannel {
  readonly #channel: HttpHandshake;
  readonly #patienceMs: number;
  /** Ends the first question. */
  readonly #withdrawn = new AbortController();
  #question: ExchangeRequest = { method: 'server/discover' };
  #outcome: DiscoverOutcome | undefined;
  #latest: HandshakeAnswer | undefined;
  /** The answer that counts once `initialize` was sent; the request is not repeated then. */
  #answer: HandshakeAnswer | undefined;
  /** While the first question is open: the answer of a modern server, undefined at the end of everything else. */
  #late: Promise<HandshakeAnswer | undefined> = Promise.resolve(undefined);

  constructor(channel: HttpHandshake, patienceMs: number) {
    this.#channel = channel;
    this.#patienceMs = patienceMs;
  }

  /** Undefined before the request, and after a failure of the connection. */
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
    const asked = outcomeOf(this.#channel.request(question, 'modern', this.#withdrawn.signal));
    const outcome = await within(asked, this.#patienceMs);
    if (outcome === undefined) {
      this.#outcome = 'unanswered';
      this.#late = asked.then((late) => this.#take(late));
      return NOTHING_YET;
    }
    if ('answer' in outcome) {
      this.#outcome = 'answered';
      this.#latest = outcome.answer;
      return outcome.answer;
    }
    if (!wasCutOff(outcome.thrown)) throw outcome.thrown;
    this.#outcome = 'cut';
    return NOTHING_YET;
  }

  async #discoverAgain(question: ExchangeRequest): Promise<HandshakeAnswer> {
    const outcome = await this.#beside(question, 'modern');
    this.#withdrawn.abort();
    if (outcome !== undefined && 'thrown' in outcome) throw outcome.thrown;
    this.#latest = outcome?.answer ?? this.#answer ?? NOTHING_YET;
    return this.#latest;
  }

  async #initialize(request: ExchangeRequest): Promise<HandshakeAnswer> {
    if (this.#outcome === 'answered') {
      this.#answer = this.#latest;
      return this.#channel.request(request, 'legacy');
    }
    const startedAtMs = performance.now();
    const outcome = await this.#beside(request, 'legacy');
    if (outcome === undefined) return IS_MODERN;
    if ('thrown' in outcome) throw outcome.thrown;
    if (outcome.answer.kind !== 'result') return outcome.answer;
    const tookMs = performance.now() - startedAtMs;
    return (await this.#isModernAfterAll(tookMs)) ? IS_MODERN : outcome.answer;
  }

  /**
   * Sends a request while the probe may be open. Undefined when a modern server answers the probe, first or instead; the other
   * answer is not waited for then.
   */
  async #beside(request: ExchangeRequest, era: Era): Promise<RequestOutcome | undefined> {
    const unneeded = new AbortController();
    const asked = outcomeOf(this.#channel.request(request, era, unneeded.signal));
    const late = this.#late.then((modern) => (modern === undefined ? asked : undefined));
    const outcome = await Promise.race([asked, late]);
    if (outcome !== undefined && 'answer' in outcome) return outcome;
    unneeded.abort();
    return (await this.#late) === undefined ? outcome : undefined;
  }

  /** The server is up now, whatever it was at the first question, and a proxy may have kept that question from it. */
  async #isModernAfterAll(tookMs: number): Promise<boolean> {
    this.#withdrawn.abort();
    const patience = AbortSignal.timeout(Math.min(this.#patienceMs, Math.max(AGAIN_MS, tookMs)));
    const outcome = await outcomeOf(this.#channel.request(this.#question, 'modern', patience));
    const isUnanswered = patience.aborted || ('thrown' in outcome && wasCutOff(outcome.thrown));
    if (!isUnanswered) this.#outcome = 'answered';
    return this.#take(outcome) !== undefined;
  }

  /** Keeps the answer of a modern server. */
  #take(outcome: RequestOutcome): HandshakeAnswer | undefined {
    if (!('answer' in outcome) || !isModernAnswer(outcome.answer)) return undefined;
    this.#outcome = 'answered';
    this.#answer = outcome.answer;
    return outcome.answer;
  }
}

const NOTHING_YET: HandshakeAnswer = { kind: 'none', lack: 'server/discover was not answered' };
/** Stands for an `initialize` that is not wanted any more: the handshake goes on with the answer to `server/discover`. */
const IS_MODERN: HandshakeAnswer = { kind: 'none', lack: 'it speaks the modern era' };

function outcomeOf(asked: Promise<HandshakeAnswer>): Promise<RequestOutcome> {
  return asked.then(
    (answer) => ({ answer }),
    (thrown: unknown) => ({ thrown }),
  );
}

/** Undefined when it takes longer. */
async function within<T>(promise: Promise<T>, ms: number): Promise<T | undefined> {
  const { promise: late, resolve } = Promise.withResolvers<undefined>();
  const timer = setTimeout(resolve, ms, undefined);
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

// What one opening of an HTTP backend teaches the next: whether `server/discover` comes before `initialize`, or stays
// unanswered, which costs time.

/**
 * What became of `server/discover`. `answered`: by a result or a refusal; `unanswered`: by nothing; `cut`: by the end of the
 * connection.
 */
export type DiscoverOutcome = 'answered' | 'unanswered' | 'cut';

/** How long a backend that left the probe unanswered gets `initialize` first. Another server may be at the endpoint by then. */
const UNANSWERED_FOR_MS = 60 * 60_000;

/** True when the next opening begins with `server/discover`. `nowMs` is of a monotonic clock. */
export function isDiscoveredFirst({ unansweredAtMs }: OpeningMemory, nowMs: number): boolean {
  return unansweredAtMs === undefined || nowMs - unansweredAtMs >= UNANSWERED_FOR_MS;
}

/** The handshake succeeded. `outcome`: undefined when `initialize` came first; the memory then keeps its age. */
export function noteOpened(
  memory: OpeningMemory,
  era: Era,
  { outcome, nowMs }: { readonly outcome: DiscoverOutcome | undefined; readonly nowMs: number },
): void {
  memory.wasCutOff = undefined;
  if (era !== 'legacy' || outcome === 'answered') memory.unansweredAtMs = undefined;
  else if (outcome !== undefined) memory.unansweredAtMs = nowMs;
}

/** The opening failed. An address without a server proves nothing; a server that failed may be another one by now. */
export function noteFailed(
  memory: OpeningMemory,
  { outcome, isThere }: { readonly outcome: DiscoverOutcome | undefined; readonly isThere: boolean },
): void {
  if (outcome === 'cut') memory.wasCutOff = true;
  if (isThere) memory.unansweredAtMs = undefined;
}

/**
 * Its program ended by itself instead of being opened. If the connection ended on the question, the question may have ended the
 * program: the next one is spared it.
 */
export function noteExit(memory: OpeningMemory, nowMs: number): void {
  memory.unansweredAtMs = memory.wasCutOff === true ? nowMs : undefined;
  memory.wasCutOff = undefined;
}
