// Owns the open connections of all ports: how many there may be, in all and from one address, and how many bytes of
// unfinished requests of unknown callers they may hold.

import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { LIMITS } from '../../domain/limits.ts';
import { systemClock } from '../../domain/time/clock.ts';
import { type AddressCheck, addressesIn } from '../../net/network-guard.ts';
import { networkOf } from '../../net/network-of.ts';
import { handshakeBytes } from '../../net/tls/listener-handshakes.ts';

export interface ConnectionBounds {
  /** Connections from one IPv4 address, or one /64 network of IPv6. */
  readonly perAddress: number;
  readonly total: number;
  /** The greatest file descriptor that a connection may have: the process needs those beyond it. */
  readonly files: number;
  /** The most bytes of unfinished headers and handshakes, and of requests whose callers are unknown while their bodies arrive. */
  readonly unfinishedBytes: number;
  /** The largest headers of one request. */
  readonly headerBytes: number;
  /** Networks, in CIDR form, whose connections count in `total` only. */
  readonly trustedProxies: readonly string[];
}

const DEFAULT_CONNECTIONS: ConnectionBounds = {
  perAddress: LIMITS.connectionsPerAddress,
  total: LIMITS.connections,
  files: Number.POSITIVE_INFINITY,
  unfinishedBytes: LIMITS.unfinishedBytes,
  headerBytes: LIMITS.requestHeaderBytes,
  trustedProxies: [],
};

/** A connection may be closed as idle so long after its last answer, or its arrival, in ms. */
const IDLE_MS = 500;
/** A handshake counts after this time: thousands of clients may come at once after a restart. */
const HANDSHAKE_MS = 1_000;

interface Connection {
  socket: Socket;
  readonly server: Server;
  readonly network: string;
  /** All connections of its network; undefined for a trusted proxy. */
  readonly others: Set<Connection> | undefined;
  /** Requests in progress: their headers are complete, and their answers are not. */
  requests: number;
  /** The answer to a request in progress of an unknown caller. */
  unknown: ServerResponse | undefined;
  /** The request that began last, until its answer: an idle connection keeps nothing of it. */
  last: Pick<IncomingMessage, 'complete'> | undefined;
  /** True while its handshake of TLS is not over. */
  isHandshake: boolean;
  hasFinished: boolean;
  /** Bytes received before the current request. */
  startBytes: number;
  /** The time of its arrival or its last answer, in ms of a monotonic clock. */
  idleSinceMs: number;
  readonly onAnswered: (request: Pick<IncomingMessage, 'complete'>) => void;
}

/**
 * The open connections of one server, until each is closed. Over a bound the oldest connection without a finished
 * request is closed, then the oldest idle one; never one with a request in progress. Source: ADR 91.
 */
export class OpenConnections {
  readonly bounds: ConnectionBounds;
  readonly #isTrusted: AddressCheck;
  /** All connections in the order of their last answers, or arrivals; those of one network have the same order. */
  readonly #all = new Map<Socket, Connection>();
  readonly #ofNetwork = new Map<string, Set<Connection>>();
  /**
   * The number of connections for which there are file descriptors: known once one has a descriptor beyond the bound, forgotten
   * at intervals.
   */
  #room = Number.POSITIVE_INFINITY;

  constructor(bounds: Partial<ConnectionBounds> = {}) {
    this.bounds = { ...DEFAULT_CONNECTIONS, ...bounds };
    this.#isTrusted = addressesIn(this.bounds.trustedProxies);
  }

