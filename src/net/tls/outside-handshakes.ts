// TLS with servers that outsiders name.

import { connect as connectTcp, isIP, type LookupFunction, type Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import { LruMap } from '../../domain/memory/lru-map.ts';
import type { Clock } from '../../domain/time/clock.ts';
import { CLIENT_TLS } from './client-tls.ts';
import { limitKeyUpdates } from './key-updates.ts';
import { createTurns, type RunInTurn } from './turns.ts';

/** Chains of public authorities have up to some 10 kB. */
const MAX_HANDSHAKE_BYTES = 32 * 1024;
const MAX_KNOWN = 10_000;

interface OutsideConnection {
  readonly host: string;
  readonly port: number;
  readonly lookup?: LookupFunction | undefined;
  /** Certificates of authorities, in PEM. */
  readonly ca?: string | undefined;
}

/**
 * Opens TLS connections to servers that outsiders name. Node has OpenSSL check every signature of a chain, also when no authority
 * is known for it: 45 kB of them hold the process for 0.4 s. So until a handshake is over, the bytes of its server are bounded,
 * and read in turns that leave time to others. Source: ADR 343.
 */
export class OutsideHandshakes {
  /** The servers whose last handshake was finished: they do not wait for the others. */
  readonly #finished = new LruMap<true>(MAX_KNOWN);
  readonly #ofFinished: RunInTurn;
  readonly #ofOthers: RunInTurn;

  constructor(clock: Clock) {
    this.#ofFinished = createTurns(clock);
    this.#ofOthers = createTurns(clock);
  }

  connect({ host, port, lookup, ca }: OutsideConnection): Socket {
    const server = `${host}:${port}`;
    const runInTurn = this.#finished.has(server) ? this.#ofFinished : this.#ofOthers;
    this.#finished.delete(server);
    const stream = new HandshakeStream(connectTcp({ host, port, ...(lookup && { lookup }) }), runInTurn);
    const servername = isIP(host) === 0 ? host : '';
    const secure = connectTls({ socket: stream, host, servername, ca, ...CLIENT_TLS });
    limitKeyUpdates(secure);
    return secure.once('secureConnect', () => {
      stream.isOver = true;
      if (secure.authorized) this.#finished.set(server, true);
    });
  }
}

class HandshakeStream extends Duplex {
  readonly #socket: Socket;
  readonly #runInTurn: RunInTurn;
  #received = 0;
  #isWaiting = false;
  /** True once the handshake is over: further bytes are passed on at once. */
  isOver = false;

  constructor(socket: Socket, runInTurn: RunInTurn) {
    super();
    this.#socket = socket;
    this.#runInTurn = runInTurn;
    socket.on('data', (bytes) => this.#take(bytes));
    socket.on('end', () => this.push(null));
    socket.on('error', (error) => this.destroy(error));
    socket.on('close', () => this.destroy());
  }

  override _read(): void {
    if (!this.#isWaiting) this.#socket.resume();
  }

  override _write(bytes: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    this.#socket.write(bytes, done);
  }

  override _final(done: () => void): void {
    this.#socket.end(done);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#socket.destroy();
    done(error);
  }

  #take(bytes: Buffer): void {
    if (this.isOver) {
      if (!this.push(bytes)) this.#socket.pause();
      return;
    }
    this.#received += bytes.length;
    if (this.#received > MAX_HANDSHAKE_BYTES) {
      this.destroy(new Error('the handshake is too long'));
      return;
    }
    this.#isWaiting = true;
    this.#socket.pause();
    this.#runInTurn(() => {
      this.#isWaiting = false;
      if (this.destroyed) return;
      this.push(bytes);
      this.#socket.resume();
    });
  }
}
