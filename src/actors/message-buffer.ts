// Buffers the latest messages of a backend while its client does not listen, bounded in number and size.

import { type JsonObject, valuesIn } from '../domain/json/json.ts';
import { LIMITS } from '../domain/limits.ts';
import { memoryOf } from '../domain/memory/held-bytes.ts';

/** The latest messages of a backend for a client that does not listen yet. */
export class MessageBuffer<T> {
  readonly #onDropped: (message: T) => void;
  #messages: { readonly message: T; readonly bytes: number }[] = [];
  #bytes = 0;

  /** `onDropped` gets each message that does not fit, or makes room for another. Default: none. */
  constructor(onDropped: (message: T) => void = () => {}) {
    this.#onDropped = onDropped;
  }

  /** `params` determine the size of the message. One that is too large alone is dropped without displacing others. */
  put(message: T, params: JsonObject): void {
    const bytes = sizeOf(params);
    if (bytes > LIMITS.undeliveredBytes) {
      this.#onDropped(message);
      return;
    }
    this.#messages.push({ message, bytes });
    this.#bytes += bytes;
    while (this.#messages.length > LIMITS.undeliveredMessages || this.#bytes > LIMITS.undeliveredBytes) {
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
 * Roughly the size as JSON, or in memory if that is more. Params nested too deeply to be serialized could not be
 * delivered either.
 */
function sizeOf(params: JsonObject): number {
  try {
    const { length } = JSON.stringify(params);
    return Math.max(length, memoryOf(valuesIn(params, length), 0));
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}
