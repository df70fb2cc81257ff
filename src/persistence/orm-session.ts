// How every operation of the store reaches its database: in its turn, with a limit in time, again after a conflict, and with
// errors that say whether the database was there. It knows no table but the revision.

import { setTimeout as delay } from 'node:timers/promises';
import { raw } from '@mikro-orm/core';
import type { SqlEntityManager } from '@mikro-orm/sql';
import { type Delivered, databaseUnavailable, GatewayError, hasCode } from '../domain/errors.ts';
import type { Database } from './database.ts';
import { driverErrorOf, withoutValues } from './driver-error.ts';
import type { Tables } from './entities.ts';
import { fileIdentity } from './file-identity.ts';
import type { Orm } from './orm.ts';
import { SerialQueue } from './serial-queue.ts';
import { DamagedFileError } from './store-errors.ts';

/** The one row of the table `revision`. */
export const REVISION = 'registry';

/** The row of the table `settings` that a probe writes and deletes. */
const PROBE = 'probe';
/** About the largest row that is usual. */
const PROBE_BYTES = 64 * 1024;

/** Longest pause before a statement that met another one is tried again, in ms. */
const LONGEST_PAUSE_MS = 50;
/** Longest wait of close() for what was asked for before, in ms: a program that ends does not wait for a silent server. */
const CLOSE_MS = 2_000;

export interface OrmSessionDeps {
  readonly database: Database;
  readonly orm: Orm;
  /** Opens another one like `orm`. Absent for a database in memory, which would be an empty one afterwards. */
  readonly reconnect?: (() => Promise<Orm>) | undefined;
  /** Longest time of one operation, waiting for its turn included, in ms. */
  readonly timeoutMs: number;
  /** Path of a database that is a file. */
  readonly file?: string | undefined;
}

export type Work<T> = (em: SqlEntityManager, tables: Tables) => Promise<T>;

/** One thing asked of the session, from its turn to its end. */
interface Operation {
  startedAt: number | undefined;
  /** Nobody waits for it any more: it must not change anything from now on. */
  hasEnded: boolean;
  /** `unknown` once the database was told to keep a change. */
  delivered: Delivered;
}

export class OrmSession {
  readonly #deps: OrmSessionDeps;
  /** Of a file: whether it is still where it was opened. */
  readonly #isInPlace: (() => boolean) | undefined;
  /** Writers of one process wait here instead of at the row of the revision, where they would hold connections. */
  readonly #writers = new SerialQueue();
  /** SQLite has one connection, and a transaction is the connection's: nobody else may speak meanwhile. */
  readonly #everybody: SerialQueue | undefined;
  #orm: Orm | undefined;
  #connecting: Promise<Orm> | undefined;
  /** A transaction whose connection was lost never gives it back, and a pool that closes in order waits for all of them. */
  #hasLostConnection = false;
  /** The file could not take the last change: an answer to a question says little then. */
  #refusesChanges = false;
  #isClosed = false;

  constructor(deps: OrmSessionDeps) {
    this.#deps = deps;
    this.#isInPlace = deps.file === undefined ? undefined : fileIdentity(deps.file);
    this.#orm = deps.orm;
    this.#everybody = deps.database.isFile ? this.#writers : undefined;
  }

  get database(): Database {
    return this.#deps.database;
  }

  /** Runs statements that change nothing. */
  run<T>(work: Work<T>): Promise<T> {
    return this.#within(this.#everybody, work);
  }

