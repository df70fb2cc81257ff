// The event streams that answer the POSTs of one session: while they are open, and for a while after they ended, as long
// as their client may come back for something.

import { type EventPosition, LegacyStream, type StreamFacts } from './legacy-stream.ts';

/** What all of them need to know. */
export interface StreamsFacts extends Omit<StreamFacts, 'key'> {
  /** Keys of streams; none comes twice in the process. */
  readonly nextKey: () => string;
}

/** The streams of one session. */
export class LegacyStreams {
  readonly #facts: StreamsFacts;
  readonly #streams = new Map<string, LegacyStream>();

  constructor(facts: StreamsFacts) {
    this.#facts = facts;
  }

  get size(): number {
    return this.#streams.size;
  }

  /** One that is not begun yet. */
  open(): LegacyStream {
    const stream = new LegacyStream({ ...this.#facts, key: this.#facts.nextKey() });
    this.#streams.set(stream.key, stream);
    return stream;
  }

  /** The stream of that event; undefined when it is gone, or another session's. */
  find({ key }: EventPosition): LegacyStream | undefined {
    return this.#streams.get(key);
  }

  /** Forgets those that nobody can want anything of. */
  prune(): void {
    for (const [key, stream] of this.#streams) {
      if (!stream.isDone) continue;
      stream.discard();
      this.#streams.delete(key);
    }
  }

  /** Forgets those that ended and whose client did not come back. */
  expire(nowMs: number): void {
    for (const stream of this.#streams.values()) {
      if (stream.isFinished && stream.isForsaken(nowMs)) stream.discard();
    }
    this.prune();
  }

  close(): void {
    for (const stream of this.#streams.values()) stream.discard();
    this.#streams.clear();
  }
}
