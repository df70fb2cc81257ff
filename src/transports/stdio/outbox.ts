// What waits to be written to a child's standard input: all lines of one turn of the event loop go in one write, and
// there is one write in the pipe at a time, so that it is known of each line whether the child can have seen it.
// It does not know what the lines say, nor whether the child lives.

import { LIMITS } from '../../domain/limits.ts';

/** One line on its way out. */
export interface OutgoingLine {
  /** Without the line end. */
  readonly line: string;
  /** Called right before the line is handed to the system; from then on it may have arrived. */
  onHandedOver(): void;
}

/** Writes text; `done` is called once, with an error when the other side is gone. */
export type Write = (text: string, done: (error?: Error | null) => void) => void;

/** A line of outgoing lines, in the order they were added. Bounded; a line can be taken back until it is written. */
export class Outbox {
  readonly #write: Write;
  // A set keeps the order and takes a line back in constant time.
  readonly #waiting = new Set<OutgoingLine>();
  #waitingCharacters = 0;
  #state: 'idle' | 'scheduled' | 'writing' | 'closed' = 'idle';

  constructor(write: Write) {
    this.#write = write;
  }

  /** Queues a line. False when the outbox is full because the child does not read, or closed: so it is after a write failed. */
  add(line: OutgoingLine): boolean {
    if (this.#state === 'closed' || this.#isFull) return false;
    this.#waiting.add(line);
    this.#waitingCharacters += line.line.length;
    if (this.#state === 'idle') {
      this.#state = 'scheduled';
      // After the poll phase: by then every request that arrived in this turn is in the batch.
      setImmediate(this.#flush);
    }
    return true;
  }

  /** Takes a line back. False when it was handed over already. */
  remove(line: OutgoingLine): boolean {
    if (!this.#waiting.delete(line)) return false;
    this.#waitingCharacters -= line.line.length;
    return true;
  }

  /** Forgets what waits; nothing is written any more. */
  close(): void {
    this.#state = 'closed';
    this.#waiting.clear();
    this.#waitingCharacters = 0;
  }

  get #isFull(): boolean {
    return this.#waiting.size >= MOST_LINES || this.#waitingCharacters > MOST_CHARACTERS;
  }

  readonly #flush = (): void => {
    if (this.#state === 'closed') return;
    if (this.#waiting.size === 0) {
      this.#state = 'idle';
      return;
    }
    this.#state = 'writing';
    this.#write(this.#takeBatch(), this.#written);
  };

  readonly #written = (error?: Error | null): void => {
    if (error) this.close();
    else this.#flush();
  };

  /** The next lines, at most about BATCH_CHARACTERS: what is not handed over is not lost with the child. */
  #takeBatch(): string {
    let batch = '';
    for (const line of this.#waiting) {
      this.remove(line);
      line.onHandedOver();
      batch += `${line.line}\n`;
      if (batch.length >= BATCH_CHARACTERS) break;
    }
    return batch;
  }
}

/** One pipe full. */
const BATCH_CHARACTERS = 64 * 1024;
/** Far more than one instance has in flight; reached only with a child that talks and does not listen. */
const MOST_LINES = 16_384;
const MOST_CHARACTERS = LIMITS.backendMessageBytes;
