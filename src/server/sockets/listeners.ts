// Opens and closes the listening sockets of a gateway. Closing lets answers under way arrive. config/listeners.ts decides
// the addresses.

import type { IncomingMessage, RequestListener, Server, ServerOptions, ServerResponse } from 'node:http';
import { Server as NetServer, Socket } from 'node:net';
import type { Config } from '../../config/config.ts';
import type { ListenAddress } from '../../config/listeners.ts';
import { OperatorError } from '../../domain/errors/errors.ts';
import { joinHostPort, localUrl } from '../../domain/local-address.ts';
import type { PortNumbers } from '../../domain/nodes/workers.ts';
import { systemClock } from '../../domain/time/clock.ts';
import { TaskScheduler } from '../../domain/time/task-scheduler.ts';
import { BodyRequest, CrumbledBody } from '../../http/body/body-request.ts';
import { ignoreRest } from '../../net/ignore-rest.ts';
import { networkOf } from '../../net/network-of.ts';
import { endFaultyConnections } from './faulty-connections.ts';
import { FirstRequests, MANY_WAITING } from './first-requests.ts';
import { OpenConnections } from './open-connections.ts';
import type { PublicTls } from './public-tls.ts';
import { secureServer } from './secure-server.ts';
import { WaitingAnswers } from './waiting-answers.ts';

/** The most headers of a request; with more the answer is 431. */
export const MAX_REQUEST_HEADERS = 256;

/**
 * They are taken from the loaded module, since an `import` of node:http reads all its exports, also those that load Node's
 * `fetch`: 14 MB.
 */
const { createServer, ServerResponse: NodeResponse } = process.getBuiltinModule('node:http');

/** Ports or addresses that cannot be opened. `message` has a line for each, with the way to choose another; exit code 2. */
export class ListenError extends OperatorError {
  override readonly name = 'ListenError';
}

export interface Listeners {
  /** URLs on this machine, in the order of the configuration: `http://127.0.0.1:8080`. */
  readonly urls: readonly string[];
  /** The addresses for messages, with both forms of "all addresses": `0.0.0.0:8080 (http://127.0.0.1:8080 here)`. */
  readonly addresses: readonly string[];
  /** The ports by label. */
  readonly ports: PortNumbers;
  /** A line for each default port that another program uses. */
  readonly warnings: readonly string[];
  /** Each connection is closed after its next answer. New ones are accepted until `close`. */
  drain(): void;
  /**
   * Stops accepting connections. Closes the connections that have been idle for 500 ms, and the others after their next
   * answer, or after `timeoutMs` in any case.
   */
  close(timeoutMs: number): Promise<void>;
}

/** Time limits of requests, in ms, so that slow clients do not hold connections: they get 408 and are disconnected. */
export interface ReceiveTimeouts {
  readonly headersMs: number;
  readonly requestMs: number;
  /** Interval at which all connections are checked: the greatest delay of a disconnection. */
  readonly checkMs: number;
}

interface ListenOptions {
  /** Shared by all ports of a gateway. Default: connections of these ports only. */
  readonly connections?: OpenConnections;
  readonly timeouts?: ReceiveTimeouts;
  /** TLS of the port. Default: plain HTTP. */
  readonly tls?: PublicTls | undefined;
  /**
   * The numbers for ports of the settings that are 0. In a worker, node:cluster knows which one it gave only while another
   * worker has it. Default: any.
   */
  readonly kept?: PortNumbers | undefined;
}

export const TIMEOUTS: ReceiveTimeouts = { headersMs: 30_000, requestMs: 120_000, checkMs: 10_000 };
/** Longer than the idle time of common proxies (60 s), so that the gateway does not close a connection that a proxy reuses. */
const KEEP_ALIVE_MS = 65_000;
/** Connections that wait to be accepted. The system may allow fewer: net.core.somaxconn on Linux. */
const BACKLOG = 4_096;
/**
 * Requests that begin in one turn of the event loop; the others wait for the next turns. Those of one turn reach a program in one
 * write, which takes less CPU per call.
 */
const REQUESTS_PER_TURN = 64;
/**
 * The same while MANY_WAITING or more wait. The loop accepts one connection per round of reading, and reads for up
 * to 48 rounds while over 1,024 connections have data: if many requests began at once, a new connection would wait
 * for seconds.
 */
