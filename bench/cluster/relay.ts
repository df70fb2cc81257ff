// A TCP relay between one node and the database, or the other nodes. It can refuse connections, as a stopped server does, or hold all bytes, as a network
// that drops packets does.

import { connect, createServer, type Server, type Socket } from 'node:net';
import { portOf } from '../port.ts';

export class Relay {
  readonly #to: { readonly host: string; readonly port: number };
  readonly #host: string;
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;
  #port = 0;
  #isHeld = false;

  /** `host`: the address to listen on. */
  constructor(to: { readonly host: string; readonly port: number }, host = '127.0.0.1') {
    this.#to = to;
    this.#host = host;
  }

  get port(): number {
    return this.#port;
  }

  get host(): string {
    return this.#host;
  }

  /** Listens; on the same port after `refuse`. */
  async pass(): Promise<void> {
    this.#server ??= createServer((socket) => this.#relay(socket)).listen(this.#port, this.#host);
    this.#port ||= await portOf(this.#server);
    this.#isHeld = false;
    for (const socket of this.#sockets) socket.resume();
  }

  /** Breaks all connections and accepts none. */
  refuse(): void {
    this.#server?.close();
    this.#server = undefined;
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Keeps all connections, accepts more, and passes nothing. */
  hold(): void {
    this.#isHeld = true;
    for (const socket of this.#sockets) socket.pause();
  }

  #relay(near: Socket): void {
    const far = connect(this.#to);
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      this.#sockets.add(socket);
      socket.on('data', (bytes) => void other.write(bytes));
      socket.on('error', () => other.destroy());
      socket.on('close', () => {
        this.#sockets.delete(socket);
        other.destroy();
      });
      if (this.#isHeld) socket.pause();
    }
  }
}
