// SQL Server 2017 and later, and Azure SQL. Definitions of tables are part of transactions here.

import { booleanOption, type Database } from '../database.ts';
import { withoutContinuedLines } from '../orm/connection/mikro-orm-patches.ts';
import { isNetworkError } from '../store-errors.ts';

/** The number of the error when another process holds the migration lock. */
const LOCK_HELD = 51_000;

export const mssql: Database = {
  kind: 'mssql',
  label: 'SQL Server',
  schemes: ['mssql', 'sqlserver'],
  driverPackage: '@mikro-orm/mssql',
  urlOptions: ['encrypt', 'trustServerCertificate', 'instanceName'],
  defaultPort: 1433,
  driver: async () => (await import('@mikro-orm/mssql')).MsSqlDriver,
  correctLiteral: withoutContinuedLines,
  options: ({ address, statementTimeoutMs, connectTimeoutMs, connections, sockets }) => {
    const { options } = address;
    const instanceName = options.get('instanceName');
    const pool = {
      min: 0,
      max: connections,
      idleTimeoutMillis: 60_000,
      // Without these the pool would try for 30 s, five times a second, even with a wrong password.
      acquireTimeoutMillis: connectTimeoutMs,
      propagateCreateError: true,
    };
    return {
      pool,
      driverOptions: {
        options: {
          encrypt: booleanOption(options, 'encrypt', true),
          trustServerCertificate: booleanOption(options, 'trustServerCertificate', false),
          connectTimeout: connectTimeoutMs,
          requestTimeout: statementTimeoutMs,
          cancelTimeout: connectTimeoutMs,
          // No other database must replace the named one.
          fallbackToDefaultDb: false,
          appName: 'stagedoor',
          ...(instanceName === undefined ? {} : { instanceName, port: undefined }),
        },
      },
      onCreateConnection: async (connection) => sockets.add(connection),
    };
  },
  migrations: async () => (await import('../migrations/mssql.ts')).migrations,
  timeQuery: `select datediff_big(millisecond, '1970-01-01', sysutcdatetime()) as ms`,
  lock: {
    scope: 'around',
    take: async (execute, waitMs) => {
      await execute(
        `declare @granted int; exec @granted = sp_getapplock @Resource = N'stagedoor', @LockMode = 'Exclusive', ` +
          `@LockOwner = 'Transaction', @LockTimeout = ${waitMs}; ` +
          `if @granted < 0 throw ${LOCK_HELD}, 'another process holds the migration lock', 1;`,
      );
    },
  },
  creation: { via: 'master', sql: (name) => `create database ${name}` },
  failure: ({ code, number, message }) => {
    if (number === 4060 || number === 911) return 'no-database';
    if (number === 1101 || number === 1105 || number === 9002) return 'full';
    if (number === 18456 || number === 18452 || number === 18488) return 'credentials';
    if (number === 1205 || number === 1222 || number === 3960 || number === LOCK_HELD) return 'conflict';
    if (code === 'ELOGIN') return message.includes('Cannot open database') ? 'no-database' : 'credentials';
    if (UNAVAILABLE.has(number) || UNAVAILABLE_CODES.has(code) || isNetworkError(code)) return 'unavailable';
    return /connection lost|connection is closed|socket hang up|timeout/i.test(message)
      ? 'unavailable'
      : undefined;
  },
};

/** The errors of a server that is unavailable: shutting down, out of memory or connections, read only, moved, not now (Azure). */
const UNAVAILABLE: ReadonlySet<number> = new Set([
  596, 701, 802, 845, 924, 942, 3906, 6005, 8645, 8651, 10928, 10929, 17142, 40197, 40501, 40613, 40615,
  49918, 49919, 49920,
]);
const UNAVAILABLE_CODES: ReadonlySet<string> = new Set([
  ...['ESOCKET', 'ECLOSE', 'ECONNCLOSED', 'ETIMEOUT', 'ECANCEL', 'EINVALIDSTATE', 'EINSTLOOKUP'],
]);
