// PostgreSQL 12 and later. Definitions of tables are part of transactions, so a migration is atomic.

import { Socket } from 'node:net';
import type { Database } from '../database.ts';
import { runOn } from '../orm/connection/mikro-orm-patches.ts';
import { isNetworkError, urlRefused } from '../store-errors.ts';

/** The key of the advisory lock: "stag" in ASCII. Databases of one server have separate locks. */
const LOCK_KEY = 0x73746167;

export const postgresql: Database = {
  kind: 'postgresql',
  label: 'PostgreSQL',
  schemes: ['postgresql', 'postgres'],
  driverPackage: '@mikro-orm/postgresql',
  urlOptions: ['sslmode', 'host'],
  defaultPort: 5432,
  driver: async () => (await import('@mikro-orm/postgresql')).PostgreSqlDriver,
  options: ({ address, statementTimeoutMs, idleTransactionMs, connectTimeoutMs, sockets }) => {
    const { host, options } = address;
    return {
      // The query of the URL names the folder of a socket file.
      host: options.get('host') ?? host,
      driverOptions: {
        connectionTimeoutMillis: connectTimeoutMs,
        keepAlive: true,
        application_name: 'stagedoor',
        ssl: sslOf(options.get('sslmode')),
        // Not only those of the pool: a server that is frozen accepts connections, and answers nothing.
        stream: () => sockets.opened(new Socket()),
      },
      onCreateConnection: (connection) =>
        // MikroORM writes values into statements: the server must read backslashes in the same way.
        runOn(
          connection,
          `set standard_conforming_strings = on; set client_encoding = 'UTF8'; ` +
            `set statement_timeout = ${statementTimeoutMs}; set lock_timeout = ${statementTimeoutMs}; ` +
            `set idle_in_transaction_session_timeout = ${idleTransactionMs}`,
        ),
    };
  },
  migrations: async () => (await import('../migrations/postgresql.ts')).migrations,
  timeQuery: 'select extract(epoch from clock_timestamp()) * 1000 as ms',
  lock: {
    scope: 'around',
    take: async (execute, waitMs) => {
      await execute(`set local lock_timeout = ${waitMs}`);
      await execute(`select pg_advisory_xact_lock(${LOCK_KEY})`);
    },
  },
  creation: { via: 'postgres', sql: (name) => `create database ${name}` },
  failure: ({ code, message, isFatal }) => {
    if (code === '3D000') return 'no-database';
    if (code.startsWith('28')) return 'credentials';
    if (code === '53100') return 'full';
    if (['40001', '40P01', '55P03'].includes(code)) return 'conflict';
    // Connection exceptions, insufficient resources, a database that accepts no connections, an operator's
    // intervention, a cancelled statement. `isFatal` alone is not enough: some servers translate the word.
    if (isFatal || /^(?:08|53|55000|57|58|25P03|25006)/.test(code) || isNetworkError(code))
      return 'unavailable';
    // pg gives these no code. A server of another kind answers what is invalid for it.
    return /received invalid response|connection terminated|timeout exceeded|connection ended|not queryable|timeout expired/i.test(
      message,
    )
      ? 'unavailable'
      : undefined;
  },
};

/**
 * The TLS options of a mode, like in libpq. `prefer` and `allow` are refused: an attacker in between could turn
 * encryption off.
 */
function sslOf(mode: string | undefined): false | { rejectUnauthorized: boolean } {
  if (mode === undefined || mode === 'disable') return false;
  if (mode === 'require' || mode === 'no-verify') return { rejectUnauthorized: false };
  if (mode === 'verify-ca' || mode === 'verify-full') return { rejectUnauthorized: true };
  throw urlRefused('sslmode must be one of disable, require, verify-full');
}
