// The pipe to a program as a handshake sees it: one request after the other. It knows which of them was the probe for the
// modern era, how long that is waited for, and what the program does instead of answering.

import type { Unsubscribable } from 'rxjs';
import { type ExchangeRequest, isFinal } from '../domain/exchange.ts';
import type { JsonObject } from '../domain/json.ts';
import type { HandshakeAnswer, HandshakeChannel } from './handshake.ts';
import type { StdioChannel } from './stdio-channel.ts';

/** One handshake over one channel. */
export class StdioPipe implements HandshakeChannel {
  readonly #channel: StdioChannel;
  /** Undefined once the probe was sent, and when there is none. */
  #patienceMs: number | undefined;
  #probe: Unsubscribable | undefined;
  #asked = '';
  #isProbeUnanswered = false;

  /** The first request is a probe, of which there is no answer after `patienceMs`; undefined: it is one like all others. */
  constructor(channel: StdioChannel, patienceMs: number | undefined) {
    this.#channel = channel;
    this.#patienceMs = patienceMs;
  }

  /** True while a probe that was sent has no answer, not even a late one. */
  get isProbeUnanswered(): boolean {
    return this.#isProbeUnanswered;
  }

  /** What the program does instead of answering, as a clause; undefined when it keeps silent. */
  get lack(): string | undefined {
    const { strayMessages: count } = this.#channel.facts();
    if (count === 0) return undefined;
    const lines = count === 1 ? '1 line that is' : `${count} lines that are`;
    return `it wrote ${lines} no JSON-RPC, and did not answer ${this.#asked}`;
  }

  request(request: ExchangeRequest): Promise<HandshakeAnswer> {
    this.#asked = request.method;
    const patienceMs = this.#patienceMs;
    this.#patienceMs = undefined;
    return patienceMs === undefined ? this.#ask(request) : this.#askWithin(request, patienceMs);
  }

  notify(method: string, params: JsonObject): void {
    this.#channel.notify(method, params);
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
      const nothing = (): void => resolve({ kind: 'none', lack: `it did not answer ${request.method}` });
      const timer = setTimeout(nothing, patienceMs);
      const answered = (): void => {
        clearTimeout(timer);
        this.#isProbeUnanswered = false;
      };
      this.#isProbeUnanswered = true;
      this.#probe = this.#send(
        request,
        (answer) => {
          answered();
          resolve(answer);
        },
        (error) => {
          clearTimeout(timer);
          if (!this.#channel.isUsable) return reject(error);
          answered();
          nothing();
        },
      );
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
