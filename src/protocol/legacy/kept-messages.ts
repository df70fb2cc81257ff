// Keeps the last messages of an HTTP+SSE stream that leads through another node: if that node dies, the client may not
// have got them. Source: ADR 165.

import type { Clock } from '../../domain/time/clock.ts';
import { type LogOptions, MessageLog } from './legacy-stream.ts';

const MAX_KEPT = 64;
/**
 * The shortest time for which a message is kept, in ms; the longest is twice as long. The loss of a node may be
 * noticed late.
 */
const KEPT_MS = 20_000;

/** The messages of one stream, each kept for a while. */
export class KeptMessages {
  readonly #log: MessageLog;
  readonly #clock: Clock;
  #endKeeping: (() => void) | undefined;

  constructor(options: LogOptions, clock: Clock) {
    this.#log = new MessageLog(options, { most: MAX_KEPT });
    this.#log.own();
    this.#clock = clock;
  }

  keep(data: Uint8Array | string, number: number): void {
    this.#log.append(number, data);
    if (this.#endKeeping === undefined) this.#forgetLater();
  }

  has(wanted: number): boolean {
    return this.#log.messages.some(({ number }) => number === wanted);
  }

  after(last: number): readonly { readonly number: number; readonly data: Uint8Array | string }[] {
    return this.#log.messages.filter(({ number }) => number > last);
  }

  clear(): void {
    this.#endKeeping?.();
    this.#log.clear();
  }

  /** Sets a timer that drops the messages that are stored now. */
  #forgetLater(): void {
    const last = this.#log.messages.at(-1)?.number;
    this.#endKeeping =
      last === undefined
        ? undefined
        : this.#clock.background.alarm(KEPT_MS, () => {
            this.#log.clearUntil(last);
            this.#forgetLater();
          });
  }
}
