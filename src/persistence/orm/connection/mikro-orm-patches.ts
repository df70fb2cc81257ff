// All changes to MikroORM's behaviour, each with its reason. Loads neither MikroORM nor a driver.

import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import type { AbstractSqlConnection } from '@mikro-orm/sql';

type Correction = (literal: string) => string;

/**
 * Corrects text literals of a platform: two databases read some literals differently than MikroORM writes
 * them. Such a literal is split into parts that the database concatenates.
 */
export function correctLiterals(platform: { escape(value: unknown): string }, correct: Correction): void {
  const write = platform.escape.bind(platform);
  platform.escape = (value) => {
    const literal = write(value);
    return /^N?'/.test(literal) ? correct(literal) : literal;
  };
}

/**
 * The correction for Oracle: MikroORM's driver replaces `$1` by `:0` also within a text, and a bcrypt hash begins
 * with `$2b$12$`.
 */
export const withoutVariables: Correction = (literal) => {
  const cut = literal.replaceAll(/\$(?=\d)/g, `$$' || '`);
  return cut === literal ? literal : `(${cut})`;
};

/** The correction for SQL Server, which drops a backslash at the end of a line together with the line break. */
export const withoutContinuedLines: Correction = (literal) => {
  const prefix = literal.startsWith('N') ? 'N' : '';
  const cut = literal.replaceAll(/\\(?=\r?\n)/g, `\\' + ${prefix}'`);
  return cut === literal ? literal : `(${cut})`;
};

/**
 * Runs a statement on a new connection before any other code can use it. `connection` is the parameter of
 * `onCreateConnection` of MikroORM's pooled drivers, which has no public type.
 */
export async function runOn(connection: unknown, sql: string): Promise<void> {
  const executeQuery = partOf(connection, 'executeQuery');
  if (typeof executeQuery !== 'function') throw new TypeError('the driver handed out no connection');
  await executeQuery.call(connection, { sql, parameters: [] });
}

/** The open sockets of one pool. `MikroORM.close` waits for the answers to running queries, without an answer forever. */
export class Sockets {
  readonly #ends = new Set<() => void>();
  #isDestroyed = false;

  /** Tracks each connection that the pool opens; `event` is the name of the pool's event for it. */
  watch(pool: unknown, event: string): void {
    if (!(pool instanceof EventEmitter)) throw new TypeError('the driver has no pool that can be watched');
    pool.on(event, (connection: unknown) => this.add(connection));
  }

  /** Tracks a socket before it is connected. */
  opened(socket: Socket): Socket {
    if (this.#isDestroyed) socket.once('connect', () => socket.destroy()); // its driver would connect a destroyed one again
    this.add(socket);
    return socket;
  }

  /**
   * `connection` is a client with its socket in `stream` (mysql2) or `connection.stream` (pg), or it has
   * `close()` (tedious). The socket is destroyed without the client, whose `end` waits for its queries.
   */
  add(connection: unknown): void {
    const target =
      partOf(partOf(connection, 'connection'), 'stream') ?? partOf(connection, 'stream') ?? connection;
    const end = () => {
      if (!call(target, 'destroy')) call(target, 'close');
    };
    this.#ends.add(end);
    if (this.#isDestroyed) this.destroy();
    if (!(target instanceof EventEmitter)) return;
    // Sockets and pooled connections emit `close`, `end` or both.
    for (const event of ['close', 'end']) target.once(event, () => this.#ends.delete(end));
  }

  /** Closes all sockets now, and those that are still being opened; their queries are rejected. */
  destroy(): void {
    this.#isDestroyed = true;
    for (const end of this.#ends) end();
    this.#ends.clear();
  }
}

function partOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}

function call(value: unknown, name: string): boolean {
  const method = partOf(value, name);
  if (typeof method !== 'function') return false;
  method.call(value);
  return true;
}

/**
 * Releases a connection that was lost in a transaction. Kysely keeps it when the begin, or the rollback, fails:
 * its pool would count it as used for ever, and wait for it when it closes. `isLost`: the error says that the
 * connection is.
 */
export function releaseLostConnections(
  connection: AbstractSqlConnection,
  isLost: (thrown: unknown) => boolean,
): void {
  const create = connection.createKyselyDialect.bind(connection);
  const releasing = (dialect: Awaited<ReturnType<typeof create>>) => {
    const createDriver = dialect.createDriver.bind(dialect);
    dialect.createDriver = () => {
      const driver = createDriver();
      type Connection = Parameters<typeof driver.releaseConnection>[0];
      const released =
        <Rest extends unknown[]>(run: (used: Connection, ...rest: Rest) => Promise<void>) =>
        async (used: Connection, ...rest: Rest): Promise<void> => {
          try {
            await run(used, ...rest);
          } catch (thrown) {
            if (isLost(thrown)) await driver.releaseConnection(used).catch(() => undefined); // its pool is closed
            throw thrown;
          }
        };
      driver.beginTransaction = released(driver.beginTransaction.bind(driver));
      driver.rollbackTransaction = released(driver.rollbackTransaction.bind(driver));
      return driver;
    };
    return dialect;
  };
  connection.createKyselyDialect = (options) => {
    const dialect = create(options);
    return dialect instanceof Promise ? dialect.then(releasing) : releasing(dialect);
  };
}

/**
 * Refuses new connections. After `MikroORM.close` the next statement of running work would open a new pool that
 * nothing closes.
 */
export function refuseReconnects(connection: AbstractSqlConnection): void {
  connection.connect = () =>
    Promise.reject(Object.assign(new Error('its pool was closed'), { code: 'ECONNRESET' }));
}
