// The lives that have ended: how long this node has known that, and which rows are old enough to be deleted.

import type { ReadLife } from './life-rows.ts';

/** Time in which a node that stood still may go on, and store the sessions that it had not stored, in ms. */
const RETURN_MS = 15_000;

export class EndedLives {
  /** When this node first saw that a life had ended. */
  readonly #endedAtMs = new Map<string, number>();

  /** True when the process may be there still: nothing but its silence ended this life, a short time ago. */
  mayReturn(life: ReadLife | undefined, nowMs: number): boolean {
    if (life?.stored.end?.cause !== 'expired') return false;
    return nowMs - (this.#endedAtMs.get(life.stored.life) ?? nowMs) < RETURN_MS;
  }

  /** True for a life that has ended, and whose process does not go on. */
  isSure(life: ReadLife | undefined, nowMs: number): boolean {
    return life?.stored.end !== undefined && !this.mayReturn(life, nowMs);
  }

  /** Lives that this node has seen ended for this time, and whose sessions and programs are free. `known`: as just read. */
  old(known: ReadonlyMap<string, ReadLife>, nowMs: number, afterMs: number): string[] {
    const old: string[] = [];
    for (const [life, { stored }] of known) {
      if (stored.end === undefined) continue;
      const sinceMs = this.#endedAtMs.get(life) ?? nowMs;
      this.#endedAtMs.set(life, sinceMs);
      if (nowMs - sinceMs >= afterMs && stored.end.frees === 'all') old.push(life);
    }
    for (const life of this.#endedAtMs.keys()) if (!known.has(life)) this.#endedAtMs.delete(life);
    return old;
  }
}
