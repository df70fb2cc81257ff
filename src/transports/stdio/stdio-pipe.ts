// The pipe to a program as a handshake sees it: one request after the other. It knows which of them was the probe for an
// era, how long that is waited for, and what the program does instead of answering.

import type { Unsubscribable } from 'rxjs';
import { type ExchangeRequest, isFinal } from '../../domain/exchange.ts';
import { strayLines } from '../../domain/failures.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { HandshakeAnswer, HandshakeChannel } from '../handshake.ts';
import type { ProbeOutcome } from '../probe-memory.ts';
import type { StdioChannel } from './stdio-channel.ts';

/** One handshake over one channel. */
export class StdioPipe implements HandshakeChannel {
  readonly #channel: StdioChannel;
  /** Undefined once the probe was sent, and when there is none. */
  #patienceMs: number | undefined;
  #probe: Unsubscribable | undefined;
  #asked = '';
  #probed = '';
  #outcome: ProbeOutcome | undefined;
  #lateAnswer: HandshakeAnswer | undefined;
  readonly #settled = Promise.withResolvers<void>();

  /** The first request is a probe, of which there is no answer after `patienceMs`; undefined: it is one like all others. */
  constructor(channel: StdioChannel, patienceMs: number | undefined) {
    this.#channel = channel;
    this.#patienceMs = patienceMs;
  }

  /** What became of the probe by now; undefined when none was sent. */
  get outcome(): ProbeOutcome | undefined {
    return this.#outcome;
  }

  /** What the program does instead of answering, as a clause; undefined when it keeps silent. */
  get lack(): string | undefined {
    const { strayMessages: count } = this.#channel.facts();
    if (count === 0) return undefined;
    return `it wrote ${strayLines(count)}, and did not answer ${this.#asked}`;
  }

  /** What the probe asked is not asked again when its answer has come meanwhile. */
  async request(request: ExchangeRequest): Promise<HandshakeAnswer> {
    if (this.#lateAnswer !== undefined && request.method === this.#probed) return this.#lateAnswer;
    this.#asked = request.method;
    const patienceMs = this.#patienceMs;
    if (patienceMs === undefined) return this.#ask(request);
    this.#patienceMs = undefined;
    this.#probed = request.method;
    return this.#askWithin(request, patienceMs);
  }

  notify(method: string, params: JsonObject): void {
    this.#channel.notify(method, params);
  }

  /** Resolves when the probe has come to an end, at the latest after so many ms; at once when there was none. */
  async settled(withinMs: number): Promise<void> {
    if (this.#outcome !== 'unanswered') return;
    const timer = setTimeout(this.#settled.resolve, withinMs);
    await this.#settled.promise;
    clearTimeout(timer);
  }

  /**
   * Nobody takes a late answer for anything but that. To be called at the end of the handshake: the program is told only
   * then that nobody waits, because one that knows no probe may know no cancellation before `initialize` either.
   */
  forgetProbe(): void {
    this.#probe?.unsubscribe();
  }

  #ask(request: ExchangeRequest): Promise<HandshakeAnswer> {
    return new Promise((resolve, reject) => void this.#send(request, resolve, reject));
  }

  /** An answer that is none counts like silence, only sooner; just the end of the program ends the handshake. */
  #askWithin(request: ExchangeRequest, patienceMs: number): Promise<HandshakeAnswer> {
    return new Promise((resolve, reject) => {
      const nothing: HandshakeAnswer = { kind: 'none', lack: `it did not answer ${request.method}` };
      let isLate = false;
      const timer = setTimeout(() => {
        isLate = true;
        resolve(nothing);
      }, patienceMs);
      const answered = (answer: HandshakeAnswer): void => {
        clearTimeout(timer);
        this.#outcome = isLate && answer.kind === 'result' ? 'late' : 'answered';
        if (isLate) this.#lateAnswer = answer;
        else resolve(answer);
        this.#settled.resolve();
      };
      this.#outcome = 'unanswered';
      this.#probe = this.#send(request, answered, (error) => {
        clearTimeout(timer);
        if (this.#channel.isUsable) return answered(nothing);
        this.#settled.resolve();
        reject(error);
      });
    });
  }

  #send(
    request: ExchangeRequest,
    onAnswer: (answer: HandshakeAnswer) => void,
    onError: (error: unknown) => void,
  ): Unsubscribable | undefined {
    return this.#channel.send(request, {
      next: (event) => {
        if (isFinal(event)) onAnswer(event);
      },
      error: onError,
      complete: () => {},
    });
  }
}
