// The row of one session in the store: its wanted value, its stored value with the mark, and whether they differ.
// session-keeper.ts writes rows in groups. Source: ADR 143.

import { hash } from 'node:crypto';
import type { EndReason } from '../../../domain/errors/session-ends.ts';
import type { SessionOrigin, SessionRow } from '../../../domain/sessions/all-sessions.ts';
import type { McpSession } from '../../../domain/sessions/mcp-session.ts';
import {
  type AnySessionValue,
  SessionValueError,
  writeSession,
} from '../../../domain/sessions/session-value.ts';

/** The keeper, as a row uses it. */
export interface RowWriter {
  readonly counts: { dropped: number };
  /** Schedules a write of the row's changes: soon while a client waits for it (`isAwaited`), else later. */
  add(row: StoredRow): void;
  /** Resolves with true when `written` is, or with false when the write has failed or takes longer than a client waits. */
  waitForWrite(written: Promise<boolean>): Promise<boolean>;
  /** Lets any node claim the row with this key. */
  release(key: string): void;
}

interface SessionWrite {
  /** The text of a new row, or of a changed one (`update`). */
  readonly insert?: string;
  readonly update?: string;
  readonly isDeleted?: boolean;
  /** The value of the row after this write; undefined without a row. */
  readonly written: AnySessionValue | undefined;
}

/** The row of one session, and its changes that are not written yet. It ends with its session. */
export class StoredRow implements SessionRow {
  readonly #keeper: RowWriter;
  readonly #session: Pick<McpSession, 'id' | 'value' | 'close'>;
  /** The value that the store has; undefined without a row. */
  #stored: AnySessionValue | undefined;
  /** The value of the first attempt to insert the row; undefined when there is certainly no row. */
  #inserted: AnySessionValue | undefined;
  /** The state of the mark `unsafe`: `asked` when it is to be written, `done` when it is written or given up. */
  #mark: 'no' | 'asked' | 'done' = 'no';
  #marking: Promise<void> | undefined;
  #isOver = false;
  /** The value that was not stored because it was too large. */
  #skipped: AnySessionValue | undefined;
  #written: PromiseWithResolvers<boolean> | undefined;

  constructor(keeper: RowWriter, session: Pick<McpSession, 'id' | 'value' | 'close'>, origin: SessionOrigin) {
    this.#keeper = keeper;
    this.#session = session;
    if (origin === 'new') return;
    this.#stored = session.value;
    this.#inserted = session.value;
    if (isMarked(session.value)) this.#mark = 'done';
  }

  /** The key in the store. Computed for each write, not kept, since thousands of sessions are idle. */
  get key(): string {
    return rowKeyOf(this.#session.id);
  }

  /** True while a client waits for a write of this row. */
  get isAwaited(): boolean {
    return this.#written !== undefined;
  }

  get isStored(): boolean {
    return this.#stored !== undefined;
  }

  changed(): void {
    if (this.#isOver || !this.#isDifferent) return;
    this.#keeper.add(this);
  }

  save(): Promise<boolean> | undefined {
    if (!this.#isDifferent && this.#written === undefined) return undefined;
    this.#written ??= Promise.withResolvers();
    const { promise } = this.#written;
    this.#keeper.add(this);
    return this.#keeper.waitForWrite(promise);
  }

  get isUnmarked(): boolean {
    return this.#mark !== 'done' && !this.#isOver;
  }

  writeMark(): Promise<void> | undefined {
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
      this.#keeper.add(this);
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
    if (value !== undefined && this.#isDifferent) this.#keeper.add(this);
    else this.settle(value !== undefined || this.#isOver);
  }

  /** Ends the wait of clients for a write. `isWritten`: the row has the value, or is deleted with its session. */
  settle(isWritten: boolean): void {
    this.#written?.resolve(isWritten);
    this.#written = undefined;
  }

  takenOver(): void {
    this.#drop();
    void this.#session.close('takenOver');
  }

  /** Stops all writes, also those that wait: another life may hold a row with the same key. */
  #drop(): void {
    this.#isOver = true;
    this.#stored = undefined;
    this.#inserted = undefined;
    this.settle(false);
  }

  get #isDifferent(): boolean {
    if (this.#isOver) return this.#inserted !== undefined;
    const stored = this.#stored;
    if (stored === undefined) return this.#session.value !== this.#skipped;
    if (this.#mark !== 'no' && this.#session.value.kind === 'template' && !isMarked(stored)) return true;
    return isChanged(stored, this.#session.value);
  }
}

/** The key of a session's row: a hash, because the id is a credential. */
export function rowKeyOf(sessionId: string): string {
  return hash('sha256', sessionId);
}

/**
 * The value to store: without its end, and with the mark when `hasMark`. The same object when nothing
 * changes, to save memory.
 */
function writtenOf(value: AnySessionValue, hasMark: boolean): AnySessionValue {
  const needsMark = hasMark && value.kind === 'template' && value.unsafe !== 'yes';
  if (value.endReason === undefined && !needsMark) return value;
  const { endReason: _, ...present } = value;
  return present.kind === 'template' && needsMark ? { ...present, unsafe: 'yes' } : present;
}

function isMarked(value: AnySessionValue | undefined): boolean {
  return value?.kind === 'template' && value.unsafe !== 'no';
}

/**
 * Compares all but two fields: the end, which is not stored, and a mark that was taken back, since each call may set
 * it again.
 */
function isChanged(stored: AnySessionValue, value: AnySessionValue): boolean {
  const before: Readonly<Record<string, unknown>> = stored;
  return Object.entries(value).some(([field, present]) => {
    if (field === 'endReason') return false;
    return field === 'unsafe' ? !isMarked(stored) && present !== 'no' : before[field] !== present;
  });
}

/** The text of the value; undefined when it is too large. */
function textOf(value: AnySessionValue): string | undefined {
  try {
    return writeSession(value);
  } catch (thrown) {
    if (thrown instanceof SessionValueError) return undefined;
    throw thrown;
  }
}