  /**
   * Runs a transaction of which other nodes need no notice. One statement has one, too: only its commit can be what a server
   * carried out without its answer arriving, and there is none on a connection that was never opened.
   */
  write<T>(work: Work<T>): Promise<T> {
    return this.#changing((em, tables, operation) =>
      em.transactional(async (inner) => {
        const result = await work(inner, tables);
        // The commit is next. Until then nothing has happened, and without it nothing will.
        if (operation.hasEnded) throw new Error('nobody waits for this change any more');
        operation.delivered = 'unknown';
        return result;
      }),
    );
  }

  /**
   * Runs a transaction that changes the registry or the accounts. It counts the revision first: that row is the lock that
   * makes all writers on all nodes take turns. `revision` is the new number.
   */
  change<T>(work: (em: SqlEntityManager, tables: Tables, revision: number) => Promise<T>): Promise<T> {
    return this.write(async (em, tables) => {
      const next = raw('?? + 1', ['counter']);
      const changed = await em.nativeUpdate(tables.revision, { name: REVISION }, { counter: next });
      // SQL Server counts the row twice, once for giving back the counter.
      if (changed === 0) throw new Error('the table "revision" has lost its row');
      const row = await em.findOneOrFail(tables.revision, { name: REVISION }, { disableIdentityMap: true });
      return work(em, tables, row.counter);
    });
  }

  /** As `change`, undone (with its count of the revision) when the work says that it changed nothing. */
  async changeIf(work: Work<boolean>): Promise<boolean> {
    const unchanged = new Error('nothing was changed');
    try {
      return await this.change(async (em, tables) => {
        if (!(await work(em, tables))) throw unchanged;
        return true;
      });
    } catch (thrown) {
      if (thrown === unchanged) return false;
      throw thrown;
    }
  }

  /**
   * Shows that the database answers. A file that had no room for the last change still answers questions: it also has to
   * take a large row first, since a small one may fit into what the journal has already.
   */
  async probe(): Promise<void> {
    if (!this.#refusesChanges) {
      await this.run((em, { revision }) =>
        em.findOneOrFail(revision, { name: REVISION }, { disableIdentityMap: true }),
      );
      return;
    }
    const row = { name: PROBE, value: 'x'.repeat(PROBE_BYTES) };
    await this.write(async (em, { settings }) => {
      await em.nativeDelete(settings, { name: PROBE });
      await em.insert(settings, row);
    });
    await this.write((em, { settings }) => em.nativeDelete(settings, { name: PROBE }));
  }

  /** Writes that were asked for before are finished first, within 2 s. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const timer = new AbortController();
    try {
      const isClosed = this.#writers
        .take(async () => {
          if (this.#hasLostConnection) return false;
          await this.#orm?.close();
          return true;
        })
        // Of a server that is away: there is nobody to say goodbye to.
        .catch(() => false);
      const isInTime = delay(Math.min(this.#deps.timeoutMs, CLOSE_MS), false, { signal: timer.signal });
      if (!(await Promise.race([isClosed, isInTime]))) this.#orm?.destroy();
    } finally {
      timer.abort();
      this.#orm = undefined;
    }
  }

  async #changing<T>(work: OperationWork<T>): Promise<T> {
    try {
      const result = await this.#within(this.#writers, work);
      this.#refusesChanges = false;
      return result;
    } catch (thrown) {
      this.#refusesChanges = this.database.isFile && hasCode(thrown, 'DATABASE_UNAVAILABLE');
      throw thrown;
    }
  }

  async #within<T>(turns: SerialQueue | undefined, work: OperationWork<T>): Promise<T> {
    const { timeoutMs } = this.#deps;
    const timer = new AbortController();
    const operation: Operation = { startedAt: undefined, hasEnded: false, delivered: 'no' };
    const giveUp = delay(timeoutMs, undefined, { signal: timer.signal }).then((): never => {
      operation.hasEnded = true;
      this.#letGoOfSilence(operation);
      throw databaseUnavailable(new Error(`no answer within ${timeoutMs} ms`), operation.delivered);
    });
    const begin = (): Promise<T> => {
      // Its turn came too late: nobody waits for it any more.
      if (operation.hasEnded) return giveUp;
      operation.startedAt = performance.now();
      // Whoever hangs gives its turn back as well.
      return Promise.race([this.#attempts(work, operation), giveUp]);
    };
    try {
      return await Promise.race([turns === undefined ? begin() : turns.take(begin), giveUp]);
    } finally {
      timer.abort();
    }
  }

  /** Does the work, again after every conflict until it is to end. */
  async #attempts<T>(work: OperationWork<T>, operation: Operation): Promise<T> {
    for (;;) {
      try {
        // Before a new connection is opened: SQLite would create a file that is missing.
        if (this.#isInPlace?.() === false) throw databaseUnavailable(new Error(MOVED));
        const { orm, tables } = this.#orm ?? (await this.#connected());
        return await work(orm.em.fork(), tables, operation);
      } catch (thrown) {
        const facts = thrown instanceof GatewayError ? undefined : driverErrorOf(thrown);
        const trouble = facts === undefined ? undefined : this.#deps.database.trouble(facts);
        if (trouble === undefined) throw withoutValues(thrown, facts);
        if (trouble !== 'conflict') {
          if (this.#deps.database.isFile) this.#dropConnection();
          else this.#hasLostConnection = true;
          const cause = withoutValues(thrown, facts);
          const { file } = this.#deps;
          const isDamage = trouble === 'damaged' && file !== undefined;
          throw databaseUnavailable(
            isDamage ? new DamagedFileError(file, facts?.code ?? '', cause) : cause,
            operation.delivered,
          );
        }
        // What met another one was undone by the database.
        operation.delivered = 'no';
        if (!operation.hasEnded) await delay(Math.random() * LONGEST_PAUSE_MS);
        if (operation.hasEnded) throw databaseUnavailable(withoutValues(thrown, facts));
      }
    }
  }

  /**
   * A pool whose connections all wait for a silent server would stay full for ever. A server that answered somebody
   * meanwhile is slow or busy: others are at work on that pool. The one connection of a file has nobody else at work.
   */
  #letGoOfSilence({ startedAt }: Operation): void {
    const { database, timeoutMs } = this.#deps;
    if (startedAt === undefined) return;
    const quietSince = Math.max(startedAt, this.#orm?.lastHeardAt() ?? 0);
    if (!database.isFile && performance.now() - quietSince <= timeoutMs / 2) return;
    this.#dropConnection();
  }

  /**
   * The next operation opens a new connection. After SQLITE_FULL or SQLITE_IOERR the old one of a file cannot be used: SQLite has
   * rolled back by itself, the rollback of the driver fails, and every later statement would wait for the end of that transaction.
   */
  #dropConnection(): void {
    if (this.#deps.reconnect === undefined) return;
    this.#orm?.destroy();
    this.#orm = undefined;
  }

  #connected(): Promise<Orm> {
    const { reconnect } = this.#deps;
    if (this.#isClosed || reconnect === undefined) throw databaseUnavailable(new Error(CLOSED));
    this.#connecting ??= reconnect()
      .then((orm) => {
        if (this.#isClosed) {
          orm.destroy();
          throw databaseUnavailable(new Error(CLOSED));
        }
        this.#orm = orm;
        this.#hasLostConnection = false;
        return orm;
      })
      .finally(() => {
        this.#connecting = undefined;
      });
    return this.#connecting;
  }
}

type OperationWork<T> = (em: SqlEntityManager, tables: Tables, operation: Operation) => Promise<T>;

const CLOSED = 'the store is closed';
const MOVED = 'the database file was moved, deleted or replaced: put it back, or start the gateway again';
