// The lives that have ended: how long this node has known that, and which rows are old enough to be deleted.

import type { Known } from './life-rows.ts';

export class EndedLives {
  /** When this node first saw that a life had ended. */
  readonly #endedAtMs = new Map<string, number>();

  /** Those that this node has seen ended for this time, and whose sessions and programs are free. `known`: as just read. */
  old(known: ReadonlyMap<string, Known>, nowMs: number, afterMs: number): string[] {
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
