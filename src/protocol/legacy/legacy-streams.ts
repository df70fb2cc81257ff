// The event streams that answer the POSTs of one session: while they are open, and for a while after they ended, as long
// as their client may come back for something.

import type { McpReply } from '../endpoint-types.ts';
import { type EventPosition, LegacyStream, type StreamEvents } from './legacy-stream.ts';

/** What all of them need to know. */
export interface StreamsEvents extends Omit<StreamEvents, 'key' | 'onForgotten'> {
  /** Keys of streams; none comes twice in the process. */
  readonly nextKey: () => string;
}

/** The streams of one session. */
export class LegacyStreams {
  readonly #facts: StreamsEvents & Pick<StreamEvents, 'onForgotten'>;
  readonly #streams = new Map<string, LegacyStream>();
  /** Those of which it is not known yet whether they were taken: a call only looks at these. */
  readonly #unsettled = new Set<LegacyStream>();

  constructor(facts: StreamsEvents) {
    const onForgotten = (stream: LegacyStream) => {
      this.#streams.delete(stream.key);
      this.#unsettled.delete(stream);
    };
    this.#facts = { ...facts, onForgotten };
  }

  get size(): number {
    return this.#streams.size;
  }

  /** One that is not begun yet. */
  open(): LegacyStream {
    const stream = new LegacyStream({ ...this.#facts, key: this.#facts.nextKey() });
    this.#streams.set(stream.key, stream);
    this.#unsettled.add(stream);
    return stream;
  }

  /** Goes on with the stream of that event. False when it is gone, or another session's. */
  resume(reply: McpReply, { key, number }: EventPosition): boolean {
    const stream = this.#streams.get(key);
    if (stream === undefined) return false;
    this.#unsettled.add(stream);
    stream.resume(reply, number);
    return true;
  }

  /** Looks which of those that ended were taken by now. */
  checkTaken(): void {
    for (const stream of this.#unsettled) {
      if (stream.checkTaken()) this.#unsettled.delete(stream);
    }
  }

  /** Forgets those that ended and whose client did not come back. */
  expire(nowMs: number): void {
    this.checkTaken();
    for (const stream of this.#streams.values()) {
      if (stream.isFinished && stream.isForsaken(nowMs)) stream.discard();
    }
  }

  close(): void {
    for (const stream of this.#streams.values()) stream.discard();
  }
}
