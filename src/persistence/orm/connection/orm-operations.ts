// Runs the operations of the store on its connection (orm-connection.ts): in order, with a timeout, repeated after a conflict,
// with errors that tell whether the database was available. Of tables it uses the revision, and `settings` for a probe.

import { randomBytes } from 'node:crypto';
import {
  type EntitySchema,
  type RequiredEntityData,
  raw,
  UniqueConstraintViolationException,
} from '@mikro-orm/core';
import type { SqlEntityManager } from '@mikro-orm/sql';
import { codeOf, type Delivered, GatewayError } from '../../../domain/errors/errors.ts';
import { databaseFull, databaseUnavailable } from '../../../domain/errors/gateway-errors.ts';
import { settlesWithin, sleep, systemClock } from '../../../domain/time/clock.ts';
import { SerialQueue } from '../../../domain/time/serial-queue.ts';
import { TaskScheduler } from '../../../domain/time/task-scheduler.ts';
import type { Database, Statement } from '../../database.ts';
import { DamagedFileError, driverErrorOf, FullError, withoutValues } from '../../store-errors.ts';
import type { Tables } from '../entities.ts';
import { FileSynchronization } from './file-synchronization.ts';
import type { Orm } from './orm.ts';
import { OrmConnection, type OrmConnectionOptions } from './orm-connection.ts';

export const REVISION = 'registry';

/** The row of the table `settings` that a probe writes and deletes. */
const PROBE = 'probe';
/** The size of that row in bytes, which are 64 kB as text: about the size of a large row. */
const PROBE_BYTES = 48 * 1024;

/** The longest pause before a statement is repeated after a conflict, in ms. */
const MAX_PAUSE_MS = 50;
/**
 * The delay in ms that shows that the process of an alarm stood still: the answers of that time are read within the
 * same time.
 */
const STOOD_STILL_MS = 1_000;
/** The longest wait of close() for earlier operations, in ms: a server that does not answer must not delay the end. */
const CLOSE_MS = 2_000;

interface OrmOperationsOptions extends OrmConnectionOptions {
  readonly onRefusal?: ((code: string, isOutOfSpace: boolean) => void) | undefined;
}

export type Work<T> = (em: SqlEntityManager, tables: Tables) => Promise<T>;
type ChangeWork<T> = (em: SqlEntityManager, tables: Tables, revision: number) => Promise<T>;

interface Operation {
  startedAt: number | undefined;
  /** True when the caller already got an error: from now on the operation must not change anything. */
  hasEnded: boolean;
  /** Whether the operation reached the database: `unknown` once a commit was sent. */
  delivered: Delivered;
}

/** The operations of a store on its database, from the first one to `close`. */
export class OrmOperations {
  readonly #options: OrmOperationsOptions;
  readonly #connection: OrmConnection;
  /** The queue of the writers of this process: while they wait for the row of the revision, they would hold connections. */
  readonly #writers = new SerialQueue();
  /** The turns of operations on a file, whose driver answers at once: without them the event loop would not turn in between. */
  readonly #turns: TaskScheduler | undefined;
  /**
   * True when the last change failed, perhaps for lack of space, or because the server is read-only now: an answer to
   * a query does not prove that changes succeed again.
   */
  #refusesChanges = false;
  /** The time by which all operations have to end, by the monotonic clock. */
  #endsAtMs = Number.POSITIVE_INFINITY;
  /** The timers of the operations that have not ended. */
  readonly #timers = new Set<AbortController>();
  /** The synchronization of a file, after which its changes are acknowledged; undefined for a server. */
  readonly #synchronization: FileSynchronization | undefined;

