// Where a call, or a search for a binding, was tried, and how often it may be tried again. Both ask it whether there is an
// alternative, and when an opening at one instance is too slow to wait for it alone: then a call of a modern client goes on
// elsewhere, and a search opens another binding beside it. Source: ADR 101, ADR 434.

import { isNetworked } from '../../domain/instances/transport-kinds.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import type { TemplateGroup } from '../template-group.ts';

/** Ids of instances that are not chosen; undefined while there are none. */
export type ExcludedIds = ReadonlySet<string> | undefined;

/** The tries of one call or search, at the instances of one template. */
export class Tries {
  /** The number of tries that may still be made; never negative. Those of a call at an instance that it cannot leave count, too. */
  left: number;
  #excluded: Set<string> | undefined;

  /** `excluded`: ids of instances that are not tried at all. */
  constructor(left: number, excluded?: ExcludedIds) {
    this.left = left;
    if (excluded !== undefined) this.#excluded = new Set(excluded);
  }

  /** The ids of instances that failed, were silent or lack the tool. */
  get excluded(): ExcludedIds {
    return this.#excluded;
  }

  count(): void {
    if (this.left > 0) this.left -= 1;
  }

  exclude({ id }: InstanceRef): void {
    this.#excluded ??= new Set();
    this.#excluded.add(id);
  }

  /** Forgets that this instance is excluded: it may be tried again, or has a successor with the same id. */
  readmit({ id }: InstanceRef): void {
    this.#excluded?.delete(id);
  }

  /** True when another instance than this one may be tried. */
  hasAlternative({ id: own }: InstanceRef, { pool }: TemplateGroup): boolean {
    return this.left > 0 && pool.candidates.some(({ id }) => id !== own && this.#excluded?.has(id) !== true);
  }

  /**
   * The time in ms after which an opening at this instance is slow: half of what is left, `leftMs`. Undefined when there is no
   * alternative to waiting for it: only over a network does a healthy backend open at once; a program takes time to start on any
   * instance.
   */
  slowAfterMs(ref: InstanceRef, group: TemplateGroup, leftMs: number): number | undefined {
    if (!isNetworked(ref.definition) || !this.hasAlternative(ref, group)) return undefined;
    return Math.max(0, Math.ceil(leftMs / 2));
  }
}
