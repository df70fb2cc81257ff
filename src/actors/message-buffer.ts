// What a backend said while its client did not listen: the latest of it, bounded in number and in size. Whoever keeps it
// knows when the client is there again, and what becomes of what is dropped.

import type { JsonObject } from '../domain/json.ts';
import { LIMITS } from '../domain/limits.ts';

interface BufferedMessage<T> {
  readonly message: T;
  readonly bytes: number;
}

export class MessageBuffer<T> {
  readonly #dropped: (message: T) => void;
  #messages: BufferedMessage<T>[] = [];
  #bytes = 0;

  /** `dropped` is told of each message that finds no room, or has to make some. Default: nobody is. */
  constructor(dropped: (message: T) => void = () => {}) {
    this.#dropped = dropped;
  }

  /** `params` are those of the message, and what it is measured by. One that is too large for itself leaves the others. */
  put(message: T, params: JsonObject): void {
    const bytes = sizeOf(params);
    if (bytes > LIMITS.undeliveredBytes) {
      this.#dropped(message);
      return;
    }
    this.#messages.push({ message, bytes });
    this.#bytes += bytes;
    while (this.#messages.length > LIMITS.undeliveredMessages || this.#bytes > LIMITS.undeliveredBytes)
      this.#drop();
  }

  /** All of them, oldest first; nothing is kept any more. */
  takeAll(): T[] {
    const messages = this.#messages;
    this.#messages = [];
    this.#bytes = 0;
    return messages.map(({ message }) => message);
  }

  #drop(): void {
    const oldest = this.#messages.shift();
    if (oldest === undefined) return;
    this.#bytes -= oldest.bytes;
    this.#dropped(oldest.message);
  }
}

/** About what it takes as JSON. One that is nested too deeply to be written could not be delivered either. */
function sizeOf(params: JsonObject): number {
  try {
    return JSON.stringify(params).length;
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}
