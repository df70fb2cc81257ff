// Opens a conversation with a program: the probe for its era, the handshake, and the end of the program when that fails. It also
// decides what the next opening does: whether the probe comes first, and whether a program that the probe may have ended is started
// again. stdio.ts decides which programs are needed; ADR 23 explains the order.

import type { Unsubscribable } from 'rxjs';
import { settlesWithin } from '../../domain/clock.ts';
import { asGatewayError, openingFailed, unmatchedLines } from '../../domain/errors.ts';
import { type ExchangeRequest, isFinal } from '../../domain/exchange.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { Era } from '../../domain/mcp.ts';
import { boundedHandshake } from '../bounded-handshake.ts';
import type { Channel } from '../channel.ts';
import type { HandshakeAnswer, HandshakeChannel, HandshakeOptions } from '../handshake.ts';
import type { OpeningMemory, OpenOptions } from '../transport.ts';
import type { StdioChannel } from './stdio-channel.ts';

export interface StdioHandshakeOptions
  extends Pick<HandshakeOptions, 'client' | 'profile' | 'mayBeModern'>,
    Pick<OpenOptions, 'signal' | 'handshakeTimeoutMs' | 'scheduler'> {
  /** As in HandshakeOptions. Default: the legacy era. */
  readonly first?: HandshakeOptions['first'];
}

export interface SharedOpening extends StdioHandshakeOptions, Pick<OpenOptions, 'memory'> {
  /** Default PROBE_TIMEOUT_MS. */
  readonly probeTimeoutMs?: number | undefined;
}

export interface Probe {
  readonly probeTimeoutMs: number;
  outcome: ProbeOutcome;
}

/** Longest wait for the answer to the probe; at most half of the handshake's time. Then `initialize` is sent. */
export const PROBE_TIMEOUT_MS = 3_000;

/**
 * A program that started slowly answers the probe and the next request together, in any order. The second answer is awaited for this
 * time, to distinguish the program from one that leaves probes unanswered.
 */
const LATE_MS = 250;

/**
 * Starts the program that all clients share and determines its era: modern if it speaks that. A program of unknown era that exits
 * with the probe unanswered is started once more, within the same time, without a probe. `memory` keeps the results.
 * Rejects like `openOnPipe`.
 */
export async function openShared<C extends StdioChannel>(start: () => C, options: SharedOpening): Promise<C> {
  const { memory, probeTimeoutMs = PROBE_TIMEOUT_MS } = options;
  const giveUpAt = performance.now() + options.handshakeTimeoutMs;
  const probe: Probe | undefined = isProbedNext(memory)
    ? { probeTimeoutMs, outcome: 'unanswered' }
    : undefined;
  const channel = start();
  try {
    const first = probe === undefined ? 'legacy' : 'modern';
    await openOnPipe(channel, { ...options, first }, probe);
    noteSuccess(memory, channel.peer.era, probe?.outcome);
    return channel;
  } catch (thrown) {
    if (options.signal.aborted) throw thrown;
    const isAgain = noteProbeFailure(memory, probe?.outcome, channel.wasStarted) && channel.hasFailed;
    const leftMs = giveUpAt - performance.now();
    if (!isAgain || leftMs <= 0) throw thrown;
    return openShared(start, { ...options, handshakeTimeoutMs: leftMs });
  }
}

/** With a `probe` the first answer has its own timeout. Rejects after the program was stopped, with its last lines of stderr. */
export async function openOnPipe(
  channel: Channel,
  { signal, handshakeTimeoutMs, scheduler, first = 'legacy', ...handshake }: StdioHandshakeOptions,
  probe?: Probe,
): Promise<void> {
  const pipe = new StdioPipe(channel, probe, handshakeTimeoutMs / 2);
  const abort = () => void channel.close();
  const lateReason = () => pipe.detail;
  const bounds = { signal, timeoutMs: handshakeTimeoutMs, scheduler, abort, lateReason };
  try {
    await boundedHandshake(bounds, () => channel.open({ ...handshake, first }, pipe));
    await pipe.probeEnded(LATE_MS);
  } catch (error) {
    await channel.close();
    throw openingFailed(asGatewayError(error), channel.diagnostics().stderr);
  } finally {
    pipe.cancelProbe();
  }
}

/** The channel of one handshake with a program. The first request may be a probe for an era, with its own timeout. */
export class StdioPipe implements HandshakeChannel {
  readonly #channel: Channel;
  readonly #probe: Probe | undefined;
  readonly #mostMs: number;
  #sent: Unsubscribable | undefined;
  #lastMethod = '';
  #probedMethod = '';
  #lateAnswer: HandshakeAnswer | undefined;
  readonly #probeEnded = Promise.withResolvers<void>();

