// MySQL 8 and MariaDB 10.5 and later. Definitions of tables end a transaction, so the lock is outside of it.

import type { Database } from '../database.ts';
import { runOn } from '../orm/connection/mikro-orm-patches.ts';
import { isNetworkError, urlRefused } from '../store-errors.ts';

export const mysql: Database = {
  kind: 'mysql',
  label: 'MySQL',
  schemes: ['mysql', 'mariadb'],
  driverPackage: '@mikro-orm/mysql',
  urlOptions: ['ssl', 'socket', 'charset'],
  defaultPort: 3306,
  driver: async () => (await import('@mikro-orm/mysql')).MySqlDriver,
  options: ({ address, statementTimeoutMs, idleTransactionMs, connectTimeoutMs }) => {
    const { options } = address;
    const socketPath = options.get('socket');
    // URLs of SQLAlchemy often have it.
    if ((options.get('charset') ?? 'utf8mb4') !== 'utf8mb4')
      throw urlRefused('charset must be utf8mb4: no other one holds every text');
    return {
      charset: 'utf8mb4',
      // Ids are case-sensitive, and audit ids are sorted by code points.
      collate: 'utf8mb4_bin',
      driverOptions: {
        connectTimeout: connectTimeoutMs,
        enableKeepAlive: true,
        ...(socketPath === undefined ? {} : { socketPath }),
        ...sslOf(options.get('ssl')),
      },
      onCreateConnection: async (connection) => {
        const seconds = Math.max(1, Math.ceil(statementTimeoutMs / 1000));
        const idleSeconds = Math.max(1, Math.floor(idleTransactionMs / 1000));
        // MikroORM escapes values in statements with backslashes: a server with NO_BACKSLASH_ESCAPES would read
        // them as SQL. Only MariaDB reads the part between /*M! and */, only MySQL the one between /*!80000 and
        // */: it has no bound for idle transactions, but one for idle connections, and the pool keeps none for so
        // long.
        await runOn(
          connection,
          `set session sql_mode = 'STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION', ` +
            `time_zone = '+00:00', innodb_lock_wait_timeout = ${seconds}, lock_wait_timeout = ${seconds} ` +
            `/*M!100300 , max_statement_time = ${seconds}, idle_transaction_timeout = ${idleSeconds} */ ` +
            `/*!80000 , wait_timeout = ${seconds * 4} */`,
        );
        await runOn(connection, 'set session transaction isolation level read committed');
      },
    };
  },
  prepare: async (_execute, pool, { sockets }) => sockets.watch(pool, 'connection'),
  migrations: async () => (await import('../migrations/mysql.ts')).migrations,
  timeQuery: `select timestampdiff(microsecond, '1970-01-01', utc_timestamp(3)) / 1000 as ms`,
  lock: {
    scope: 'beside',
    take: async (execute, waitMs, database) => {
      const [row] = await execute(
        `select get_lock(${lockName(database)}, ${Math.ceil(waitMs / 1000)}) as granted`,
      );
      // The number of a lock that was not granted in time.
      if (Number(row?.granted) !== 1)
        throw Object.assign(new Error('another process holds the migration lock'), { errno: 1205 });
    },
    release: async (execute, database) => {
      await execute(`select release_lock(${lockName(database)})`);
    },
  },
  creation: { via: 'information_schema', sql: (name) => `create database ${name}` },
  failure: ({ code, number, message, isFatal }) => {
    if (number === 1049 || number === 1044) return 'no-database'; // 1044: not there, or not for this user
    if (number === 1045 || number === 1698) return 'credentials';
    if (number === 1205 || number === 1213 || number === 1020) return 'conflict';
    if (number === 1021 || number === 1114) return 'full';
    if (isFatal || UNAVAILABLE.has(number) || isNetworkError(code) || code.startsWith('PROTOCOL_'))
      return 'unavailable';
    return /connection lost|closed state|pool is closed|timeout/i.test(message) ? 'unavailable' : undefined;
  },
};

/**
 * The errors of a server that is unavailable: too many connections, shutting down, gone, killed, read only, out of
 * resources, too slow.
 */
const UNAVAILABLE: ReadonlySet<number> = new Set([
  1026, 1037, 1038, 1040, 1041, 1053, 1077, 1079, 1080, 1129, 1130, 1152, 1158, 1159, 1160, 1161, 1184, 1203,
  1226, 1290, 1317, 1792, 1836, 1927, 1969, 2002, 2003, 2006, 2013, 3024, 4031,
]);

/**
 * The name of the lock. Names of locks belong to the whole server and have at most 64 characters. A hexadecimal text
 * is read alike in every mode.
 */
function lockName(database: string): string {
  return `concat('stagedoor.', sha1(x'${Buffer.from(database).toString('hex')}'))`;
}

function sslOf(value: string | undefined): { ssl?: { rejectUnauthorized: boolean } } {
  if (value === undefined || value === 'false') return {};
  if (value === 'true') return { ssl: { rejectUnauthorized: true } };
  if (value === 'no-verify') return { ssl: { rejectUnauthorized: false } };
  throw urlRefused('ssl must be one of true, no-verify, false');
}
