// Buffers the latest messages of a backend while its client does not listen, bounded in number and size.

import { type JsonObject, valuesIn } from '../json/json.ts';
import { LIMITS } from '../limits.ts';
import { memoryOf } from './held-bytes.ts';

/** Most bytes of the params of the messages that wait, as JSON. */
export const MAX_UNDELIVERED_BYTES = 1024 * 1024;

/** The latest messages of a backend for a client that does not listen yet. */
export class MessageBuffer<T> {
  readonly #onDropped: (message: T) => void;
  #messages: { readonly message: T; readonly bytes: number }[] = [];
  #bytes = 0;

  /** `onDropped` gets each message that does not fit, or that makes room for another. Default: ignored. */
  constructor(onDropped: (message: T) => void = () => {}) {
    this.#onDropped = onDropped;
  }

  /**
   * Adds a message; the size of `params` counts as its size. A message that is too large by itself is dropped,
   * without displacing others.
   */
  put(message: T, params: JsonObject): void {
    const bytes = sizeOf(params);
    if (bytes > MAX_UNDELIVERED_BYTES) {
      this.#onDropped(message);
      return;
    }
    this.#messages.push({ message, bytes });
    this.#bytes += bytes;
    while (this.#messages.length > LIMITS.undeliveredMessages || this.#bytes > MAX_UNDELIVERED_BYTES) {
      const oldest = this.#messages.shift();
      if (oldest === undefined) return;
      this.#bytes -= oldest.bytes;
      this.#onDropped(oldest.message);
    }
  }

  takeAll(): T[] {
    const messages = this.#messages;
    this.#messages = [];
    this.#bytes = 0;
    return messages.map(({ message }) => message);
  }
}

/**
 * The size of params: about that of their JSON, or of their memory if that is more. Infinity for params
 * nested too deeply to be serialized, which could not be delivered either.
 */
function sizeOf(params: JsonObject): number {
  try {
    const { length } = JSON.stringify(params);
    return Math.max(length, memoryOf(valuesIn(params, length), 0));
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}
