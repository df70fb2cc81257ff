// Keeps what a backend says of itself once, however many conversations hear it: its greeting may be kilobytes, and
// thousands of sessions hold one.

import type { Peer } from '../domain/mcp.ts';

/** Different greetings remembered: servers vary them by what a client declares, which is a handful of variants. */
const REMEMBERED = 16;

/** The peers that were heard last. */
export class PeerMemory {
  readonly #peers = new Map<string, Peer>();

  /** Gives the object that an equal peer was given before, or this one. */
  readonly intern = (peer: Peer): Peer => {
    const text = JSON.stringify(peer);
    const known = this.#peers.get(text) ?? peer;
    this.#peers.delete(text);
    this.#peers.set(text, known);
    const [oldest] = this.#peers.keys();
    if (this.#peers.size > REMEMBERED && oldest !== undefined) this.#peers.delete(oldest);
    return known;
  };
}
