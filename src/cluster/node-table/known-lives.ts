// The lives that the last read of the table had: which of them are members, how long this node has known that one has
// ended, and which rows are old enough to be deleted.

import type { StoredLife } from '../../persistence/store.ts';
import type { ReachableLife } from '../reachable-life.ts';
import type { ReadLife } from './life-rows.ts';

/** Time in which a node that stood still may go on, and store the sessions that it had not stored, in ms. */
const RETURN_MS = 15_000;

/** The lives of the last read, until the next one replaces them. */
export class KnownLives {
  #byLife: ReadonlyMap<string, ReadLife> = new Map();
  /** The times at which this node first saw that a life had ended. */
  readonly #endedAtMs = new Map<string, number>();

  get all(): readonly ReadLife[] {
    return [...this.#byLife.values()];
  }

  get(life: string): ReadLife | undefined {
    return this.#byLife.get(life);
  }

  rowOf(life: string): StoredLife | undefined {
    return this.#byLife.get(life)?.stored;
  }

  /** The member with this life; undefined for a life that has ended, and for one that the last read did not have. */
  find(life: string): ReachableLife | undefined {
    const known = this.#byLife.get(life);
    if (known === undefined || !known.isMember || known.stored.end !== undefined) return undefined;
    return { node: known.stored.node, life, address: known.address };
  }

  /** True while another node than this one goes on that is not a member. */
  hasForeign(node: string): boolean {
    return this.all.some(
      ({ stored, isMember }) => !isMember && stored.end === undefined && stored.node !== node,
    );
  }

  /** True when the process may be there still: nothing but its silence ended this life, a short time ago. */
  mayReturn(life: string, nowMs: number): boolean {
    if (this.rowOf(life)?.end?.cause !== 'expired') return false;
    return nowMs - (this.#endedAtMs.get(life) ?? nowMs) < RETURN_MS;
  }

  /** True when the process may still store sessions of this life: it may return, and does not go on under a later life. */
  mayStore(life: string, nowMs: number): boolean {
    const node = this.rowOf(life)?.node;
    const goesOn = this.all.some(({ stored }) => stored.node === node && stored.end === undefined);
    return !goesOn && this.mayReturn(life, nowMs);
  }

  /** True for a life that has ended, and whose process does not go on. */
  hasEnded(life: string, nowMs: number): boolean {
    return this.rowOf(life)?.end !== undefined && !this.mayReturn(life, nowMs);
  }

  /** Takes the place of the lives of the read before. */
  replace(byLife: ReadonlyMap<string, ReadLife>): void {
    this.#byLife = byLife;
  }

  /** The lives that this node has seen ended for this time, and whose sessions and programs are free. Called after each read. */
  old(nowMs: number, afterMs: number): string[] {
    const old: string[] = [];
    for (const [life, { stored }] of this.#byLife) {
      if (stored.end === undefined) continue;
      const sinceMs = this.#endedAtMs.get(life) ?? nowMs;
      this.#endedAtMs.set(life, sinceMs);
      if (nowMs - sinceMs >= afterMs && stored.end.frees === 'all') old.push(life);
    }
    for (const life of this.#endedAtMs.keys()) if (!this.#byLife.has(life)) this.#endedAtMs.delete(life);
    return old;
  }
}
