// SQLite: a file, or memory. One connection per process; processes wait for each other's locks on the file.

import { closeSync, fdatasync, openSync, realpathSync } from 'node:fs';
import { promisify } from 'node:util';
import { LruMap } from '../../domain/memory/lru-map.ts';
import { type Database, type Execute, retryConflicts, type Statement, type Value } from '../database.ts';

/**
 * The longest wait inside SQLite for another process, in ms. It blocks the event loop, so it is short; to wait
 * longer, the statement is repeated.
 */
const BUSY_TIMEOUT_MS = 25;

const synchronizeData = promisify(fdatasync);

export const sqlite: Database = {
  kind: 'sqlite',
  label: 'SQLite',
  schemes: ['sqlite'],
  driverPackage: '@mikro-orm/sqlite',
  urlOptions: [],
  isFile: true,
  defaultPort: 0,
  driver: async () => (await import('@mikro-orm/sqlite')).SqliteDriver,
  options: () => ({ driverOptions: { timeout: BUSY_TIMEOUT_MS } }),
  prepare: async (execute, _pool, { connectTimeoutMs }) => {
    // The change to WAL needs exclusive access and fails at once without it: SQLite does not wait there.
    await retryConflicts(sqlite, connectTimeoutMs, () => execute('pragma journal_mode = wal'));
    // A commit does not wait for the disk: it would do so in a turn of the event loop. `synchronize` does before a
    // change is acknowledged.
    await execute('pragma synchronous = normal');
    await execute('pragma foreign_keys = on');
  },
  migrations: async () => (await import('../migrations/sqlite.ts')).migrations,
  lock: {
    scope: 'alone',
    take: async (execute: Execute, waitMs) => {
      await retryConflicts(sqlite, waitMs, () => execute('begin immediate'));
    },
  },
  statements: () => {
    const connections = new WeakMap<BetterSqlite, LruMap<Compiled>>();
    return (client, sql, values) => run(compiled(betterSqlite(client), sql, connections), values);
  },
  synchronize: async (file) => {
    // It is beside the file that a link names.
    const log = openSync(`${realpathSync(file)}-wal`, 'r+');
    try {
      await synchronizeData(log);
    } finally {
      closeSync(log);
    }
  },
  failure: ({ code, message }) => {
    if (/^SQLITE_(?:BUSY|LOCKED)/.test(code) || message.includes('database is locked')) return 'conflict';
    if (/^SQLITE_(?:CORRUPT|NOTADB)/.test(code)) return 'damaged';
    if (code === 'SQLITE_FULL') return 'full';
    return /^SQLITE_(?:CANTOPEN|IOERR|READONLY|PERM|AUTH|NOMEM)/.test(code) ? 'unavailable' : undefined;
  },
};

interface BetterSqlite {
  readonly open: boolean;
  prepare(sql: string): Compiled;
}

interface Compiled {
  /** True for a statement that gives rows. */
  readonly reader: boolean;
  all(values: readonly Value[]): readonly Readonly<Record<string, unknown>>[];
  run(values: readonly Value[]): { readonly changes: number };
}

function run(statement: Compiled, values: readonly Value[]): ReturnType<Statement> {
  if (statement.reader) return { rows: statement.all(values), changes: 0 };
  return { rows: [], changes: statement.run(values).changes };
}

/** The most statements that are kept for each connection; the oldest makes room. */
const MAX_KEPT = 100;

function compiled(
  client: BetterSqlite,
  sql: string,
  connections: WeakMap<BetterSqlite, LruMap<Compiled>>,
): Compiled {
  const kept = connections.get(client) ?? new LruMap<Compiled>(MAX_KEPT);
  connections.set(client, kept);
  const known = kept.get(sql) ?? client.prepare(sql);
  kept.set(sql, known);
  return known;
}

function betterSqlite(client: unknown): BetterSqlite {
  if (!isBetterSqlite(client)) throw new TypeError('the driver of SQLite is not better-sqlite3');
  return client;
}

function isBetterSqlite(client: unknown): client is BetterSqlite {
  return typeof client === 'object' && client !== null && 'prepare' in client;
}
