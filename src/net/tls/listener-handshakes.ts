// The connections to a TLS server whose handshake is not over.

import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/**
 * The memory of a handshake at its beginning, and the copies that it makes of the received bytes: 23 kB and 4.5 copies were
 * measured. Source: ADR 190.
 */
const HANDSHAKE_BYTES = 24 * 1024;
const HANDSHAKE_COPIES = 5;

/** Bytes of memory of a handshake that is not over. */
export function handshakeBytes(received: number): number {
  return HANDSHAKE_BYTES + HANDSHAKE_COPIES * received;
}

/**
 * Finds the earlier socket of a connection. Node has another socket for a connection after its handshake: the two are
 * matched by their ends.
 */
export class ListenerHandshakes {
  readonly #sockets = new Map<string, Socket>();

  constructor(server: Server) {
    server.on('connection', (socket: Socket) => {
      const ends = endsOf(socket);
      this.#sockets.set(ends, socket);
      socket.once('close', () => {
        if (this.#sockets.get(ends) === socket) this.#sockets.delete(ends);
      });
    });
  }

  /** The socket that Node has had for this connection so far. */
  of(secure: Socket): Socket | undefined {
    return this.#sockets.get(endsOf(secure));
  }

  /** The same socket as `of` gives, at the end of the handshake: the socket is forgotten. */
  end(secure: Socket): Socket | undefined {
    const socket = this.of(secure);
    this.#sockets.delete(endsOf(secure));
    return socket;
  }
}

function endsOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`;
}
