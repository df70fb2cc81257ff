// Oracle 19 and later, with the thin driver, which needs no Oracle client. The tables belong to the user of the URL.

import { booleanOption, type Database, type Execute } from '../database.ts';
import { withoutVariables } from '../orm/connection/mikro-orm-patches.ts';
import { isNetworkError } from '../store-errors.ts';

export const oracle: Database = {
  kind: 'oracle',
  label: 'Oracle',
  schemes: ['oracle'],
  driverPackage: '@mikro-orm/oracledb',
  urlOptions: ['service_name', 'tls'],
  defaultPort: 1521,
  // Not before Oracle 23.
  insertsSingleRows: true,
  driver: async () => (await import('@mikro-orm/oracledb')).OracleDriver,
  correctLiteral: withoutVariables,
  options: ({ address, statementTimeoutMs, connectTimeoutMs, connections }) => {
    const { host, port, user, name, options } = address;
    const protocol = booleanOption(options, 'tls', false) ? 'tcps' : 'tcp';
    const seconds = Math.max(1, Math.ceil(connectTimeoutMs / 1000));
    return {
      clientUrl: `${protocol}://${host.includes(':') ? `[${host}]` : host}:${port}/${options.get('service_name') ?? name}?connect_timeout=${seconds}`,
      // In Oracle a schema is a user.
      dbName: user,
      pool: { min: 0, max: connections, idleTimeoutMillis: 60 },
      driverOptions: { queueTimeout: connectTimeoutMs, queueMax: 1_000, connectTimeout: seconds },
      onCreateConnection: async (connection) => {
        if (!isSession(connection)) throw new TypeError('the driver handed out no session');
        connection.callTimeout = statementTimeoutMs;
        await connection.execute(
          `alter session set nls_comp = binary nls_sort = binary time_zone = '+00:00'`,
        );
      },
    };
  },
  migrations: async () => (await import('../migrations/oracle.ts')).migrations,
  timeQuery: `select (cast(sys_extract_utc(systimestamp) as date) - date '1970-01-01') * 86400000 as ms from dual`,
  lock: {
    scope: 'beside',
    // DBMS_LOCK needs a grant that few users have; the owner of a table can lock it.
    take: async (execute, waitMs) => {
      await createLockTable(execute);
      await execute(`lock table "stagedoor_lock" in exclusive mode wait ${Math.ceil(waitMs / 1000)}`);
    },
  },
  failure: ({ code, number, message }) => {
    const oracleNumber = number || Number(/^ORA-(\d+)/.exec(message)?.[1] ?? 0);
    if ([1017, 1005, 1045, 28000, 28001].includes(oracleNumber)) return 'credentials';
    if ([12504, 12505, 12514].includes(oracleNumber)) return 'no-database';
    if ([54, 60, 8177, 30006].includes(oracleNumber)) return 'conflict';
    if (NO_SPACE_CODES.has(oracleNumber)) return 'full';
    if (UNAVAILABLE.has(oracleNumber) || isNetworkError(code)) return 'unavailable';
    // The driver's own: connections, pools, timeouts.
    return /^(?:NJS-(?:040|047|064|076|500|501|503|510|511|521|530)|DPI-1010|DPI-1080)/.test(code || message)
      ? 'unavailable'
      : undefined;
  },
};

const NAME_TAKEN = 'ORA-00955';

async function createLockTable(execute: Execute): Promise<void> {
  try {
    await execute('create table "stagedoor_lock" ("id" number(1, 0))');
  } catch (thrown) {
    if (!(thrown instanceof Error && thrown.message.includes(NAME_TAKEN))) throw thrown;
  }
}

/**
 * The errors of a server that is unavailable: too many sessions or processes, starting or stopping, lost, killed,
 * read only, listener away.
 */
const UNAVAILABLE: ReadonlySet<number> = new Set([
  18, 19, 20, 28, 257, 1012, 1033, 1034, 1089, 1090, 1092, 2396, 3113, 3114, 3135, 3136, 12170, 12203, 12500,
  12516, 12518, 12519, 12520, 12528, 12537, 12541, 12545, 12547, 12560, 12571, 16000, 25408,
]);

/** The errors of missing space: a quota, a table, an index, a partition, a document or the undo space cannot grow. */
const NO_SPACE_CODES: ReadonlySet<number> = new Set([1536, 1653, 1654, 1688, 1691, 30036]);

interface Session {
  callTimeout: number;
  execute(sql: string): Promise<unknown>;
}

function isSession(connection: unknown): connection is Session {
  return (
    typeof connection === 'object' &&
    connection !== null &&
    'callTimeout' in connection &&
    'execute' in connection &&
    typeof connection.execute === 'function'
  );
}
