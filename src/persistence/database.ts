// The interface of one kind of database: its URL, its driver, its lock and the meaning of its errors.
// databases/ implements it; open-store.ts, orm.ts and migrate.ts use it.

import type { Options } from '@mikro-orm/sql';
import { sleep, systemClock } from '../domain/time/clock.ts';
import type { Sockets } from './orm/connection/mikro-orm-patches.ts';
import { type DriverError, driverErrorOf, urlRefused } from './store-errors.ts';

export type DatabaseKind = 'sqlite' | 'postgresql' | 'mysql' | 'mssql' | 'oracle';

export interface DatabaseAddress {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
  /** The name of the database; the service, for Oracle; the file or `:memory:`, for SQLite. */
  readonly name: string;
  readonly options: ReadonlyMap<string, string>;
}

export type DatabaseFailure =
  /** No connection, a lost connection, too many connections, a shutdown, or a timeout. */
  | 'unavailable'
  /** The disk, or the quota of the user, has no space left: queries still succeed. */
  | 'full'
  | 'credentials'
  | 'no-database'
  | 'damaged'
  /** A conflict with another process or transaction: the statement may succeed when repeated. */
  | 'conflict';

export interface ConnectOptions {
  readonly address: DatabaseAddress;
  /** The longest time of one statement and of one wait for a lock, in ms. */
  readonly statementTimeoutMs: number;
  /**
   * The longest time for which a transaction may wait for its node between two statements, in ms: a node that stands
   * still keeps the locks of its transaction for so long. A statement of another node waits longer for them, and then
   * succeeds.
   */
  readonly idleTransactionMs: number;
  /** The longest time to open a connection, in ms. */
  readonly connectTimeoutMs: number;
  readonly connections: number;
  /** Ends the opening of the first connection. */
  readonly signal?: AbortSignal | undefined;
  readonly sockets: Sockets;
}

/** Runs plain SQL and resolves with its rows. */
export type Execute = (sql: string) => Promise<readonly Readonly<Record<string, unknown>>[]>;

/** The statements of each migration by its recorded name, in the order in which they are applied. */
export type Migrations = Readonly<Record<string, readonly string[]>>;

export interface Database {
  readonly kind: DatabaseKind;
  readonly label: string;
  /** The schemes of its URLs, without `:`. */
  readonly schemes: readonly string[];
  readonly driverPackage: string;
  readonly urlOptions: readonly string[];
  /** True for a file or memory: one connection and no server. */
  readonly isFile?: boolean;
  /** The port of a URL without one; not used for a file. */
  readonly defaultPort: number;
  /** True when a statement can insert only one row. */
  readonly insertsSingleRows?: true;
  driver(): Promise<NonNullable<Options['driver']>>;
  /**
   * The correction of a text literal: see correctLiterals. Absent where MikroORM writes all literals as the database
   * reads them.
   */
  readonly correctLiteral?: (literal: string) => string;
  /**
   * The options of MikroORM in addition to address and pool, or instead of them. Throws StoreOpenError for an option
   * with an invalid value.
   */
  options(connect: ConnectOptions): Partial<Options>;
  /** Prepares a new pool; called once on each. `pool`: the pool of the driver. */
  prepare?(execute: Execute, pool: unknown, connect: ConnectOptions): Promise<void>;
  migrations(): Promise<Migrations>;
  readonly lock: MigrationLock;
  /** A query for the time of the server, in ms since 1970. Absent for a file. */
  readonly timeQuery?: string;
  /** The way to create the database itself; absent where only an administrator can. */
  readonly creation?: { readonly via: string; readonly sql: (quotedName: string) => string };
  /**
   * A function that runs statements with parameters by the driver's own client, on the connection of the open
   * transaction, and keeps them compiled: MikroORM writes values into the text, which takes twice the time for a
   * long one, and has to be compiled each time. Absent for servers.
   */
  statements?(): Statement;
  /**
   * Puts what was committed to the file on the disk, on another thread: a commit that waits for the disk would
   * block the event loop. Absent for servers, which answer a commit when that is done.
   */
  synchronize?(file: string): Promise<void>;
  /** The kind of a failure; undefined when the error concerns the statement itself. */
  failure(error: DriverError): DatabaseFailure | undefined;
}

export type Value = string | number | null;
export type Statement = (
  client: unknown,
  sql: string,
  values: readonly Value[],
) => { readonly rows: readonly Readonly<Record<string, unknown>>[]; readonly changes: number };

/** The lock that lets only one process migrate at a time. */
interface MigrationLock {
  /**
   * `around`: the migrations run in the transaction that holds the lock, and roll back with it. `beside`:
   * definitions of tables end a transaction, so they run on other connections. `alone`: there is one
   * connection; `take` begins a transaction on it that the runner ends.
   */
  readonly scope: 'around' | 'beside' | 'alone';
  /** Takes the lock or fails after `waitMs`; `database` distinguishes the locks of one server. */
  take(execute: Execute, waitMs: number, database: string): Promise<void>;
  /** Releases the lock. Absent where the end of the transaction releases it. */
  release?(execute: Execute, database: string): Promise<void>;
}

/**
 * The option `name` of a URL as a boolean; `standard` when it is absent. Throws StoreOpenError for any other
 * value: a misspelt "yes" must not mean "no encryption".
 */
export function booleanOption(
  options: ReadonlyMap<string, string>,
  name: string,
  standard: boolean,
): boolean {
  const value = options.get(name);
  if (value === undefined) return standard;
  if (/^(?:true|yes|1)$/i.test(value)) return true;
  if (/^(?:false|no|0)$/i.test(value)) return false;
  throw urlRefused(`${name} must be true or false`);
}

/** The kind of failure that a thrown value means; undefined also for an error that no driver raised. */
export function failureOf({ failure }: Database, thrown: unknown): DatabaseFailure | undefined {
  const error = driverErrorOf(thrown);
  return error && failure(error);
}

/** Repeats the work, for `withinMs`, while it conflicts with another process or transaction. */
export async function retryConflicts<T>(
  database: Database,
  withinMs: number,
  work: () => Promise<T>,
): Promise<T> {
  const deadline = systemClock.now() + withinMs;
  for (;;) {
    try {
      return await work();
    } catch (thrown) {
      if (failureOf(database, thrown) !== 'conflict' || systemClock.now() >= deadline) throw thrown;
      await sleep(systemClock, TRY_AGAIN_MS * (1 + Math.random()));
    }
  }
}

const TRY_AGAIN_MS = 10;
