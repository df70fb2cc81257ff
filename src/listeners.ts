// The sockets of a gateway: opens them by the rules for ports, and closes them so that answers under way still arrive.
// What is served on them is the caller's; which addresses are wanted is decided by config/listeners.ts.

import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import { type Socket, Server as TcpServer } from 'node:net';
import type { Listener as WantedListener } from './config/listeners.ts';
import type { Config } from './config.ts';
import { LIMITS } from './domain/limits.ts';
import { TaskScheduler } from './domain/task-scheduler.ts';

/** Ports or addresses that cannot be had. `message` has a line for each, which says how to choose another; exit code 2. */
export class ListenError extends Error {
  constructor(message: string, cause: unknown) {
    super(message, { cause });
    this.name = 'ListenError';
  }
}

/** What is open. */
export interface Listeners {
  /** Where to reach it from this machine, in the order of the configuration: `http://127.0.0.1:8080`. */
  readonly urls: readonly string[];
  /** The same for people, where "every address" has both: `0.0.0.0:8080 (http://127.0.0.1:8080 here)`. */
  readonly places: readonly string[];
  /** One line each: a default port that somebody else has. */
  readonly warnings: readonly string[];
  /** Accepts no more connections. Those that are open are served on, and told to be closed with their next answer. */
  stopAccepting(): void;
  /** Closes idle connections now and the others when they have been answered, or after `patienceMs` in any case. */
  close(patienceMs: number): Promise<void>;
}

/** How long a sender may take, in ms: slow ones do not hold connections. They are told 408 before they are cut. */
export interface SenderPatience {
  /** For the headers of a request. */
  readonly headersMs: number;
  /** For all of a request. */
  readonly requestMs: number;
  /** Distance of two looks at all connections: so much later, at worst, somebody is cut. */
  readonly lookMs: number;
}

const PATIENCE: SenderPatience = { headersMs: 30_000, requestMs: 120_000, lookMs: 10_000 };
/** Longer than the idle time of common proxies (60 s), so that it is never we who cut a connection they reuse. */
const KEEP_ALIVE_MS = 65_000;
/** Connections that the system completes before they are accepted. It may allow fewer: net.core.somaxconn on Linux. */
const BACKLOG = 4_096;
/**
 * Requests that begin in one turn of the event loop while there are many connections; the others wait for the next turns. The loop accepts one connection per
 * round of reading, and goes on reading for up to 48 rounds while over 1,024 connections have something to read: if all of
 * them were served at once, a new connection would wait for seconds.
 */
const REQUESTS_PER_TURN = 2;
/**
 * The same with fewer connections than MANY_CONNECTIONS, which one round reads: what a turn writes to one program goes in one
 * piece, which takes less CPU per call.
 */
const REQUESTS_PER_TURN_OF_FEW = 64;
const MANY_CONNECTIONS = 256;
/** Requests that do not wait: a load balancer takes out what is slow to answer them. */
const HEALTH_CHECKS: ReadonlySet<string> = new Set(['/livez', '/readyz', '/health', '/gateway/health']);
/** "Every address", and the one of them that this machine always has. */
const LOOPBACK: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };
/** While closing, idle connections are looked for this often, in ms. */
const SWEEP_MS = 20;

/**
 * Opens all listeners or none. With the default ports one taken is a warning and both taken an error; a port that was
 * asked for must be had. Throws ListenError. Source: decisions, "Ports".
 */
export async function openListeners(
  { listeners, portsDefaulted }: Pick<Config, 'listeners' | 'portsDefaulted'>,
  serve: RequestListener,
  patience: SenderPatience = PATIENCE,
): Promise<Listeners> {
  const begins = new Begins();
  const wanted = listeners.map((listener) => new Listener(listener, serve, patience, begins));
  await Promise.all(wanted.map((listener) => listener.open()));
  const opened = wanted.filter(({ error }) => error === undefined);
  const failed = wanted.filter(({ error }) => error !== undefined);
  const areAllTaken = failed.every(({ error }) => isTaken(error));
  if (failed.length > 0 && !(portsDefaulted && areAllTaken && opened.length > 0)) {
    await Promise.all(opened.map((listener) => listener.close(0)));
    if (portsDefaulted && areAllTaken) throw failure(failed);
    const failures = failed.map((listener) => failure([listener]));
    throw new ListenError(failures.map(({ message }) => message).join('\n'), failures[0]?.cause);
  }
  return {
    urls: opened.map(({ url }) => url),
    places: opened.map(({ place }) => place),
    warnings: failed.map(
      ({ port }) => `port ${port} is taken by another program; this gateway does without it`,
    ),
    stopAccepting: () => {
      for (const listener of opened) listener.stopAccepting();
    },
    close: async (patienceMs) => {
      await Promise.all(opened.map((listener) => listener.close(patienceMs)));
    },
  };
}

/** When requests begin, for all listeners together. */
class Begins {
  readonly #ofMany = new TaskScheduler({ perTurn: REQUESTS_PER_TURN });
  readonly #ofFew = new TaskScheduler({ perTurn: REQUESTS_PER_TURN_OF_FEW });
  #connections = 0;

  count(connection: Socket): void {
    this.#connections += 1;
    connection.once('close', () => {
      this.#connections -= 1;
    });
  }