const REQUESTS_PER_TURN_OF_MANY = 2;
/** Requests that begin at once, unless they are pipelined: a load balancer removes a gateway that answers them slowly. */
const HEALTH_CHECKS: ReadonlySet<string> = new Set(['/livez', '/readyz', '/health', '/gateway/health']);
/** Interval at which the bytes of unfinished requests are counted. */
const CUT_MS = 500;
/** Interval of the check for idle connections while closing, in ms. */
const SWEEP_MS = 20;

/**
 * Opens all listeners or none. Of the default ports one in use is a warning and both in use are an error; a configured port
 * must be free. `target` may serve requests by another function later. Throws ListenError.
 */
export async function openListeners(
  { listeners, portsDefaulted }: Pick<Config, 'listeners' | 'portsDefaulted'>,
  target: { readonly serve: RequestListener },
  { connections = new OpenConnections(), timeouts = TIMEOUTS, tls, kept = {} }: ListenOptions = {},
): Promise<Listeners> {
  const scheduler = new TaskScheduler({
    perTurn: (waiting) => (waiting < MANY_WAITING ? REQUESTS_PER_TURN : REQUESTS_PER_TURN_OF_MANY),
  });
  const Request = restingTogether(new TaskScheduler({ perTurn: 1 }));
  settleShapes(Request);
  const shared = { connections, timeouts, tls, scheduler, first: new FirstRequests(scheduler), Request };
  const tried = await Promise.all(
    listeners.map(async (wanted) => {
      const open = async (address: ListenAddress) => {
        const listener = new Listener(address, target, shared);
        return { listener, wanted: address, error: await listener.open() };
      };
      const opened = await open(wanted);
      const port = kept[wanted.label];
      const isMoved = wanted.port === 0 && port !== undefined && opened.listener.port !== port;
      if (opened.error !== undefined || !isMoved) return opened;
      await opened.listener.close(0);
      return open({ ...wanted, port });
    }),
  );
  const opened = tried.flatMap(({ listener, error }) => (error === undefined ? [listener] : []));
  const failed = tried.filter(({ error }) => error !== undefined);
  const isUsable = portsDefaulted && opened.length > 0 && failed.every(({ error }) => isTaken(error));
  if (failed.length > 0 && !isUsable) {
    await Promise.all(opened.map((listener) => listener.close(0)));
    throw new ListenError(failed.map(failureOf).join('\n'), { cause: failed[0]?.error });
  }
  const endCuts = systemClock.background.every(CUT_MS, () => connections.cutUnfinished());
  return {
    urls: opened.map(({ url }) => url),
    addresses: opened.map(({ address }) => address),
    ports: Object.fromEntries(opened.map(({ label, port }) => [label, port])),
    warnings: failed.map(({ wanted }) => `port ${wanted.port} is already in use; continuing without it`),
    drain: () => {
      for (const listener of opened) listener.drain();
    },
    close: async (timeoutMs) => {
      await Promise.all(opened.map((listener) => listener.close(timeoutMs)));
      endCuts();
    },
  };
}

/**
 * The class of requests whose bodies come in many small pieces: together they get half of the time, and one connection after the
 * other is read.
 */
function restingTogether(scheduler: TaskScheduler): typeof BodyRequest {
  return class extends BodyRequest {
    override rest(tookMs: number, goOn: () => void): void {
      systemClock.alarm(scheduler.restAfter(tookMs), () => scheduler.run(goOn));
    }
  };
}

/** Objects of a class after which V8 settles its shape, and one more. */
const SHAPING_OBJECTS = 8;

/**
 * V8 settles how many fields the objects of a class hold in themselves when it has made seven, by the fields of
 * those before. A collection after the sixth has forgotten them: then each request of the process would take 8 kB
 * more, in lists of fields that grow by three.
 */
function settleShapes(Request: typeof BodyRequest): void {
  const socket = new Socket();
  for (let made = 0; made < SHAPING_OBJECTS; made += 1) new NodeResponse(new Request(socket));
  socket.destroy();
}