  constructor(options: OrmOperationsOptions) {
    this.#options = options;
    this.statement = options.database.statements?.();
    this.#connection = new OrmConnection(options);
    if (options.database.isFile) this.#turns = new TaskScheduler();
    const { file, database } = options;
    // Nothing behind a gap in the journal can be recovered. Closing the file stores in the database what the
    // journal has in memory.
    if (file !== undefined)
      this.#synchronization = new FileSynchronization(
        async () => database.synchronize?.(file),
        () => this.#connection.drop(),
      );
  }

  /** See Database.statements. */
  readonly statement: Statement | undefined;

  get database(): Database {
    return this.#options.database;
  }

  run<T>(work: Work<T>): Promise<T> {
    // A file has one connection: no other statement may run during a transaction.
    return this.#within(this.database.isFile ? this.#writers : undefined, work);
  }

  /**
   * Runs a transaction that other nodes need not notice. A single statement also gets a transaction, so that
   * the outcome is unknown only when the answer to the commit is lost; see `writeAtOnce`.
   */
  write<T>(work: Work<T>): Promise<T> {
    return this.#changing(inTransaction(work));
  }

  /**
   * Runs a single statement without a transaction around it: no row stays locked when this node is frozen, or cut
   * off, before the commit. Without an answer the outcome is unknown. On a server it does not wait for the other
   * writers: a heartbeat may not be late because of them.
   */
  writeAtOnce<T>(work: Work<T>): Promise<T> {
    return this.#changing(atOnce(work), { isQueued: this.database.isFile === true });
  }

  /**
   * Runs a transaction like `writeWithoutSync`. On a server it does not wait for the other writers, as one of them
   * may wait for the row of the revision, which a frozen node holds. Only for callers that send one operation after
   * the other: each one that runs has a connection.
   */
  writeUnqueued<T>(work: Work<T>): Promise<T> {
    if (this.database.isFile) return this.writeWithoutSync(work);
    return this.#changing(inTransaction(work), { isQueued: false });
  }

  /** Inserts rows in their order: one by one where the database takes a single row in each statement. */
  async insertRows<R extends object>(
    em: SqlEntityManager,
    entity: EntitySchema<R>,
    rows: readonly RequiredEntityData<R>[],
  ): Promise<void> {
    if (this.database.insertsSingleRows) for (const row of rows) await em.insert(entity, row);
    else if (rows.length > 0) await em.insertMany(entity, [...rows]);
  }

  /**
   * Runs a transaction like `write`, but on a file it does not wait for the disk. Transactions survive the end of
   * this process; a power failure loses those of the last second, and of the time that the disk needs. `statements`:
   * each one of the work may happen without the others; on a file it has then no transaction, which costs as much as a
   * statement.
   */
  async writeWithoutSync<T>(work: Work<T>, unit: 'transaction' | 'statements' = 'transaction'): Promise<T> {
    if (!this.database.isFile) return this.write(work);
    const operation = unit === 'transaction' ? inTransaction(work) : atOnce(work);
    const result = await this.#changing(operation, { withoutSync: true });
    this.#synchronization?.soon();
    return result;
  }

  /**
   * Runs a transaction that changes the registry or the accounts. It first increments the revision, whose row
   * is the lock of the writers of all nodes. `revision` is the new number: higher by `count`, the number of changes.
   */
  change<T>(work: ChangeWork<T>, count = 1): Promise<T> {
    return this.write(async (em, tables) => {
      const next = raw('?? + ?', ['counter', count]);
      const changed = await em.nativeUpdate(tables.revision, { name: REVISION }, { counter: next });
      // SQL Server also counts the row that returns the counter.
      if (changed === 0) throw new Error('the table "revision" has lost its row');
      const row = await em.findOneOrFail(tables.revision, { name: REVISION });
      return work(em, tables, row.counter);
    });
  }

  /**
   * Runs a change like `change`, but rolls back, including the revision, when the work returns false because it
   * changed nothing. Resolves with the new revision, undefined when nothing was changed.
   */
  async changeIf(work: ChangeWork<boolean>, count = 1): Promise<number | undefined> {
    const unchanged = new Error('nothing was changed');
    try {
      return await this.change(async (em, tables, revision) => {
        if (!(await work(em, tables, revision))) throw unchanged;
        return revision;
      }, count);
    } catch (thrown) {
      if (thrown === unchanged) return undefined;
      throw thrown;
    }
  }

  /**
   * Resolves when the database answers. A database that had no space for the last change still answers queries,
   * so a large row is written: a small one may fit into the present pages. Random, because PostgreSQL compresses it.
   */
  async probe(): Promise<void> {
    if (!this.#refusesChanges) {
      await this.run((em, { revision }) => em.findOneOrFail(revision, { name: REVISION }));
      return;
    }
    const row = { name: PROBE, value: randomBytes(PROBE_BYTES).toString('base64url') };
    await this.write(async (em, { settings }) => {
      await em.nativeDelete(settings, { name: PROBE });
      await em.insert(settings, row).catch((thrown: unknown) => {
        // Another node inserted it first, which proves the same.
        if (!(thrown instanceof UniqueConstraintViolationException)) throw thrown;
      });
    });
    await this.write((em, { settings }) => em.nativeDelete(settings, { name: PROBE }));
  }

  /** The time of the server: see Store. */
  async serverTimeMs(): Promise<number | undefined> {
    const { timeQuery } = this.database;
    if (timeQuery === undefined) return undefined;
    const [row = {}] = await this.run((em) => em.getConnection().execute<object[]>(timeQuery));
    return Number(Object.values(row)[0]);
  }

  /** Gives all operations so much time together, also those under way: a stop does not wait for each of them. */
  finishWithin(withinMs: number): void {
    this.#endsAtMs = systemClock.now() + withinMs;
    systemClock.background.alarm(withinMs, () => {
      for (const timer of this.#timers) timer.abort(OVERDUE);
      this.#connection.abortOpening(OVERDUE);
    });
  }

  /** Closes the connections. Earlier writes are finished first, within 2 s, and the time of all operations. */
  async close(): Promise<void> {
    if (!this.#connection.stopOpening()) return;
    // Closing the file synchronizes it, unless another process has it open.
    const synchronized = () => this.#synchronization?.now().catch(() => undefined);
    const closing = this.#writers.take(() => this.#connection.close(synchronized));
    const leftMs = Math.max(0, this.#endsAtMs - systemClock.now());
    await settlesWithin(closing, Math.min(this.#options.timeoutMs, CLOSE_MS, leftMs), systemClock);
    this.#connection.destroy();
  }

  /** Runs a change. `isQueued`: after other writers. `withoutSync`: it does not wait for the disk. */
  async #changing<T>(
    work: OperationWork<T>,
    {
      isQueued = true,
      withoutSync = false,
    }: { readonly isQueued?: boolean; readonly withoutSync?: boolean } = {},
  ): Promise<T> {
    const synchronization = withoutSync ? undefined : this.#synchronization;
    const finish = synchronization && (() => acknowledgeable(synchronization));
    try {
      const result = await this.#within(isQueued ? this.#writers : undefined, work, finish);
      this.#refusesChanges = false;
      return result;
    } catch (thrown) {
      if (!(thrown instanceof GatewayError) || thrown.code !== 'DATABASE_UNAVAILABLE') throw thrown;
      const { cause } = thrown.facts;
      const code = driverErrorOf(cause)?.code;
      if (!this.#refusesChanges && code) this.#options.onRefusal?.(code, cause instanceof FullError);
      this.#refusesChanges = true;
      throw thrown;
    }
  }

  /** Runs an operation within its time. `finish`: the part after the work, no longer in the queue. */
  async #within<T>(
    queue: SerialQueue | undefined,
    work: OperationWork<T>,
    finish?: () => Promise<void>,
  ): Promise<T> {
    const timeoutMs = Math.min(this.#options.timeoutMs, Math.max(0, this.#endsAtMs - systemClock.now()));
    const timer = new AbortController();
    this.#timers.add(timer);
    const operation: Operation = { startedAt: undefined, hasEnded: false, delivered: 'no' };
    const giveUp = timeOf(timeoutMs, timer.signal).then((): never => {
      operation.hasEnded = true;
      this.#connection.dropIfSilentSince(operation.startedAt);
      throw databaseUnavailable(new Error(`no answer within ${timeoutMs} ms`), operation.delivered);
    });
    const start = (): Promise<T> => {
      operation.startedAt = systemClock.now();
      // An operation without an answer must also release the queue.
      return Promise.race([this.#attempts(work, operation), giveUp]);
    };
    const begin = (): Promise<T> => this.#turns?.turn()?.then(start) ?? start();
    try {
      const working = queue === undefined ? begin() : queue.take(begin);
      const finished =
        finish &&
        working.then(() => {
          operation.startedAt = undefined; // no longer one that the connection keeps waiting
          return finish();
        });
      return await Promise.race([finished?.then(() => working) ?? working, giveUp]);
    } finally {
      this.#timers.delete(timer);
      timer.abort(ENDED);
    }
  }

  /** Does the work, and repeats it after each conflict until its time is over. */
  async #attempts<T>(work: OperationWork<T>, operation: Operation): Promise<T> {
    for (;;) {
      let used: Orm | undefined;
      try {
        this.#connection.requireFile();
        used = this.#connection.current ?? (await this.#connection.open());
        // Its caller got an error while it waited, and the next operation uses the connection.
        if (operation.hasEnded) throw databaseUnavailable(new Error('too late'));
        const result = await work(used.orm.em.fork(), used.tables, operation);
        this.#connection.succeeded();
        return result;
      } catch (thrown) {
        const driverError = thrown instanceof GatewayError ? undefined : driverErrorOf(thrown);
        // Another operation dropped its pool: then libraries throw any error, such as a TypeError.
        if (driverError !== undefined && used !== undefined && used !== this.#connection.current)
          throw databaseUnavailable(new Error(DROPPED), operation.delivered);
        const failure = driverError && this.database.failure(driverError);
        if (failure === undefined) throw withoutValues(thrown, driverError);
        if (failure !== 'conflict') {
          this.#connection.failed();
          const cause = withoutValues(thrown, driverError);
          const { file } = this.#options;
          if (failure === 'full')
            throw databaseFull(new FullError(codeOf(cause) ?? 'unknown', cause), operation.delivered);
          const isDamage = failure === 'damaged' && file !== undefined;
          throw databaseUnavailable(
            isDamage ? new DamagedFileError(file, cause) : cause,
            operation.delivered,
          );
        }
        // The database rolled back the conflicting transaction.
        operation.delivered = 'no';
        await sleep(systemClock, Math.random() * MAX_PAUSE_MS);
      }
    }
  }
}

/** Resolves when a committed change may be acknowledged. Other operations use the connection meanwhile. */
async function acknowledgeable(synchronization: FileSynchronization): Promise<void> {
  try {
    await synchronization.now();
  } catch (thrown) {
    throw databaseUnavailable(thrown, 'unknown');
  }
}

function inTransaction<T>(work: Work<T>): OperationWork<T> {
  return (em, tables, operation) =>
    em.transactional(async (inner) => {
      const result = await work(inner, tables);
      // The commit follows: nothing is changed before it.
      if (operation.hasEnded) throw new Error('the change timed out');
      operation.delivered = 'unknown';
      return result;
    });
}

function atOnce<T>(work: Work<T>): OperationWork<T> {
  return (em, tables, operation) => {
    operation.delivered = 'unknown';
    return work(em, tables);
  };
}

/** Resolves when the time of an operation is over. Alarms that are due ring before answers are read. */
async function timeOf(timeoutMs: number, signal: AbortSignal): Promise<void> {
  const untilMs = systemClock.now() + timeoutMs;
  try {
    await sleep(systemClock, timeoutMs, signal);
  } catch (thrown) {
    if (thrown === OVERDUE) return;
    throw thrown;
  }
  if (systemClock.now() - untilMs > STOOD_STILL_MS) await sleep(systemClock, STOOD_STILL_MS, signal);
}

type OperationWork<T> = (em: SqlEntityManager, tables: Tables, operation: Operation) => Promise<T>;

/** The reason of aborted waits: a DOMException with its stack would cost each operation as much as a query on a file. */
const ENDED = new Error('the operation has ended');
const OVERDUE = new Error('all operations have to end');
const DROPPED = 'its connections were closed';
