// The row of one session: what it has to be, what is stored, and what is not written yet. session-keeper.ts writes
// it, together with the rows of others. Source: ADR 143.

import { hash } from 'node:crypto';
import type { EndReason } from '../../domain/sessions/session-ends.ts';
import type { OwnRow } from '../../domain/sessions/session-table.ts';
import {
  type AnySessionValue,
  SessionValueError,
  type StorableSession,
  writeSession,
} from '../../domain/sessions/session-value.ts';

/** What the row of a session needs of its keeper. */
export interface RowWriter {
  readonly counts: { dropped: number };
  /** Writes what has changed. `isAwaited`: a client waits for the write. */
  add(row: SessionRow, isAwaited: boolean): void;
  /** Resolves when this is written, or with false when it has failed or took longer than a client waits. */
  within(written: Promise<boolean>): Promise<boolean>;
  /** Any node may claim this row. */
  release(key: string): void;
}

interface SessionWrite {
  /** The text of a new row, or of a stored one. */
  readonly insert?: string;
  readonly update?: string;
  readonly isDeleted?: boolean;
  /** The value of the row afterwards. */
  readonly written: AnySessionValue | undefined;
}

/** The row of a session, and what is not written yet. */
export class SessionRow implements OwnRow {
  readonly #keeper: RowWriter;
  readonly #session: StorableSession;
  /** The value of the row; undefined without one. */
  #stored: AnySessionValue | undefined;
  /** The value of the first attempt to insert the row; undefined when there is certainly no row. */
  #inserted: AnySessionValue | undefined;
  /** The mark `unsafe`: asked for, then written or given up. */
  #mark: 'no' | 'asked' | 'done' = 'no';
  #marking: Promise<void> | undefined;
  #isOver = false;
  /** A value that was too large. */
  #skipped: AnySessionValue | undefined;
  #written: PromiseWithResolvers<boolean> | undefined;

  constructor(keeper: RowWriter, session: StorableSession, isStored: boolean) {
    this.#keeper = keeper;
    this.#session = session;
    if (!isStored) return;
    this.#stored = session.value;
    this.#inserted = session.value;
    if (isMarked(session.value)) this.#mark = 'done';
  }

  /** Made for each write: thousands of sessions are idle. */
  get key(): string {
    return rowKeyOf(this.#session.id);
  }

  /** A client waits until this is written. */
  get isAwaited(): boolean {
    return this.#written !== undefined;
  }

  get isStored(): boolean {
    return this.#stored !== undefined;
  }

  changed(): void {
    if (this.#isOver || !this.#isDifferent) return;
    this.#keeper.add(this, false);
  }

  save(): Promise<boolean> | undefined {
    if (!this.#isDifferent && this.#written === undefined) return undefined;
    this.#written ??= Promise.withResolvers();
    const { promise } = this.#written;
    this.#keeper.add(this, true);
    return this.#keeper.within(promise);
  }

  get isUnmarked(): boolean {
    return this.#mark !== 'done' && !this.#isOver;
  }

  mark(): Promise<void> | undefined {
    if (this.#mark === 'no') {
      this.#mark = 'asked';
      this.#marking = this.save()?.then(() => this.#marked());
    }
    if (this.#marking === undefined) this.#marked();
    return this.#marking;
  }

  end(reason: EndReason, isLeft: boolean): void {
    if (this.#isOver) return;
    if (reason === 'takenOver' && this.#stored !== undefined) this.#drop();
    else if (reason === 'takenOver')
      this.changed(); // no other node knows it: it continues by its row, once that is written
    else if (isLeft && reason !== 'byClient') {
      this.changed();
      this.#keeper.release(this.key);
    } else {
      this.#isOver = true;
      this.#keeper.add(this, false);
    }
  }

  #marked(): void {
    this.#mark = 'done';
    this.#marking = undefined;
  }

  // --- for its keeper --------------------------------------------------------------------------------------

  next(): SessionWrite {
    const { value } = this.#session;
    if (this.#isOver) return { isDeleted: this.#inserted !== undefined, written: undefined };
    if (!this.#isDifferent) return { written: this.#stored };
    const written = writtenOf(value, this.#mark !== 'no');
    const text = textOf(written);
    if (text === undefined) {
      this.#keeper.counts.dropped += 1;
      this.#skipped = value;
      return { isDeleted: this.#inserted !== undefined, written: undefined };
    }
    if (this.#stored !== undefined) return { update: text, written };
    // If an earlier attempt was carried out, the row keeps the value of that one, until the next write.
    this.#inserted ??= written;
    return { insert: text, written: this.#inserted };
  }

  wrote(value: AnySessionValue | undefined): void {
    this.#stored = value;
    if (value === undefined) this.#inserted = undefined;
    if (value !== undefined && this.#isDifferent) this.#keeper.add(this, this.isAwaited);
    else this.settle();
  }

  /** No client waits any longer. `isStored`: false after a failure. */
  settle(isStored = true): void {
    this.#written?.resolve(isStored);
    this.#written = undefined;
  }

  takenOver(): void {
    this.#drop();
    this.#session.takenOver();
  }

  // ---------------------------------------------------------------------------------------------------------

  /** Nothing more is written, also not what waits: the row may be claimed again, under the same key. */
  #drop(): void {
    this.#isOver = true;
    this.#stored = undefined;
    this.#inserted = undefined;
    this.settle();
  }

  get #isDifferent(): boolean {
    if (this.#isOver) return this.#inserted !== undefined;
    const stored = this.#stored;
    if (stored === undefined) return this.#session.value !== this.#skipped;
    if (this.#mark !== 'no' && this.#session.value.kind === 'template' && !isMarked(stored)) return true;
    return isChanged(stored, this.#session.value);
  }
}

/** The key of the row of a session: the id is a credential. */
export function rowKeyOf(sessionId: string): string {
  return hash('sha256', sessionId);
}

/** The value without its end, and perhaps with the mark. The same object if it is so already: thousands of sessions are idle. */
function writtenOf(value: AnySessionValue, hasMark: boolean): AnySessionValue {
  const needsMark = hasMark && value.kind === 'template' && value.unsafe !== 'yes';
  if (value.endReason === undefined && !needsMark) return value;
  const { endReason: _, ...present } = value;
  return present.kind === 'template' && needsMark ? { ...present, unsafe: 'yes' } : present;
}

function isMarked(value: AnySessionValue | undefined): boolean {
  return value?.kind === 'template' && value.unsafe !== 'no';
}

/** Without the end, which is not stored, and a mark that was taken back: it may come again with each call. */
function isChanged(stored: AnySessionValue, value: AnySessionValue): boolean {
  const before: Readonly<Record<string, unknown>> = stored;
  return Object.entries(value).some(([field, present]) => {
    if (field === 'endReason') return false;
    return field === 'unsafe' ? !isMarked(stored) && present !== 'no' : before[field] !== present;
  });
}

/** Undefined for a session that is too large. */
function textOf(value: AnySessionValue): string | undefined {
  try {
    return writeSession(value);
  } catch (thrown) {
    if (thrown instanceof SessionValueError) return undefined;
    throw thrown;
  }
}
