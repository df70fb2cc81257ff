// A TCP relay between one node and the database, Redis, or the other nodes. It can refuse connections, as a stopped server does, hold all bytes, as a
// network that drops packets does, or pass them late.

import { connect, createServer, type Server, type Socket } from 'node:net';
import { portOf } from '../port.ts';

export class Relay {
  readonly #to: { readonly host: string; readonly port: number };
  readonly #host: string;
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;
  #port = 0;
  #isHeld = false;
  #lateMs = 0;

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
    this.#lateMs = 0;
    for (const socket of this.#sockets) socket.resume();
  }

  /** Passes everything later by this time, in each direction. */
  delay(ms: number): void {
    this.#lateMs = ms;
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
      const late: { readonly bytes: Buffer; readonly atMs: number }[] = [];
      const pass = (): void => {
        for (let [next] = late; next !== undefined; [next] = late) {
          const leftMs = next.atMs - performance.now();
          if (leftMs > 0) return void setTimeout(pass, leftMs);
          other.write(next.bytes);
          late.shift();
        }
      };
      socket.on('data', (bytes) => {
        if (this.#lateMs === 0 && late.length === 0) other.write(bytes);
        else if (late.push({ bytes, atMs: performance.now() + this.#lateMs }) === 1) pass();
      });
      socket.on('error', () => other.destroy());
      socket.on('close', () => {
        this.#sockets.delete(socket);
        other.destroy();
      });
      if (this.#isHeld) socket.pause();
    }
  }
}