  run(begin: () => void): void {
    const areMany = this.#connections >= MANY_CONNECTIONS || this.#ofMany.waiting > 0;
    (areMany ? this.#ofMany : this.#ofFew).run(begin);
  }
}

/** One socket that listens, or could not. */
class Listener {
  readonly host: string;
  readonly port: number;
  /** Where the port was written, unless with `--port`. */
  readonly portSource: string | undefined;
  /** Why it could not be opened. */
  error: NodeJS.ErrnoException | undefined;
  readonly #server: Server;
  /** Resolves when it does not listen any more and its last connection has ended. */
  readonly #gone: Promise<void>;

  constructor(wanted: WantedListener, serve: RequestListener, patience: SenderPatience, begins: Begins) {
    this.host = wanted.host;
    this.port = wanted.port;
    this.portSource = wanted.portSource;
    const limits = {
      maxHeaderSize: LIMITS.requestHeaderBytes,
      headersTimeout: patience.headersMs,
      requestTimeout: patience.requestMs,
      connectionsCheckingInterval: patience.lookMs,
      keepAliveTimeout: KEEP_ALIVE_MS,
    };
    const begin: RequestListener = (request, response) => {
      if (response.destroyed) return; // its client left while it waited
      if (!server.listening) response.setHeader('Connection', 'close');
      if (hasTooManyHeaders(request)) refuseHeaders(response, 431);
      else if (hasSeveralHosts(request)) refuseHeaders(response, 400);
      else serve(request, response);
    };
    const server = createServer(limits, (request, response) => {
      if (HEALTH_CHECKS.has(request.url ?? '')) begin(request, response);
      else begins.run(() => begin(request, response));
    });
    server.on('connection', (socket) => begins.count(socket));
    // What comes after these Node drops without a word; the one too many tells that there was more.
    server.maxHeadersCount = LIMITS.requestHeaders + 1;
    this.#server = server;
    this.#gone = new Promise((resolve) => server.once('close', resolve));
  }

  /** As this machine reaches it: "every address" is no address to go to. */
  get url(): string {
    return `http://${this.#at(LOOPBACK[this.host] ?? this.host)}`;
  }

  /** As a person wants to read it. */
  get place(): string {
    return this.host in LOOPBACK ? `${this.#at(this.host)} (${this.url} here)` : this.url;
  }

  #at(host: string): string {
    const address = this.#server.address();
    const port = typeof address === 'object' && address !== null ? address.port : this.port;
    return `${host.includes(':') ? `[${host}]` : host}:${port}`;
  }

  /** Resolves when it listens or has an `error`. */
  open(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.on('error', (error) => {
        // Once it listens, errors are about single connections that the system could not accept (no file handles left).
        if (!this.#server.listening) this.error = error;
        resolve();
      });
      this.#server.listen({ host: this.host, port: this.port, backlog: BACKLOG }, resolve);
    });
  }

  stopAccepting(): void {
    // Not the HTTP server's own close: that also cuts idle connections, on which a request may be on its way.
    TcpServer.prototype.close.call(this.#server);
  }

  async close(patienceMs: number): Promise<void> {
    this.#server.close();
    // A connection that is kept alive becomes idle after its answer, and Node does not look again by itself.
    const sweep = setInterval(() => this.#server.closeIdleConnections(), SWEEP_MS);
    const cut = setTimeout(() => this.#server.closeAllConnections(), patienceMs);
    await this.#gone;
    clearInterval(sweep);
    clearTimeout(cut);
  }
}

function hasTooManyHeaders({ rawHeaders }: IncomingMessage): boolean {
  return rawHeaders.length > 2 * LIMITS.requestHeaders;
}

/** Node keeps the first, others on the way may keep the last. Source: RFC 9112 section 3.2. */
function hasSeveralHosts({ rawHeaders }: IncomingMessage): boolean {
  let hosts = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index];
    if (name?.length === HOST.length && name.toLowerCase() === HOST) hosts += 1;
  }
  return hosts > 1;
}

const HOST = 'host';

/** As Node answers headers that it cannot read. */
function refuseHeaders(response: ServerResponse, status: number): void {
  response.writeHead(status, { Connection: 'close', 'Content-Length': '0' }).end();
}

function failure(failed: readonly Listener[]): ListenError {
  const ports = failed.map(({ port }) => port).join(' and ');
  const { host = '', port = 0, portSource, error } = failed[0] ?? {};
  const ways = 'with --port <port>, or --port 0 for a free one';
  const advice =
    portSource === undefined ? `choose another ${ways}` : `choose another in ${portSource}, or ${ways}`;
  if (isTaken(error)) {
    const subject = failed.length === 1 ? `port ${ports} on ${host} is` : `ports ${ports} on ${host} are`;
    return new ListenError(`${subject} taken by another program; ${advice}`, error);
  }
  if (error?.code === 'EACCES') {
    return new ListenError(`port ${port} may not be opened by this user; ${advice}`, error);
  }
  if (error?.code === 'EADDRNOTAVAIL' || error?.code === 'ENOTFOUND') {
    return new ListenError(
      `"${host}" is no address of this machine; choose another with --host <address>`,
      error,
    );
  }
  return new ListenError(
    `cannot listen on ${host} port ${port}: ${error?.message ?? 'unknown reason'}`,
    error,
  );
}

function isTaken(error: NodeJS.ErrnoException | undefined): boolean {
  return error?.code === 'EADDRINUSE';
}
