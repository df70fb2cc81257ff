// The connection of a store to its database: opened again after it was lost or dropped, until the store is closed.
// orm-operations.ts runs the operations on it.

import { databaseUnavailable } from '../../../domain/errors/gateway-errors.ts';
import { systemClock } from '../../../domain/time/clock.ts';
import type { Database } from '../../database.ts';
import { fileIdentity } from './file-synchronization.ts';
import type { Orm } from './orm.ts';

export interface OrmConnectionOptions {
  readonly database: Database;
  readonly orm: Orm;
  /** Opens another `orm`, until `signal` aborts. Absent for a database in memory, which would be empty afterwards. */
  readonly reconnect?: ((signal: AbortSignal) => Promise<Orm>) | undefined;
  /** The longest time of one operation, including its wait in the queue, in ms. */
  readonly timeoutMs: number;
  readonly file?: string | undefined;
}

/** The connection of a file, or the pool of connections to a server. */
export class OrmConnection {
  readonly #options: OrmConnectionOptions;
  /** True while the path names the file that was opened; undefined without a file. */
  readonly #isSameFile: (() => boolean) | undefined;
  #orm: Orm | undefined;
  #opening: Promise<Orm> | undefined;
  /** True after a lost connection, which is never returned to its pool: closing the pool would wait for it. */
  #isLost = false;
  /** The time of the end of the last operation that succeeded, by the monotonic clock, in ms. */
  #succeededAtMs = 0;
  #isClosed = false;
  /** Gives up the connection that is being opened. */
  readonly #closing = new AbortController();

  constructor(options: OrmConnectionOptions) {
    this.#options = options;
    this.#isSameFile = options.file === undefined ? undefined : fileIdentity(options.file);
    this.#orm = options.orm;
  }

  /** The connection that is in use; undefined when the next operation has to open one. */
  get current(): Orm | undefined {
    return this.#orm;
  }

  /** Throws DATABASE_UNAVAILABLE when the file is no longer at its path: SQLite would create a missing one. */
  requireFile(): void {
    if (this.#isSameFile?.() === false) throw databaseUnavailable(new Error(MOVED));
  }

  /** Opens a connection, and makes it the current one. Throws DATABASE_UNAVAILABLE once the store is closed. */
  open(): Promise<Orm> {
    const { reconnect } = this.#options;
    if (this.#isClosed || reconnect === undefined) throw databaseUnavailable(new Error(CLOSED));
    this.#opening ??= reconnect(this.#closing.signal)
      .then((orm) => {
        if (this.#isClosed) {
          orm.destroy();
          throw databaseUnavailable(new Error(CLOSED));
        }
        this.#orm = orm;
        this.#isLost = false;
        return orm;
      })
      .finally(() => {
        this.#opening = undefined;
      });
    return this.#opening;
  }

  /** Notes that an operation has succeeded. */
  succeeded(): void {
    this.#succeededAtMs = systemClock.now();
  }

  /** Notes that an operation has failed for another reason than a conflict. */
  failed(): void {
    if (this.#options.database.isFile) this.drop();
    else this.#isLost = true;
  }

  /**
   * Drops a pool whose connections all wait for a server that does not answer, which would stay full forever. A server that
   * answered another operation meanwhile is only slow or busy, and the pool stays. The connection of a file has no other user.
   * `startedAtMs`: of the operation without an answer; undefined if it does not wait for the database.
   */
  dropIfSilentSince(startedAtMs: number | undefined): void {
    const { database, timeoutMs } = this.#options;
    if (startedAtMs === undefined) return;
    const quietSinceMs = Math.max(startedAtMs, this.#succeededAtMs);
    if (!database.isFile && systemClock.now() - quietSinceMs <= timeoutMs / 2) return;
    this.drop();
  }

  /**
   * Drops the connection, so that the next operation opens a new one. After SQLITE_FULL or SQLITE_IOERR the old
   * connection is unusable: SQLite has rolled back, the rollback of the driver fails, and every later statement would
   * wait for the end of that transaction.
   */
  drop(): void {
    if (this.#options.reconnect === undefined) return;
    this.#orm?.destroy();
    this.#orm = undefined;
  }

  /** Gives up the connection that is being opened, and later ones. */
  abortOpening(reason: unknown): void {
    this.#closing.abort(databaseUnavailable(reason));
  }

  /** No further connection is opened from now on. Returns false when that was said before. */
  stopOpening(): boolean {
    const isFirst = !this.#isClosed;
    this.#isClosed = true;
    return isFirst;
  }

  /** Closes the connection after `finish`; a lost one is left to `destroy`. */
  async close(finish: () => Promise<void> | undefined): Promise<void> {
    if (this.#isLost) return;
    await finish();
    await this.#orm?.close();
    this.#orm = undefined;
  }

  /** Ends at once what `close` has not closed. */
  destroy(): void {
    this.#orm?.destroy();
    this.#orm = undefined;
    this.abortOpening(new Error(CLOSED));
  }
}

const CLOSED = 'the store is closed';
const MOVED = 'the database file was moved, deleted or replaced: put it back, or start the gateway again';
