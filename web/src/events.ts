// The one event stream of the console. It reconnects by itself, resumes after the last event that it read,
// and detects a connection that broke while the machine slept. A page in the background has none: over HTTP/1.1 all pages of a browser
// share six connections to the gateway. store.ts interprets the events.

import { signal } from '@preact/signals';
import { ApiError, send } from './api.ts';
import { readEvents } from './sse.ts';
import type { GatewayEvent } from './types.ts';

/** `refused`: the caller may not read events; there is no further attempt. */
export type Connection = 'connecting' | 'live' | 'offline' | 'refused';
export const connection = signal<Connection>('connecting');

/** The gateway sends a comment every 15 s: a stream that is silent for longer than this is broken. */
const SILENCE_MS = 20_000;
/** The gateway answers at once: a request without an answer after this time is lost. */
const ANSWER_MS = 10_000;
const CHECK_MS = 5_000;
const DELAYS_MS = [250, 500, 1_000, 2_000, 5_000];
/** A page that is in the background for longer ends its stream until it is in view. */
const HIDDEN_MS = 5_000;
/** A stream that ends sooner is a failure: a proxy may answer and close each one. */
const STABLE_MS = 10_000;

export interface StreamListener {
  /** Called with each event, in order. */
  onEvent(event: GatewayEvent): void;
  /** Called after each connect: events may have been lost, so the state has to be read again. */
  onConnect(): void;
}

export class EventStream {
  readonly #listener: StreamListener;
  #types: readonly string[];
  #lastId: string | undefined;
  #attempt: AbortController | undefined;
  #wake: () => void = () => {};
  #readAtMs = 0;
  /** Streams in a row that were refused or ended soon. */
  #failures = 0;
  readonly #stopped = new AbortController();
  #watchdog = 0;
  #hiding = 0;

  /** `types` are types or groups of events: `instance`, `gateway.sampled`. */
  constructor(types: readonly string[], listener: StreamListener) {
    this.#types = types;
    this.#listener = listener;
  }

  start(): void {
    this.#watchdog = setInterval(() => this.#checkSilence(), CHECK_MS);
    document.addEventListener('visibilitychange', this.#onVisibility, this.#stopped);
    for (const name of ['online', 'pageshow']) addEventListener(name, this.#onReturn, this.#stopped);
    void this.#run();
  }

  stop(): void {
    this.#stopped.abort();
    clearInterval(this.#watchdog);
    clearTimeout(this.#hiding);
    this.#attempt?.abort();
    this.#wake();
  }

  /** Selects other events. All kept events of these types are sent again, so that a page begins with the recent past. */
  select(types: readonly string[]): void {
    if (types.join() === this.#types.join()) return;
    this.#types = types;
    this.#lastId = undefined;
    this.#failures = 0;
    this.#reconnect();
  }

  async #run(): Promise<void> {
    for (; ; this.#failures += 1) {
      while (isHidden() && !this.#stopped.signal.aborted) {
        this.#failures = 0;
        await this.#pause();
      }
      if (this.#stopped.signal.aborted) return;
      const startMs = performance.now();
      try {
        await this.#read();
      } catch (thrown) {
        if (thrown instanceof ApiError && (thrown.status === 401 || thrown.status === 403)) {
          connection.value = 'refused';
          return;
        }
      }
      if (this.#stopped.signal.aborted) return;
      const wasOpen = connection.value === 'live';
      if (wasOpen && performance.now() - startMs > STABLE_MS) this.#failures = 0;
      connection.value = wasOpen || this.#failures === 0 ? 'connecting' : 'offline';
      await this.#pause(DELAYS_MS[Math.min(this.#failures, DELAYS_MS.length - 1)] ?? 0);
    }
  }

  async #read(): Promise<void> {
    const attempt = new AbortController();
    this.#attempt = attempt;
    this.#readAtMs = Date.now();
    const path = `events?follow=true&type=${this.#types.join(',')}`;
    const headers = {
      Accept: 'text/event-stream',
      ...(this.#lastId === undefined ? {} : { 'Last-Event-ID': this.#lastId }),
    };
    const { body } = await send('GET', path, undefined, { headers, signal: attempt.signal });
    if (body === null) return;
    connection.value = 'live';
    this.#listener.onConnect();
    for await (const event of readEvents(body, () => this.#noteBytes())) {
      if (attempt.signal.aborted) return;
      this.#lastId = event.id ?? this.#lastId;
      if (event.name === 'error') return;
      this.#listener.onEvent(JSON.parse(event.data));
    }
  }

  #noteBytes(): void {
    this.#readAtMs = Date.now();
  }

  readonly #onVisibility = (): void => {
    clearTimeout(this.#hiding);
    if (isHidden()) this.#hiding = setTimeout(() => this.#attempt?.abort(), HIDDEN_MS);
    else this.#onReturn();
  };

  /** The page is in view or the network is available again: replaces a stream that may have broken meanwhile. */
  readonly #onReturn = (): void => {
    if (isHidden()) return;
    this.#checkSilence();
    this.#wake();
  };

  #checkSilence(): void {
    const limitMs = connection.value === 'live' ? SILENCE_MS : ANSWER_MS;
    // The clock may have been set back. Another clock would stand still while the machine sleeps.
    if (Math.abs(Date.now() - this.#readAtMs) > limitMs) this.#reconnect();
  }

  #reconnect(): void {
    this.#attempt?.abort();
    this.#wake();
  }

  /** Resolves after this time, or when it is woken. */
  #pause(delayMs?: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = delayMs === undefined ? undefined : setTimeout(resolve, delayMs);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

function isHidden(): boolean {
  return document.visibilityState === 'hidden';
}
