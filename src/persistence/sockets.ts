// Ends the sockets of a database that went silent: closing a pool in order would wait for the answers that do not come.

import { EventEmitter } from 'node:events';

/** The open sockets of one pool. */
export class Sockets {
  readonly #ends = new Set<() => void>();

  /** Keeps track of everything the pool says it has opened; `event` is its word for that. */
  watch(pool: unknown, event: string): void {
    if (!(pool instanceof EventEmitter)) throw new TypeError('the driver has no pool that can be watched');
    pool.on(event, (connection: unknown) => this.add(connection));
  }

  /**
   * `connection` is a client with its socket in `stream` (mysql2) or `connection.stream` (pg), or it has `close()` (tedious).
   * The socket is destroyed behind the client's back: told to close, a client waits for its queries.
   */
  add(connection: unknown): void {
    const target =
      partOf(partOf(connection, 'connection'), 'stream') ?? partOf(connection, 'stream') ?? connection;
    const end = () => {
      if (!call(target, 'destroy')) call(target, 'close');
    };
    this.#ends.add(end);
    if (!(target instanceof EventEmitter)) return;
    // Sockets and pooled connections say `close`, `end` or both.
    for (const event of ['close', 'end']) target.once(event, () => this.#ends.delete(end));
  }

  /** Closes all of them now; what waits for them is rejected. */
  destroy(): void {
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
