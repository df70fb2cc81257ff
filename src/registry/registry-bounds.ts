// How much of each kind a registry holds, in the database as on each node. Those of templates: LIMITS.templates.

import { registryFull } from '../domain/errors/registry-errors.ts';
import { keptBytes } from '../domain/memory/held-bytes.ts';
import type { StoredView } from '../domain/views/view.ts';

interface KindBounds {
  readonly most: number;
  /** The most bytes of memory of the large ones (keptBytes). */
  readonly mostBytes: number;
  /** The kind, and its large ones, as errors name them. */
  readonly names: string;
  readonly largeNames: string;
}

export const REGISTRY_BOUNDS = {
  instances: {
    most: 10_000,
    mostBytes: 64 * 1024 * 1024,
    names: 'instances',
    largeNames: 'large definitions',
  },
  definitions: {
    most: 1_000,
    mostBytes: 64 * 1024 * 1024,
    names: 'stored definitions',
    largeNames: 'large definitions',
  },
  /** Their compiled form takes up to four times as much. */
  views: { most: 1_000, mostBytes: 64 * 1024 * 1024, names: 'views', largeNames: 'large views' },
} as const satisfies Readonly<Record<string, KindBounds>>;

/** What a registry holds of one kind: their number, and the memory of the large ones in bytes. */
interface Held {
  readonly count: number;
  readonly bytes: number;
}

/** Throws REGISTRY_FULL when so much more than what is held would exceed a bound. What replaces another has a count of 0. */
export function refuseOverflow(
  { most, mostBytes, names, largeNames }: KindBounds,
  held: Held,
  more: Held,
): void {
  if (more.count > 0 && held.count + more.count > most) throw registryFull(names, most);
  if (more.bytes > 0 && held.bytes + more.bytes > mostBytes)
    throw registryFull(`MiB of ${largeNames}`, mostBytes / 1024 ** 2);
}

/** The memory of a view that counts: that of its definition, and that of its names. */
export function viewBytes(view: Pick<StoredView, 'definition' | 'names'> | undefined): number {
  return view === undefined ? 0 : keptBytes(view.definition) + keptBytes(view.names);
}
