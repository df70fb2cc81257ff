// The lines that wait to be written to a program, in order, and the lines that are being written. Source: ADR 90.

import { LIMITS } from '../../domain/limits.ts';
import { UNCOUNTED_BYTES } from '../../domain/memory/held-bytes.ts';
import { type Linked, LinkedSet } from '../../domain/memory/linked-set.ts';
import type { UserShares } from '../../domain/memory/user-shares.ts';
import type { ProgramRun } from '../../programs/program-run.ts';

/** A message on its way to the program. */
export interface OutgoingLine extends Linked {
  /** The text without the line end. */
  readonly line: string;
  /** The caller for whom the budget of waiting messages counts the line. */
  readonly ownerId: string;
  /** Memory that is counted until the line is written or removed. */
  readonly waitingBytes: number;
  /** Called right before the line is written; from then on it may arrive. */
  onWritten(): void;
}

/** All lines of one turn are written together, one write at a time, so that the channel knows which the program may have read. */
export class Outbox {
  readonly #program: Pick<ProgramRun, 'write'>;
  readonly #budget: UserShares | undefined;
  /** The batch that is being written. */
  #writing: OutgoingLine[] = [];
  /** The counted bytes of the outbox. */
  #counted: { readonly ownerId: string; readonly bytes: number }[] = [];
  readonly #waiting = new LinkedSet<OutgoingLine>();
  #waitingCharacters = 0;
  #state: 'idle' | 'busy' | 'closed' = 'idle';

  constructor(program: Pick<ProgramRun, 'write'>, budget?: UserShares) {
    this.#program = program;
    this.#budget = budget;
  }

  /** False when the owner of the line may not hold more memory. */
  hasBytesFor({ ownerId, waitingBytes }: OutgoingLine): boolean {
    return this.#budget?.fits(ownerId, waitingBytes) !== false;
  }

  /** Queues a line. False when the outbox is full because the program does not read, or closed, also by a failed write. */
  add(line: OutgoingLine): boolean {
    const isFull = this.#waiting.size >= MAX_LINES || this.#waitingCharacters > MAX_CHARACTERS;
    if (this.#state === 'closed' || isFull) return false;
    this.#waiting.add(line);
    this.#waitingCharacters += line.line.length;
    this.#count(line, 1);
    if (this.#state === 'idle') {
      this.#state = 'busy';
      // This runs after the poll phase, so that every request that arrives in this turn is in the batch.
      setImmediate(this.#flush);
    }
    return true;
  }

  /** True while the program leaves so much unread that its questions are not answered. */
  get isNotRead(): boolean {
    return this.#waiting.size >= MAX_LINES_BEFORE_REPLY;
  }

  /** Removes a line. False when it was written already. */
  remove(line: OutgoingLine): boolean {
    if (!this.#waiting.delete(line)) return false;
    this.#waitingCharacters -= line.line.length;
    this.#count(line, -1);
    return true;
  }

  /** The call of a line has ended, and with it the count of its body, perhaps before the program has read the line. */
  noteEnded(line: OutgoingLine): void {
    if (this.#writing.includes(line)) this.#countWritten(line);
  }

  close(): void {
    this.#state = 'closed';
    for (const line of this.#waiting.values()) this.#count(line, -1);
    this.#releaseWritten();
    this.#waiting.clear();
    this.#waitingCharacters = 0;
  }

  readonly #flush = (): void => {
    if (this.#state === 'closed') return;
    if (this.#waiting.size === 0) {
      this.#state = 'idle';
      return;
    }
    this.#program.write(this.#takeBatch(), this.#written);
  };

  readonly #written = (error?: Error | null): void => {
    this.#releaseWritten();
    if (error) this.close();
    else this.#flush();
  };

  #count({ ownerId, waitingBytes }: OutgoingLine, sign: 1 | -1): void {
    if (waitingBytes > 0) this.#budget?.add(ownerId, sign * waitingBytes);
  }

  #releaseWritten(): void {
    for (const { ownerId, bytes } of this.#counted) this.#budget?.release(ownerId, bytes);
    this.#counted = [];
    this.#writing = [];
  }

  #countWritten({ ownerId, line }: OutgoingLine): void {
    const bytes = line.length;
    if (bytes <= UNCOUNTED_BYTES || this.#budget === undefined) return;
    this.#budget.add(ownerId, bytes);
    this.#counted.push({ ownerId, bytes });
  }

  /** The next lines, about BATCH_CHARACTERS at most: lines that were not written are not lost when the program exits. */
  #takeBatch(): string {
    let batch = '';
    for (let line = this.#waiting.first; line !== undefined; line = this.#waiting.first) {
      this.remove(line);
      line.onWritten();
      this.#writing.push(line);
      if (line.waitingBytes > 0) this.#countWritten(line);
      batch += `${line.line}\n`;
      if (batch.length >= BATCH_CHARACTERS) break;
    }
    return withoutSeparators(batch);
  }
}

/** The lines with U+2028 and U+2029 as escapes: `readline` of Node, with which many programs read, ends a line at them, too. */
function withoutSeparators(lines: string): string {
  if (!lines.includes('\u2028') && !lines.includes('\u2029')) return lines;
  return lines.replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029');
}

/** The capacity of a pipe. */
const BATCH_CHARACTERS = 64 * 1024;
/** Far more than one instance has in flight; reached only when the program does not read. */
const MAX_LINES = 16_384;
const MAX_CHARACTERS = LIMITS.backendMessageBytes;
/** With so many lines an answer to a question of the program is dropped: it may ask without end and not read. */
const MAX_LINES_BEFORE_REPLY = 1_024;