  /** After `mostMs` at the latest the probe counts as unanswered. */
  constructor(channel: Channel, probe: Probe | undefined, mostMs: number) {
    this.#channel = channel;
    this.#probe = probe;
    this.#mostMs = mostMs;
  }

  /** The output of the program instead of an answer, as a clause; undefined when there is none. */
  get detail(): string | undefined {
    const { unmatchedMessages: count } = this.#channel.diagnostics();
    if (count === 0) return undefined;
    return `it wrote ${unmatchedLines(count)}, and did not answer ${this.#lastMethod}`;
  }

  /** A late answer to the probe also answers the same request of a later attempt. */
  async request(request: ExchangeRequest): Promise<HandshakeAnswer> {
    if (this.#lateAnswer !== undefined && request.method === this.#probedMethod) return this.#lateAnswer;
    this.#lastMethod = request.method;
    if (this.#probe === undefined || this.#probedMethod !== '') return this.#channel.request(request);
    this.#probedMethod = request.method;
    return this.#ask(request, this.#probe);
  }

  notify(method: string, params: JsonObject): void {
    this.#channel.notify(method, params);
  }

  /** Resolves when the probe has ended, after `withinMs` at the latest; at once when there was none. */
  async probeEnded(withinMs: number): Promise<void> {
    if (this.#probe?.outcome === 'unanswered') await settlesWithin(this.#probeEnded.promise, withinMs);
  }

  /** At the end of the handshake: a program that does not know the probe may not accept a cancellation before `initialize`. */
  cancelProbe(): void {
    this.#sent?.unsubscribe();
  }

  /** An unusable answer counts as none; only the end of the program fails the handshake. */
  #ask(request: ExchangeRequest, probe: Probe): Promise<HandshakeAnswer> {
    return new Promise((resolve, reject) => {
      const nothing: HandshakeAnswer = { kind: 'none', detail: `it did not answer ${request.method}` };
      let isLate = false;
      const timer = setTimeout(
        () => {
          isLate = true;
          resolve(nothing);
        },
        Math.min(probe.probeTimeoutMs, this.#mostMs),
      );
      const answered = (answer: HandshakeAnswer): void => {
        clearTimeout(timer);
        probe.outcome = isLate && answer.kind === 'result' ? 'late' : 'answered';
        if (isLate) this.#lateAnswer = answer;
        else resolve(answer);
        this.#probeEnded.resolve();
      };
      this.#sent = this.#channel.send(request, {
        next: (event) => {
          if (isFinal(event)) answered(event);
        },
        error: (error) => {
          clearTimeout(timer);
          if (this.#channel.isUsable) return answered(nothing);
          this.#probeEnded.resolve();
          reject(error);
        },
        complete: () => {},
      });
    });
  }
}

/** The outcome of a probe. `late`: a result came after the timeout; `answered`: a result in time, or an error. */
type ProbeOutcome = 'unanswered' | 'answered' | 'late';

/** True when the next opening begins with the probe: while all openings fail, every other one does. */
function isProbedNext({ era, failure }: OpeningMemory): boolean {
  if (era !== undefined) return era === 'modern';
  return failure === undefined || failure === 'unprobed';
}

/**
 * Stores the era of a program. A legacy one is certain when it refused the probe, or left it unanswered in this opening or the one
 * before; a late answer only means that the program was slow.
 */
function noteSuccess(memory: OpeningMemory, era: Era, outcome: ProbeOutcome | undefined): void {
  const isSure = outcome === undefined ? memory.failure === 'unanswered' : outcome !== 'late';
  memory.failure = undefined;
  if (era === 'modern' || (era === 'legacy' && isSure)) memory.era = era;
}

/**
 * True when the program is to be started once more if it has exited: its era is unknown, and the probe was unanswered. If the second
 * start fails, too, the probe was not the reason: from then on each opening starts it once.
 */
function noteProbeFailure(
  memory: OpeningMemory,
  outcome: ProbeOutcome | undefined,
  wasStarted: boolean,
): boolean {
  if (memory.era === 'legacy') return false;
  if (memory.era === 'modern') {
    memory.era = undefined; // it may be another program now
    return false;
  }
  if (memory.failure !== undefined) {
    memory.failure = outcome === undefined ? 'unprobed' : 'probed';
    return false;
  }
  if (outcome !== 'unanswered' || !wasStarted) return false;
  memory.failure = 'unanswered';
  return true;
}
