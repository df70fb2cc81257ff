// Handshakes of TLS with backends.

import type { TLSSocket } from 'node:tls';
import { LruMap } from '../../domain/memory/lru-map.ts';
import type { Clock } from '../../domain/time/clock.ts';
import { createTurns, type RunInTurn } from './turns.ts';

/** The most connections that are read in one turn of the event loop. */
const MAX_AT_ONCE = 4;
/** Usual servers send fewer bytes in a handshake. Bytes above count with the time that checks of signatures may take. */
const USUAL_BYTES = 8 * 1024;
const MS_PER_BYTE = 10 / 1024;
/** An origin that sent more bytes in one handshake takes turns with other such origins, for the time below in ms. */
const COSTLY_BYTES = 16 * 1024;
const COSTLY_MS = 10 * 60_000;
const MAX_KNOWN = 10_000;
/** The wait between two readings of a socket, as a part of the time that its handshake has taken. */
const WAIT_SHARE = 1 / 4;

interface TlsHandshake {
  readonly secure: TLSSocket;
  readonly origin: string;
  readonly beganAtMs: number;
  /** The connection below TLS, whose bytes are counted; `secure` counts decrypted bytes. */
  readonly raw: { readonly bytesRead: number };
  isOver: boolean;
}

/**
 * The handshakes of a gateway with all its backends. OpenSSL checks every signature of a chain in the turn of the event
 * loop that reads it, 0.4 s for the longest, and a backend gets many connections at once. So until its handshake is
 * over, a socket is read for one turn of the event loop at a time, while few others are. Source: ADR 343.
 */
export class BackendHandshakes {
  /** The last time at which each origin sent a large handshake. */
  readonly #costly = new LruMap<number>(MAX_KNOWN);
  readonly #clock: Clock;
  readonly #ofCostly: RunInTurn;
  readonly #ofOthers: RunInTurn;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#ofCostly = createTurns(clock);
    this.#ofOthers = createTurns(clock, MAX_AT_ONCE);
  }

  /** Takes over the reading of a connecting socket with `onread`, until its handshake is over. */
  guard(secure: TLSSocket, origin: string): void {
    secure.once('ready', () => {
      secure.pause();
      const handshake: TlsHandshake = {
        secure,
        origin,
        beganAtMs: this.#clock.now(),
        raw: rawOf(secure),
        isOver: false,
      };
      secure.once('secureConnect', () => {
        handshake.isOver = true;
      });
      this.#await(handshake);
    });
  }

  #turnsOf(origin: string): RunInTurn {
    const atMs = this.#costly.get(origin);
    return atMs !== undefined && this.#clock.now() - atMs < COSTLY_MS ? this.#ofCostly : this.#ofOthers;
  }

  #await(handshake: TlsHandshake): void {
    const runInTurn = this.#turnsOf(handshake.origin);
    runInTurn(() => {
      // Another handshake with this origin may have sent much meanwhile.
      if (this.#turnsOf(handshake.origin) === runInTurn) return this.#read(handshake);
      return this.#await(handshake);
    });
  }

  /** Reads the socket for one turn. Resolves with the time that the checks may have taken, in ms. */
  async #read(handshake: TlsHandshake): Promise<number> {
    const { secure, origin, beganAtMs, raw } = handshake;
    if (secure.destroyed) return 0;
    const before = raw.bytesRead;
    secure.resume();
    await new Promise((resolve) => setImmediate(resolve)); // sockets are read before
    const after = raw.bytesRead;
    if (after > COSTLY_BYTES) this.#costly.set(origin, this.#clock.now());
    if (!handshake.isOver && !secure.destroyed) {
      secure.pause();
      const waitMs = Math.max(1, WAIT_SHARE * (this.#clock.now() - beganAtMs));
      this.#clock.alarm(waitMs, () => this.#await(handshake));
    }
    return MS_PER_BYTE * (unusual(after) - unusual(before));
  }
}

function unusual(bytes: number): number {
  return Math.max(0, bytes - USUAL_BYTES);
}

/** The raw connection, which Node exposes nowhere else. */
function rawOf(secure: TLSSocket): TlsHandshake['raw'] {
  const raw: unknown = Object(Reflect.get(secure, '_handle'))._parent;
  return typeof Object(raw).bytesRead === 'number' ? Object(raw) : { bytesRead: 0 };
}
