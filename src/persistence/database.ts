// What one kind of database is to the store: how its URL reads, which driver speaks to it, how it locks and how it fails.
// The kinds are databases/; open.ts, orm.ts and migrate.ts use them.

import type { Options } from '@mikro-orm/sql';
import type { Sockets } from './sockets.ts';

export type DatabaseKind = 'sqlite' | 'postgresql' | 'mysql' | 'mssql' | 'oracle';

/** What an URL says. */
export interface DatabaseAddress {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
  /** Name of the database; the service, for Oracle; the file or `:memory:`, for SQLite. */
  readonly name: string;
  /** Query options of the URL, checked against `urlOptions`. */
  readonly options: ReadonlyMap<string, string>;
}

/** Why a database did not do what was asked, as far as its error says. */
export type Trouble =
  /** No connection, a lost one, too many, shutting down, or too slow. */
  | 'away'
  | 'credentials'
  | 'no-database'
  /** A file whose contents cannot be read. */
  | 'damaged'
  /** Somebody else was at it: the same again may work. */
  | 'conflict';

/** The facts of an error of any driver. */
export interface DriverError {
  /** `ECONNREFUSED`, an SQLSTATE, `SQLITE_BUSY`; '' without. */
  readonly code: string;
  /** Number of the error; 0 without. */
  readonly number: number;
  /** True when the driver says that the connection ended with it, or was not opened. */
  readonly isFatal: boolean;
  readonly message: string;
}

export interface ConnectOptions {
  readonly address: DatabaseAddress;
  /** Longest time of one statement and of one wait for a lock, in ms. */
  readonly statementTimeoutMs: number;
  /** Longest time to open a connection, in ms. */
  readonly connectTimeoutMs: number;
  /** Connections at the same time. */
  readonly connections: number;
  /** Is told of every socket. */
  readonly sockets: Sockets;
}

/** Runs plain SQL and resolves with its rows. */
export type Execute = (sql: string) => Promise<readonly Readonly<Record<string, unknown>>[]>;

/** One kind of database. */
export interface Database {
  readonly kind: DatabaseKind;
  /** For people. */
  readonly label: string;
  /** Without `:`. */
  readonly schemes: readonly string[];
  /** The npm package with its driver, for the message when it is missing. */
  readonly driverPackage: string;
  /** Query options of its URLs that mean something; others are refused. */
  readonly urlOptions: readonly string[];
  /** True: a file, or memory, with one connection and no server. */
  readonly isFile: boolean;
  /** Port when the URL has none; of no meaning for a file. */
  readonly defaultPort: number;
  /** True when one insert may hold several rows. */
  readonly insertsRows: boolean;
  /** Loads the driver; the result goes to MikroORM. */
  driver(): Promise<NonNullable<Options['driver']>>;
  /** Everything else MikroORM needs. Throws UrlError for an option whose value means nothing. */
  options(connect: ConnectOptions): Partial<Options>;
  /** Runs once on every pool that has just been made; `pool` is the driver's own. */
  prepare?(execute: Execute, pool: unknown, connect: ConnectOptions): Promise<void>;
  readonly lock: MigrationLock;
  /** How to make the database itself; absent where only its administrator can. */
  readonly creation?: { readonly via: string; readonly sql: (quotedName: string) => string };
  /** Selects `seconds` since 1970 by the clock of its machine. Absent for a file, whose clock is ours. */
  readonly clockSql?: string;
  /** Reads all there is of a file; throws an error of the driver that is the trouble `damaged`. Absent for servers. */
  check?(execute: Execute): Promise<void>;
  /** Undefined when the database answered and meant the statement. */
  trouble(error: DriverError): Trouble | undefined;
}

/** How one process keeps the others from migrating at the same time. */
export interface MigrationLock {
  /**
   * `around`: the migrations run in the transaction that holds the lock and are undone with it.
   * `beside`: definitions of tables end a transaction, so they run on other connections meanwhile.
   * `alone`: there is one connection; `take` begins a transaction on it that the runner ends.
   */
  readonly scope: 'around' | 'beside' | 'alone';
  /** Takes the lock or fails after `waitMs`; `database` tells the locks of one server apart. */
  take(execute: Execute, waitMs: number, database: string): Promise<void>;
  /** Absent where the end of the transaction releases it. */
  release?(execute: Execute, database: string): Promise<void>;
}
