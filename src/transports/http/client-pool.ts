// The connections to one endpoint that requests share, one request on each at a time. Why not the Pool of undici: its queue alone costs
// 16 kB per endpoint, and it keeps each client that it ever made. Here an endpoint at rest has at most one connection.

import { Client, type Dispatcher } from 'undici';

interface Connection {
  readonly client: Client;
  isIdle: boolean;
}

interface Waiting {
  readonly request: Dispatcher.DispatchOptions;
  readonly handler: Dispatcher.DispatchHandler;
}

export class ClientPool {
  readonly #origin: string;
  readonly #options: Client.Options;
  readonly #maxConnections: number;
  readonly #connections = new Set<Connection>();
  /** The one that was used last is used next, so that the others expire. */
  readonly #idle: Connection[] = [];
  /** Requests for which there is no connection, in order of arrival. */
  readonly #waiting: Waiting[] = [];
  #isDestroyed = false;

  constructor(origin: string, maxConnections: number, options: Client.Options) {
    this.#origin = origin;
    this.#maxConnections = maxConnections;
    this.#options = { ...options, pipelining: 1 };
  }

  /** Every failure goes to the handler. */
  dispatch(request: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void {
    const connection = this.#idle.pop() ?? this.#open();
    if (connection === undefined) {
      this.#waiting.push({ request, handler });
      return;
    }
    connection.isIdle = false;
    connection.client.dispatch(request, handler);
    this.#advance(connection); // undici may have refused the request at once
  }

  /** Requests that are under way or wait for a connection fail. */
  async destroy(): Promise<void> {
    this.#isDestroyed = true;
    const clients = [...this.#connections].map(({ client }) => client);
    this.#connections.clear();
    this.#idle.length = 0;
    const destroyed = clients.map((client) => client.destroy());
    for (const { request, handler } of this.#waiting.splice(0)) clients[0]?.dispatch(request, handler);
    await Promise.all(destroyed);
  }

  #open(): Connection | undefined {
    if (this.#connections.size >= this.#maxConnections) return undefined;
    // The first connection lives as long as its server allows.
    const isSpare = this.#connections.size > 0;
    const client = new Client(
      this.#origin,
      isSpare ? { ...this.#options, keepAliveMaxTimeout: SPARE_IDLE_MS } : this.#options,
    );
    const connection: Connection = { client, isIdle: false };
    this.#connections.add(connection);
    client.on('drain', () => this.#advance(connection));
    client.on('disconnect', () => connection.isIdle && this.#forget(connection));
    if (this.#isDestroyed) void client.destroy(); // its requests fail
    return connection;
  }

  /** Gives waiting requests to a connection without a request; there it is idle if none waits. */
  #advance(connection: Connection): void {
    const { client } = connection;
    while (!connection.isIdle && client.stats.size === 0) {
      const next = this.#waiting.shift();
      if (next !== undefined) client.dispatch(next.request, next.handler);
      else if (client.stats.connected) {
        connection.isIdle = true;
        this.#idle.push(connection);
      } else {
        this.#forget(connection);
        return;
      }
    }
  }

  #forget(connection: Connection): void {
    this.#connections.delete(connection);
    const index = this.#idle.indexOf(connection);
    if (index !== -1) this.#idle.splice(index, 1);
    void connection.client.destroy();
  }
}

/** Further connections are closed when they are idle for this time. */
const SPARE_IDLE_MS = 4_000;
