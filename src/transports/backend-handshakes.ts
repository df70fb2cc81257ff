// Handshakes of TLS with backends. OpenSSL checks every signature of a chain in the turn of the event loop that
// reads it, 0.4 s for the longest, and a backend gets many connections at once. So until its handshake is over, a
// socket is read for one turn of the event loop at a time, while no other one is. Source: ADR 354.

import type { TLSSocket } from 'node:tls';
import { LruMap } from '../domain/memory/lru-map.ts';
import { systemClock, usedMs } from '../domain/time/clock.ts';
import { Turns } from '../domain/time/turns.ts';

/** Of CPU time, like the next one: usual handshakes take 1 to 2 ms. */
const BRIEF_MS = 25;
/** An origin with a handshake that took longer takes turns with others of this kind, for the time below. */
const LONG_MS = 100;
const COSTLY_MS = 10 * 60_000;
const MAX_KNOWN = 10_000;
/** The time between two readings of a socket, as a part of its time so far. */
const WAIT_SHARE = 1 / 4;

/** On a machine with much other work no handshake seems costly. */
const CPU = { now: usedMs, alarm: systemClock.alarm };

interface Handshake {
  readonly secure: TLSSocket;
  readonly origin: string;
  readonly beganAtMs: number;
  isOver: boolean;
}

export class BackendHandshakes {
  /** When a handshake with each origin took long last. */
  readonly #costly = new LruMap<number>(MAX_KNOWN);
  readonly #ofCostly = new Turns(CPU);
  readonly #ofOthers = new Turns(CPU, BRIEF_MS);

  /** Takes over the reading of a socket with `onread`, which is being connected, until its handshake is over. */
  guard(secure: TLSSocket, origin: string): void {
    secure.once('ready', () => {
      secure.pause();
      const handshake: Handshake = { secure, origin, beganAtMs: systemClock.now(), isOver: false };
      secure.once('secureConnect', () => {
        handshake.isOver = true;
      });
      this.#await(handshake);
    });
  }

  #turnsOf(origin: string): Turns {
    const atMs = this.#costly.get(origin);
    return atMs !== undefined && systemClock.now() - atMs < COSTLY_MS ? this.#ofCostly : this.#ofOthers;
  }

  #await(handshake: Handshake): void {
    const turns = this.#turnsOf(handshake.origin);
    turns.run(() => {
      // Another handshake with this origin may have taken long meanwhile.
      if (this.#turnsOf(handshake.origin) === turns) return this.#read(handshake);
      return this.#await(handshake);
    });
  }

  async #read(handshake: Handshake): Promise<void> {
    const { secure, origin, beganAtMs } = handshake;
    if (secure.destroyed) return;
    const { bytesRead } = secure;
    const startedAtMs = usedMs();
    secure.resume();
    await new Promise((resolve) => setImmediate(resolve)); // sockets are read before
    const tookMs = usedMs() - startedAtMs;
    if (tookMs > LONG_MS && secure.bytesRead > bytesRead) this.#costly.set(origin, systemClock.now());
    if (handshake.isOver || secure.destroyed) return;
    secure.pause();
    const waitMs = Math.max(1, WAIT_SHARE * (systemClock.now() - beganAtMs));
    systemClock.alarm(waitMs, () => this.#await(handshake));
  }
}
