// Opens the store of a URL. A driver is loaded only for a URL that needs it. Each failure becomes a
// StoreOpenError: one line for the operator.

import { access, constants, open, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { codeOf } from '../domain/errors/errors.ts';
import { shellWord } from '../domain/text.ts';
import { unlessAborted } from '../domain/time/clock.ts';
import { ownCommand } from '../domain/version.ts';
import type { Cipher } from './cipher.ts';
import { type ConnectOptions, type DatabaseAddress, failureOf, retryConflicts } from './database.ts';
import { type ParsedDatabaseUrl, parseDatabaseUrl } from './database-url.ts';
import { MemoryStore } from './memory/memory-store.ts';
import { createDatabase, explain } from './open-failures.ts';
import type { Orm } from './orm/connection/orm.ts';
import type { MigrationStatus, Store } from './store.ts';
import { StoreOpenError } from './store-errors.ts';
import { withTimeout } from './with-timeout.ts';

export { DamagedFileError, StoreOpenError } from './store-errors.ts';

export interface OpenStoreOptions {
  /** The base of the relative path of a SQLite file. */
  readonly cwd: string;
  /** The cipher. Without one the store refuses instances with secrets. */
  readonly cipher?: Cipher | undefined;
  /** `apply` creates and migrates the database; `require` refuses a missing or outdated one. */
  readonly migrations: 'apply' | 'require';
  /** The advice to an operator about a missing or outdated database that is required. Default: how to make or migrate one. */
  readonly advice?: string | undefined;
  /** The longest time of one operation, in ms. Default: 5 000. Throws DATABASE_UNAVAILABLE after it. */
  readonly statementTimeoutMs?: number | undefined;
  /** Ends the wait for the first answer, with its reason. Migrations that have begun are not ended. */
  readonly signal?: AbortSignal | undefined;
  /** Called with a line for the operator when the database was created, because its name may be a typing error. */
  readonly onNotice?: ((line: string) => void) | undefined;
  /** Called with a line for the operator when the file is probably an incomplete copy. */
  readonly onWarning?: ((line: string) => void) | undefined;
  /**
   * Called with the code of the error, such as SQLITE_FULL, when a change fails and the one before did not; whether space
   * is missing.
   */
  readonly onRefusal?: ((code: string, isOutOfSpace: boolean) => void) | undefined;
}

/** The longest wait for a connection, in ms. */
const CONNECT_MS = 5_000;
/** The longest wait for another process that migrates, and longest statement of a migration, in ms. */
const MIGRATION_WAIT_MS = 60_000;
const MIGRATION_STATEMENT_MS = 600_000;
/** The longest time of all migrations together, in ms. */
const MIGRATION_MS = MIGRATION_WAIT_MS + MIGRATION_STATEMENT_MS;
/** The longest wait for any other answer while a database is opened, in ms. */
const ANSWER_MS = 10_000;
const CONNECTIONS = 10;
/** The permission bits of the group and of others. */
const OPEN_TO_OTHERS = 0o066;

/**
 * Loads the hundreds of modules that `openStore` needs, in one turn of the event loop. Failures are left for
 * `openStore` to report.
 */
export async function loadStore(url: string, cwd: string): Promise<void> {
  const database = parseDatabaseUrl(url, cwd)?.database;
  if (database === undefined) return;
  const needed = [import('./orm/connection/orm.ts'), import('./orm/orm-store.ts'), database.driver()];
  await Promise.allSettled(needed);
}

/** Opens the store of the URL. Throws StoreOpenError, and leaves nothing open then. */
export async function openStore(url: string, options: OpenStoreOptions): Promise<Store> {
  const parsed = parseDatabaseUrl(url, options.cwd);
  if (parsed === undefined) return new MemoryStore();
  const timeoutMs = options.statementTimeoutMs ?? 5_000;
  const [{ ormStore }, { OrmOperations }] = await Promise.all([
    import('./orm/orm-store.ts'),
    import('./orm/connection/orm-operations.ts'),
  ]);
  const mayCreate = options.migrations === 'apply' || isInMemory(parsed);
  const isBare = await isBareFile(parsed.description.file);
  const { onNotice, onWarning, advice } = options;
  const creation: Creation = { mayCreate, isBare, onNotice, onWarning, advice };
  const orm = await connected(parsed, timeoutMs, creation, options.signal);
  try {
    await nextTurn();
    await upToDate(parsed, orm, creation, options.signal);
    await nextTurn();
  } catch (thrown) {
    orm.destroy();
    options.signal?.throwIfAborted();
    throw explain(parsed, thrown);
  }
  const reconnect = isInMemory(parsed)
    ? undefined
    : (signal: AbortSignal) => connect(parsed, timeoutMs, { signal });
  const { database, description } = parsed;
  const { file } = description;
  const operations = new OrmOperations({
    database,
    orm,
    reconnect,
    timeoutMs,
    file,
    onRefusal: options.onRefusal,
  });
  return ormStore(database.kind, operations, options.cipher, file);
}

/** The migrations of a database; creates and changes nothing. Throws StoreOpenError. */
export async function migrationStatus(
  url: string,
  { cwd }: { readonly cwd: string },
): Promise<MigrationStatus> {
  const parsed = parseDatabaseUrl(url, cwd);
  if (parsed === undefined) return { applied: [], pending: [], unknown: [] };
  const orm = await connected(parsed, CONNECT_MS, { mayCreate: false });
  try {
    const { readMigrationStatus } = await import('./orm/migrate.ts');
    return await withTimeout(readMigrationStatus(parsed.database, orm), ANSWER_MS);
  } catch (thrown) {
    throw explain(parsed, thrown);
  } finally {
    orm.destroy();
  }
}

interface Creation extends Pick<OpenStoreOptions, 'onNotice' | 'onWarning' | 'advice'> {
  readonly mayCreate: boolean;
  /** True for a SQLite file as isBareFile says. */
  readonly isBare?: boolean;
}

/** True for a SQLite file with contents and no journal beside it. To be asked before it is opened, which makes a journal. */
async function isBareFile(file: string | undefined): Promise<boolean> {
  if (file === undefined) return false;
  const [stats, journal] = await Promise.all(
    [file, `${file}-wal`].map((path) => stat(path).catch(() => undefined)),
  );
  return stats !== undefined && stats.size > 0 && journal === undefined;
}

async function connected(
  parsed: ParsedDatabaseUrl,
  timeoutMs: number,
  creation: Creation,
  signal?: AbortSignal,
): Promise<Orm> {
  await fileIsUsable(parsed, creation);
  signal?.throwIfAborted();
  try {
    return await unlessAborted(signal, connect(parsed, timeoutMs, { signal }));
  } catch (thrown) {
    signal?.throwIfAborted();
    throw explain(parsed, thrown);
  }
}

async function connect(
  { database, address }: ParsedDatabaseUrl,
  timeoutMs: number,
  more: Partial<ConnectOptions> = {},
): Promise<Orm> {
  const { connectOrm } = await import('./orm/connection/orm.ts');
  await nextTurn();
  // Shorter than the timeout of this process, so that the database reports the reason and keeps its connection.
  const statementTimeoutMs = Math.ceil(timeoutMs * 0.8);
  const options = {
    address,
    statementTimeoutMs,
    idleTransactionMs: Math.ceil(statementTimeoutMs * 0.75),
    connectTimeoutMs: CONNECT_MS,
    connections: CONNECTIONS,
    ...more,
  };
  return withTimeout(connectOrm(database, options), ANSWER_MS, (orm) => orm.destroy());
}

/** Creates a missing file and checks access: SQLite would make it readable for all users and raise unclear errors. */
async function fileIsUsable(
  { description }: ParsedDatabaseUrl,
  { mayCreate, onNotice, advice = `start the gateway once, or run "${ownCommand('db migrate')}"` }: Creation,
): Promise<void> {
  const { file } = description;
  if (file === undefined) return;
  const exists = await stat(file).catch(() => undefined);
  if (exists?.isDirectory()) throw new StoreOpenError(`the database ${file} is a folder, not a file`);
  try {
    if (exists === undefined && mayCreate && (await makeFile(file)))
      onNotice?.(`created the database "${file}"`);
    await access(file, constants.R_OK | constants.W_OK);
    // The journal is in the same folder.
    await access(dirname(file), constants.W_OK);
  } catch (cause) {
    const folder = await stat(dirname(file)).catch(() => undefined);
    if (folder === undefined)
      throw new StoreOpenError(`the folder of the database ${file} does not exist: create it first`, {
        cause,
      });
    if (exists === undefined && !mayCreate)
      throw new StoreOpenError(`there is no database ${file}: ${advice}`, { cause });
    throw new StoreOpenError(
      `the database ${file} cannot be written: this user needs to write the file and its folder`,
      { cause },
    );
  }
}

/** Creates an empty file that only this user can read. False when it exists. */
export async function makeFile(file: string): Promise<boolean> {
  try {
    await (await open(file, 'ax', 0o600)).close();
    return true;
  } catch (thrown) {
    if (codeOf(thrown) === 'EEXIST') return false;
    throw thrown;
  }
}

/** A warning when other users can read a SQLite file, with the command that prevents it. Windows has no such modes. */
export async function fileExposureOf(file: string): Promise<string | undefined> {
  if (process.platform === 'win32') return undefined;
  // SQLite creates the journal with the mode of the file, and does not change the mode of an existing one.
  const modes = [file, `${file}-wal`].map(async (path) => {
    const stats = await stat(path).catch(() => undefined);
    return stats !== undefined && (stats.mode & OPEN_TO_OTHERS) !== 0 ? [shellWord(path)] : [];
  });
  const paths = (await Promise.all(modes)).flat();
  if (paths.length === 0) return undefined;
  return `other users can read the database: run "chmod 600 ${paths.join(' ')}"`;
}

async function upToDate(
  parsed: ParsedDatabaseUrl,
  orm: Orm,
  creation: Creation,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { mayCreate, isBare, onNotice, onWarning } = creation;
  const { readMigrationStatus } = await import('./orm/migrate.ts');
  const { database, description } = parsed;
  // The last process that closes a SQLite file locks it for a checkpoint.
  const status = await retryConflicts(database, CONNECT_MS, () =>
    unlessAborted(signal, withTimeout(readMigrationStatus(database, orm), ANSWER_MS)),
  ).catch(async (thrown: unknown) => {
    if (!mayCreate || failureOf(database, thrown) !== 'no-database') throw thrown;
    const connectTo = (address: DatabaseAddress) => connect(parsed, CONNECT_MS, { address });
    if (!(await createDatabase(parsed, connectTo, onNotice))) throw thrown;
    return withTimeout(readMigrationStatus(database, orm), ANSWER_MS);
  });
  refuseUnknown(description.printable, status);
  if (isBare && mayCreate && status.applied.length === 0)
    onWarning?.(
      `the database ${description.printable} was not empty and had no tables: a copy of the file of a running gateway lacks what is ` +
        'in the file ending in -wal beside it; copy both, or stop the gateway first',
    );
  if (status.pending.length === 0) return;
  if (!mayCreate) {
    const state = status.applied.length === 0 ? 'has no tables yet' : 'is older than this program';
    const { advice = `run "${ownCommand('db migrate')}", or start the gateway once` } = creation;
    throw new StoreOpenError(`the database ${description.printable} ${state}: ${advice}`);
  }
  refuseUnknown(description.printable, await migrated(parsed, orm));
}

/**
 * Migrates the database on separate connections, because the statements of the others have a time limit; SQLite has
 * one connection and no limit.
 */
async function migrated(parsed: ParsedDatabaseUrl, orm: Orm): Promise<MigrationStatus> {
  const { migrate } = await import('./orm/migrate.ts');
  const { database } = parsed;
  if (database.isFile) return migrate(database, orm, MIGRATION_WAIT_MS);
  const migrating = await connect(parsed, CONNECT_MS, {
    statementTimeoutMs: MIGRATION_STATEMENT_MS,
    // The connection that holds the lock may be idle while another one migrates.
    idleTransactionMs: 2 * MIGRATION_MS,
  });
  try {
    return await withTimeout(migrate(database, migrating, MIGRATION_WAIT_MS), MIGRATION_MS);
  } finally {
    // Not closed: by now everything is committed or lost, and closing a pool that lost a connection may never end.
    migrating.destroy();
  }
}

function isInMemory({ database, description }: ParsedDatabaseUrl): boolean {
  return database.isFile === true && description.file === undefined;
}

/** True when the unknown migrations are older than those of this program: builds before a release replace them. */
export function isOfOlderBuild({ applied, pending, unknown }: MigrationStatus): boolean {
  const newest =
    [...applied, ...pending]
      .filter((name) => !unknown.includes(name))
      .toSorted()
      .at(-1) ?? '';
  return unknown.length > 0 && unknown.every((name) => name < newest);
}

function refuseUnknown(printable: string, status: MigrationStatus): void {
  const { unknown } = status;
  if (unknown.length === 0) return;
  if (isOfOlderBuild(status))
    throw new StoreOpenError(
      `the database ${printable} was made by an older build before the first release (${unknown.at(-1)} is unknown here): ` +
        'run that build and export its registry ("db export"), then move the database away',
    );
  throw new StoreOpenError(
    `the database ${printable} was changed by a newer version (${unknown.at(-1)} is unknown here): ` +
      'run that version, or restore a backup from before',
  );
}
