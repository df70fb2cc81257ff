// The results of the handshakes with one backend that its conversations keep: equal ones once, and large ones counted.

import { hash } from 'node:crypto';
import { backendUnavailable, HANDSHAKES_HOLD_TOO_MUCH } from '../../../domain/errors/backend-errors.ts';
import type { Handshake } from '../../../domain/mcp/mcp.ts';
import { keptBytes } from '../../../domain/memory/held-bytes.ts';
import { LruMap } from '../../../domain/memory/lru-map.ts';
import type { OpenOptions } from '../../open-options.ts';
import type { HttpSession } from './http-session.ts';

/** The most different small handshakes that are remembered: a server has a few variants, by the declarations of its client. */
const MAX_SMALL = 16;

interface LargeHandshake {
  readonly handshake: Handshake;
  readonly bytes: number;
  uses: number;
}

/**
 * What the conversations of one transport have from their handshakes. A large one counts in memory until the last conversation
 * with it has ended: each session of a client may get another one. Source: ADR 89.
 */
export class KeptHandshakes {
  readonly #count: NonNullable<OpenOptions['countHandshake']>;
  /** Undefined before the first one. */
  #small: LruMap<Handshake> | undefined;
  /** By their digest. */
  #large: Map<string, LargeHandshake> | undefined;

  /** `count`: see OpenOptions. */
  constructor(count: OpenOptions['countHandshake'] = () => true) {
    this.#count = count;
  }

  /**
   * Keeps the handshake of a session for one conversation; an equal one that is kept takes its place. Throws BACKEND_UNAVAILABLE
   * when there is no room, and then the session has to be deleted.
   */
  keep(session: Pick<HttpSession, 'handshake'>): void {
    const { handshake } = session;
    const bytes = keptBytes(handshake.greeting); // it has all that the other fields have
    const text = JSON.stringify(handshake);
    if (bytes === 0) {
      this.#small ??= new LruMap(MAX_SMALL);
      session.handshake = this.#small.get(text) ?? handshake;
      this.#small.set(text, session.handshake);
      return;
    }
    this.#large ??= new Map();
    const digest = hash('sha256', text, 'base64url');
    const known = this.#large.get(digest);
    if (known === undefined && !this.#count(bytes))
      throw backendUnavailable(HANDSHAKES_HOLD_TOO_MUCH, { delivered: 'no' });
    const { uses, ...kept } = known ?? { handshake, bytes, uses: 0 };
    this.#large.set(digest, { ...kept, uses: uses + 1 });
    session.handshake = kept.handshake;
  }

  /** A conversation with this handshake has ended. */
  release(handshake: Handshake): void {
    for (const [digest, large] of this.#large ?? []) {
      if (large.handshake !== handshake) continue;
      large.uses -= 1;
      if (large.uses > 0) return;
      this.#large?.delete(digest);
      this.#count(-large.bytes);
      return;
    }
  }
}