  /**
   * Counts a new connection until it ends; `isHandshake`: it begins with one of TLS. Over a bound another one is
   * closed, or this one when all others are in use.
   */
  add(socket: Socket, server: Server, isHandshake = false): void {
    const address = socket.remoteAddress ?? '';
    const { perAddress, total, files, trustedProxies } = this.bounds;
    const network = networkOf(address);
    const isTrusted = trustedProxies.length > 0 && this.#isTrusted(address);
    const others = isTrusted ? undefined : (this.#ofNetwork.get(network) ?? new Set());
    const connection: Connection = {
      socket,
      server,
      network,
      others,
      requests: 0,
      unknown: undefined,
      last: undefined,
      isHandshake,
      hasFinished: false,
      startBytes: 0,
      idleSinceMs: systemClock.now(),
      onAnswered: (request) => {
        const { socket } = connection;
        if (connection.last === request) connection.last = undefined;
        connection.requests -= 1;
        connection.unknown = undefined;
        connection.hasFinished = true;
        connection.idleSinceMs = systemClock.now();
        if (request.complete) connection.startBytes = socket.bytesRead;
        if (this.#all.delete(socket)) this.#all.set(socket, connection);
        if (others?.delete(connection)) others.add(connection);
      },
    };
    socket.once('close', () => this.#remove(connection));
    this.#all.set(socket, connection);
    if (others !== undefined) {
      this.#ofNetwork.set(network, others.add(connection));
      if (others.size > perAddress) this.#close(oldestOf(others, connection));
    }
    const beyond = fileOf(socket) - files;
    if (beyond > 0) this.#room = this.#all.size - beyond;
    while (this.#all.has(socket) && this.#all.size > Math.min(total, this.#room))
      this.#close(oldestOf(this.#all.values(), connection, systemClock.now() - IDLE_MS));
  }

  /** The handshake of TLS on `socket` is over: its requests come over `secure`. */
  secure(socket: Socket, secure: Socket): void {
    const connection = this.#all.get(socket);
    if (connection === undefined) return;
    this.#all.delete(socket);
    this.#all.set(secure, connection);
    connection.socket = secure;
    connection.isHandshake = false;
    connection.startBytes = secure.bytesRead;
    secure.once('close', () => this.#remove(connection));
  }

  /** Closes all connections of a port. */
  closeAll(server: Server): void {
    for (const connection of this.#all.values()) if (connection.server === server) this.#close(connection);
  }

  /** Counts a request whose headers are complete, until its answer ends. */
  begin(request: IncomingMessage, response: ServerResponse): void {
    const connection = this.#all.get(request.socket);
    if (connection === undefined) return;
    connection.requests += 1;
    connection.last = request;
    let isOver = false;
    // `once` would create two more functions for each request.
    response.on('close', () => {
      if (!isOver) connection.onAnswered(request);
      isOver = true;
    });
  }

  /**
   * The caller of this request is unknown: its bytes count as unfinished until its body is complete, and it is in progress no
   * longer when its answer waits for a reader.
   */
  receive(response: ServerResponse): void {
    const connection = this.#all.get(response.req.socket);
    if (connection !== undefined) connection.unknown = response;
  }

  /** Closes the oldest connections that hold unfinished bytes while all together hold too many. Called at intervals. */
  cutUnfinished(): void {
    this.#room = Number.POSITIVE_INFINITY;
    const { headerBytes, unfinishedBytes } = this.bounds;
    const nowMs = systemClock.now();
    let excess = -unfinishedBytes;
    for (const connection of this.#all.values()) excess += unfinishedBytesOf(connection, headerBytes, nowMs);
    if (excess <= 0) return;
    for (const connection of this.#all.values()) {
      const bytes = unfinishedBytesOf(connection, headerBytes, nowMs);
      if (bytes > 0) this.#close(connection);
      excess -= bytes;
      if (excess <= 0) return;
    }
  }

  /**
   * The body on this connection costs too much to read: closes those of its network that may bring another one, before they are
   * read, but none that waits for an answer, or is idle after one.
   */
  closeLike(socket: Socket): void {
    const newSinceMs = systemClock.now() - IDLE_MS;
    for (const connection of [...(this.#all.get(socket)?.others ?? [])]) {
      const { requests, last, hasFinished, startBytes, idleSinceMs, socket } = connection;
      const isNew = !hasFinished && socket.bytesRead === 0 && idleSinceMs > newSinceMs;
      const isIdle = hasFinished && socket.bytesRead === startBytes;
      const isWaiting = requests > 0 && last?.complete === true;
      if (!isNew && !isIdle && !isWaiting) this.#close(connection);
    }
  }

  /**
   * Closes the connections of a port that have had no request for 500 ms, nor since `drainingSinceMs`. A client may be about to
   * use a connection that had a request just now, and turns to older ones when that one is closed: they would be reset.
   */
  closeIdle(server: Server, drainingSinceMs: number): void {
    const sinceMs = systemClock.now() - IDLE_MS;
    if (drainingSinceMs > sinceMs) return;
    for (const connection of this.#all.values()) {
      const { socket, requests, startBytes, idleSinceMs } = connection;
      const isIdle = requests === 0 && socket.bytesRead === startBytes && idleSinceMs <= sinceMs;
      if (isIdle && connection.server === server) this.#close(connection);
    }
  }

  #close(connection: Connection): void {
    this.#remove(connection); // at once, so that the next call closes another one
    connection.socket.destroy();
  }

  #remove(connection: Connection): void {
    const { socket, network, others } = connection;
    this.#all.delete(socket);
    if (others?.delete(connection) && others.size === 0) this.#ofNetwork.delete(network);
  }
}

/** The file descriptor of its socket; -1 where sockets have none. */
function fileOf(socket: Socket): number {
  return Number(Object(Reflect.get(socket, '_handle')).fd ?? -1);
}

function isInProgress({ requests, unknown }: Connection): boolean {
  if (unknown === undefined) return requests > 0;
  const isUnread = unknown.writableEnded && unknown.writableLength > 0;
  return requests > 0 && unknown.req.complete && !isUnread;
}

/**
 * The bytes of requests and handshakes that are not complete. After an answer they may belong to a refused body, which is
 * discarded, but the headers of its request stay in memory until it is complete.
 */
function unfinishedBytesOf(connection: Connection, headerBytes: number, nowMs: number): number {
  if (isInProgress(connection)) return 0;
  const { requests, socket, startBytes, isHandshake, idleSinceMs } = connection;
  if (isHandshake) return nowMs - idleSinceMs < HANDSHAKE_MS ? 0 : handshakeBytes(socket.bytesRead);
  const received = socket.bytesRead - startBytes;
  return requests > 0 ? received : Math.min(received, headerBytes);
}

/**
 * The one to close for `added`, which it is when all others are in use. One that arrived after `newSinceMs` and of
 * which nothing was read comes after the idle ones: its request may have arrived, too.
 */
function oldestOf(
  connections: Iterable<Connection>,
  added: Connection,
  newSinceMs = Number.POSITIVE_INFINITY,
): Connection {
  let idle: Connection | undefined;
  let unread: Connection | undefined;
  for (const connection of connections) {
    if (connection === added || isInProgress(connection)) continue;
    const { hasFinished, socket, startBytes, idleSinceMs } = connection;
    if (!hasFinished && socket.bytesRead === 0 && idleSinceMs > newSinceMs) unread ??= connection;
    else if (!hasFinished || socket.bytesRead > startBytes) return connection;
    else idle ??= connection;
  }
  return idle ?? unread ?? added;
}
