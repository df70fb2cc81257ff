// The connections to a TLS server whose handshake is not over. Node has another socket for a connection after its handshake: the two are
// matched by their ends.

import type { Server } from 'node:http';
import type { Socket } from 'node:net';

export class TlsHandshakes {
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

  /** The same; the handshake is over. */
  end(secure: Socket): Socket | undefined {
    const socket = this.of(secure);
    this.#sockets.delete(endsOf(secure));
    return socket;
  }
}

function endsOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`;
}