/** What all ports have in common. */
interface SharedByPorts extends Required<Omit<ListenOptions, 'kept'>> {
  readonly scheduler: TaskScheduler;
  readonly first: FirstRequests;
  readonly Request: typeof BodyRequest;
}

/** One address that is listened on, and the requests that come there. */
class Listener {
  readonly #wanted: ListenAddress;
  readonly #target: { readonly serve: RequestListener };
  readonly #connections: OpenConnections;
  readonly #tls: PublicTls | undefined;
  readonly #scheduler: TaskScheduler;
  readonly #first: FirstRequests;
  readonly #waiting: WaitingAnswers;
  readonly #server: Server;
  readonly #closed: Promise<unknown>;
  /** The time at which draining began, on a monotonic clock. */
  #drainingSinceMs: number | undefined;

  constructor(
    wanted: ListenAddress,
    target: { readonly serve: RequestListener },
    { connections, timeouts, tls, scheduler, first, Request }: SharedByPorts,
  ) {
    this.#wanted = wanted;
    this.#target = target;
    this.#connections = connections;
    this.#tls = tls;
    this.#scheduler = scheduler;
    this.#first = first;
    const { headerBytes } = connections.bounds;
    this.#waiting = new WaitingAnswers(headerBytes);
    const limits: ServerOptions<typeof BodyRequest> = {
      IncomingMessage: Request,
      maxHeaderSize: headerBytes,
      headersTimeout: timeouts.headersMs,
      requestTimeout: timeouts.requestMs,
      connectionsCheckingInterval: timeouts.checkMs,
      keepAliveTimeout: KEEP_ALIVE_MS,
      requireHostHeader: false, // Node would answer by itself, past the bounds of requests: see `begin`
    };
    const server =
      tls === undefined
        ? createServer(limits, this.#receive)
        : secureServer(limits, this.#receive, tls, connections);
    this.#server = server;
    server.on('checkExpectation', this.#receive); // the same; a server may ignore expectations that it does not know
    endFaultyConnections(server);
    server.on('clientError', (error, socket) => {
      if (error instanceof CrumbledBody) connections.closeLike(socket as Socket);
    });
    server.on('connection', (socket) => {
      first.arrived();
      connections.add(socket, server, tls !== undefined);
    });
    // Node silently drops headers over this count: one more than allowed shows that there were too many.
    server.maxHeadersCount = MAX_REQUEST_HEADERS + 1;
    this.#closed = new Promise((resolve) => server.once('close', resolve));
  }

  /** Resolves with the reason when it cannot listen. */
  open(): Promise<ListenFailure> {
    return new Promise((resolve) => {
      this.#server.on('error', (error) => {
        // While the server listens, errors concern single connections that the system could not accept (no file handles left).
        if (!this.#server.listening) resolve(error);
      });
      const { host, port } = this.#wanted;
      this.#server.listen({ host, port, backlog: BACKLOG }, () => resolve(undefined));
    });
  }

  get label(): ListenAddress['label'] {
    return this.#wanted.label;
  }

  /** URL on this machine: "all addresses" is not an address to connect to. */
  get url(): string {
    return localUrl(this.#wanted.host, this.port, this.#tls === undefined ? 'http' : 'https');
  }

  get address(): string {
    const bound = joinHostPort(this.#wanted.host, this.port);
    return this.url.endsWith(`//${bound}`) ? this.url : `${bound} (${this.url} here)`;
  }

  drain(): void {
    this.#drainingSinceMs ??= systemClock.now();
  }

  /** Resolves when it is closed and its last connection has ended. */
  async close(timeoutMs: number): Promise<void> {
    const server = this.#server;
    const connections = this.#connections;
    this.#drainingSinceMs ??= systemClock.now();
    const sinceMs = this.#drainingSinceMs;
    // server.close() is not called: it closes idle connections at once.
    NetServer.prototype.close.call(server);
    const endSweep = systemClock.every(SWEEP_MS, () => connections.closeIdle(server, sinceMs));
    const cancelCut = systemClock.alarm(timeoutMs, () => connections.closeAll(server));
    await this.#closed;
    endSweep();
    cancelCut();
    server.close(); // ends its own interval
  }

  /** The actual port, also when port 0 was configured. */
  get port(): number {
    const address = this.#server.address();
    return typeof address === 'object' && address !== null ? address.port : this.#wanted.port;
  }

  readonly #receive: RequestListener<typeof BodyRequest> = (request, response) => {
    const { socket } = request;
    if (socket.destroyed) return ignoreRest(socket);
    this.#connections.begin(request, response);
    const isWaiting = response.socket === null;
    const begin = () => this.#begin(request, response);
    if (isWaiting) {
      this.#waiting.add(socket, response);
      response.once('socket', () => this.#scheduler.run(begin));
    } else if (HEALTH_CHECKS.has(request.url ?? '')) begin();
    else if (socket.bytesWritten > 0) this.#scheduler.run(begin);
    // One round later: its client may have left before the connection was accepted.
    else {
      const isOver = () => hasLeft(request, response);
      setImmediate(() => this.#first.add(networkOf(socket.remoteAddress ?? ''), { isOver, begin }));
    }
  };

  readonly #begin: RequestListener = (request, response) => {
    if (hasLeft(request, response)) return;
    if (this.#drainingSinceMs !== undefined) response.setHeader('Connection', 'close');
    if (request.rawHeaders.length > 2 * MAX_REQUEST_HEADERS) refuseHeaders(response, 431);
    else if (!hasOneHost(request) || !TARGET.test(request.url ?? '')) refuseHeaders(response, 400);
    else this.#target.serve(request, response);
  };
}

/** True when the client disconnected while its request waited. */
function hasLeft({ socket }: IncomingMessage, response: ServerResponse): boolean {
  return response.destroyed || socket.writableEnded;
}

/**
 * A path, `*`, or a URL with a plain host. For some other targets, such as `http://[/` and `//@[#`, koa throws wherever the path
 * is read, also where nothing catches it. Source: RFC 9112 section 3.2.
 */
const TARGET = /^(?:\*|\/[^#\s]*|https?:\/\/(?:[\w.-]+|\[[\da-f:.]+\])(?::\d{1,5})?(?:[/?][^#\s]*)?)$/i;

/**
 * False for several `Host` headers, of which Node keeps the first and a proxy may keep the last, and without one in HTTP/1.1.
 * Source: RFC 9112 section 3.2.
 */
function hasOneHost({ rawHeaders, httpVersionMinor }: IncomingMessage): boolean {
  const first = rawHeaders.findIndex(isHostName);
  return first === -1 ? httpVersionMinor === 0 : first === rawHeaders.findLastIndex(isHostName);
}

/** True for the name `host` in a list of names and values in turn. */
function isHostName(text: string, index: number): boolean {
  return index % 2 === 0 && text.length === 4 && text.toLowerCase() === 'host';
}

/** Answers as Node does when it cannot parse headers. */
function refuseHeaders(response: ServerResponse, status: number): void {
  response.writeHead(status, { Connection: 'close', 'Content-Length': '0' }).end();
}

type ListenFailure = NodeJS.ErrnoException | undefined;

function failureOf({ wanted, error }: { wanted: ListenAddress; error: ListenFailure }): string {
  const { host, port, label, portSource } = wanted;
  if (OTHER_HOST.has(error?.code)) {
    const setting = label === 'metrics' ? 'metrics.host' : '--host';
    return `cannot listen on ${host}: this machine does not have this address (${error?.code}); correct ${setting}`;
  }
  if (error?.code === 'EAI_AGAIN')
    return `cannot listen on ${host}: its address cannot be looked up now (EAI_AGAIN); start again when DNS answers`;
  const problem = isTaken(error)
    ? `port ${port} on ${host} is already in use`
    : `cannot listen on ${host} port ${port}: ${error?.message}`;
  const place = portSource === undefined ? '' : `in ${portSource}, or `;
  const flag = label === 'metrics' ? '--metrics-port' : '--port';
  return `${problem}; choose another ${place}with ${flag} <port>, or ${flag} 0 for a free one`;
}

/** The codes of errors that no other port mends. */
const OTHER_HOST: ReadonlySet<string | undefined> = new Set(['EADDRNOTAVAIL', 'ENOTFOUND']);

function isTaken(error: ListenFailure): boolean {
  return error?.code === 'EADDRINUSE';
}
