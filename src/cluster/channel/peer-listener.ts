// The listener for the other nodes of the deployment: never the public one; between workers of one gateway also on
// a socket file (ADR 174). Off loopback it is TLS, which is mutual. peer-admission.ts takes the requests. Source: ADR 148.

import { rmSync } from 'node:fs';
import type { RequestListener, Server } from 'node:http';
import type { Socket } from 'node:net';
import { OperatorError, reasonOf } from '../../domain/errors/errors.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Clock } from '../../domain/time/clock.ts';
import { limitKeyUpdatesOf } from '../../net/tls/key-updates.ts';
import { handshakeBytes, ListenerHandshakes } from '../../net/tls/listener-handshakes.ts';
import type { MultiplexedListener } from './multiplexed/multiplexed-listener.ts';
import { PeerAdmission, type PeerAdmissionOptions } from './peer-admission.ts';
import type { PeerTls } from './trust/peer-tls.ts';

export interface PeerListenerOptions extends PeerAdmissionOptions {
  /** The address at which it listens; undefined: all, those of IPv6 too where there are any. */
  readonly host: string | undefined;
  /** 0: a free one. */
  readonly port: number;
  /** A socket file in place of host and port, which only this user can reach. One that is there is replaced. */
  readonly path?: string;
  /** The keys or certificates of the listener. Undefined for plain HTTP, which is for loopback. */
  readonly tls: PeerTls | undefined;
  /** The largest sum of the headers of a client's request, in bytes. */
  readonly headerBytes: number;
  readonly clock: Clock;
}

export interface PeerListener {
  readonly port: number;
  /** Stops accepting connections; open ones end after their answers, or after `timeoutMs`. */
  close(timeoutMs: number): Promise<void>;
}

/** Longer than senders keep an idle connection, so that none is closed while a request is on its way. */
const KEEP_ALIVE_MS = 65_000;
/** Time for the handshake of TLS, and for the headers of a request. */
const HEADERS_MS = 10_000;
const REQUEST_MS = 60_000;
/** Connections that wait to be accepted: a socket file refuses further ones at once. */
const BACKLOG = 4_096;
/** Connections of all members together: calls and streams of some peers. */
const MAX_CONNECTIONS = 32_768;
/** The interval at which the connections without a valid token are counted. */
const CUT_MS = 100;
/** A token may name 1,000 templates, each with 128 characters. */
const TOKEN_BYTES = 192 * 1024;

/** Opens the listener. Throws OperatorError. */
export async function openPeerListener(options: PeerListenerOptions): Promise<PeerListener> {
  const { clock, host, port, path, tls, headerBytes, onRefused } = options;
  const limits = {
    maxHeaderSize: headerBytes + TOKEN_BYTES,
    headersTimeout: HEADERS_MS,
    requestTimeout: REQUEST_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    noDelay: true,
  };
  const unproven = new UnprovenConnections(tls === undefined ? undefined : onRefused);
  const { serve, upgrade, multiplexed } = new PeerAdmission(options, (socket) => unproven.prove(socket));
  const server = tls === undefined ? plainServer(limits, serve) : peerServer(limits, tls, serve);
  server.maxConnections = MAX_CONNECTIONS;
  server.on('connection', (socket) => unproven.add(socket));
  // Without these listeners Node answers requests with Expect by itself.
  server.on('checkContinue', serve).on('checkExpectation', serve);
  if (tls !== undefined) {
    const handshakes = new ListenerHandshakes(server);
    // Only members finish the handshake.
    server.on('secureConnection', (secure) => unproven.prove(handshakes.end(secure)));
  }
  server.on('upgrade', upgrade).on('connect', upgrade);
  await new Promise<void>((resolve, reject) => {
    server.on('error', (error) => {
      // While the server listens, errors concern single connections that the system could not accept.
      if (!server.listening) reject(cannotListen(path ?? `${host ?? 'all addresses'}, port ${port}`, error));
    });
    const place = path === undefined ? { ...(host === undefined ? {} : { host }), port } : { path };
    if (path !== undefined) rmSync(path, { force: true }); // of a worker that was killed
    // Exclusive: workers share their other ports.
    server.listen({ ...place, backlog: BACKLOG, exclusive: true }, resolve);
  });
  const endCuts = clock.background.every(CUT_MS, () => unproven.cut());
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : port,
    close: async (timeoutMs) => {
      const cancel = clock.alarm(timeoutMs, () => {
        server.closeAllConnections();
        unproven.closeAll(); // Node does not know those in a handshake
        for (const connection of multiplexed) connection.destroy();
      });
      await closeServer(server, multiplexed);
      cancel();
      endCuts();
    },
  };
}

/**
 * The connections over which no valid token arrived yet, and over TLS those whose handshake is not over. When all
 * together hold too many bytes, the oldest are closed.
 */
class UnprovenConnections {
  readonly #sockets = new Set<Socket>();
  /** Called with each handshake that failed. Undefined without TLS. */
  readonly #onFailed: PeerListenerOptions['onRefused'] | undefined;

  constructor(onFailed: PeerListenerOptions['onRefused'] | undefined) {
    this.#onFailed = onFailed;
  }

  add(socket: Socket): void {
    const address = socket.remoteAddress; // one that is closed has none
    this.#sockets.add(socket);
    socket.once('close', () => {
      if (this.#sockets.delete(socket))
        this.#onFailed?.({ reason: 'failed handshake', status: 0, method: '', path: '', address });
    });
  }

  /** A valid token arrived, or the handshake is over. */
  prove(socket: Socket | undefined): void {
    if (socket !== undefined) this.#sockets.delete(socket);
  }

  cut(): void {
    let excess = -LIMITS.unfinishedBytes;
    for (const socket of this.#sockets) excess += this.#bytesOf(socket);
    for (const socket of this.#sockets) {
      if (excess <= 0) return;
      excess -= this.#bytesOf(socket);
      socket.destroy();
    }
  }

  closeAll(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  #bytesOf({ bytesRead, destroyed }: Socket): number {
    if (destroyed) return 0; // its event comes later
    return this.#onFailed === undefined ? bytesRead : handshakeBytes(bytesRead);
  }
}

interface ServerLimits {
  readonly maxHeaderSize: number;
  readonly headersTimeout: number;
  readonly requestTimeout: number;
  readonly keepAliveTimeout: number;
  readonly noDelay: boolean;
}

/**
 * A server without TLS. node:http is not imported, since an `import` reads all its exports, also those that load Node's `fetch`:
 * 14 MB.
 */
function plainServer(limits: ServerLimits, serve: RequestListener): Server {
  return process.getBuiltinModule('node:http').createServer(limits, serve);
}

function peerServer(limits: ServerLimits, tls: PeerTls, serve: RequestListener): Server {
  const { createServer } = process.getBuiltinModule('node:https');
  const server = createServer({ ...limits, ...tls.listener(), handshakeTimeout: HEADERS_MS }, serve);
  limitKeyUpdatesOf(server);
  tls.onRenewed?.(() => server.setSecureContext(tls.listener()));
  return server;
}

async function closeServer(server: Server, multiplexed: ReadonlySet<MultiplexedListener>): Promise<void> {
  const closed = new Promise((resolve) => server.once('close', resolve));
  server.close(); // and idle connections
  for (const connection of multiplexed) connection.leave();
  await closed;
}

function cannotListen(place: string, error: Error): OperatorError {
  return new OperatorError(
    `cannot listen for other nodes on ${place}: ${reasonOf(error)}; choose another address with cluster.listen`,
    { cause: error },
  );
}
