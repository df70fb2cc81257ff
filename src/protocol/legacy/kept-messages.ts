// The last messages of a stream of HTTP+SSE that leads through another node: if that node dies, its client may not have got them.
// Source: ADR 310.

import type { Clock } from '../../domain/time/clock.ts';
import { type LogDeps, MessageLog } from './legacy-stream.ts';

const MAX_KEPT = 64;
/** How long a message is kept at least, in ms: the loss of a node may be noticed late. Twice as long at most. */
const KEPT_MS = 20_000;

export class KeptMessages {
  readonly #log: MessageLog;
  readonly #clock: Pick<Clock, 'background'>;
  #endKeeping: (() => void) | undefined;

  constructor(deps: LogDeps, clock: Pick<Clock, 'background'>) {
    this.#log = new MessageLog(deps, MAX_KEPT);
    this.#clock = clock;
  }

  /** A copy: a small answer may be a part of a large buffer. */
  keep(data: Uint8Array | string, number: number): void {
    this.#log.append(number, typeof data === 'string' ? data : Buffer.from(Uint8Array.from(data).buffer));
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

  /** What is there now goes then. */
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
