// When an opening at one instance is too slow to wait for it alone: then a call of a modern client goes on elsewhere, and a
// search for a binding opens another one beside it. Source: ADR 101, ADR 429.

import { isNetworked } from '../../domain/instances/transport-kinds.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import type { TemplateGroup } from '../template-group.ts';
import type { ExcludedIds } from './call-route.ts';

interface OpeningUnderWay {
  readonly group: TemplateGroup;
  /** Instances besides that of the opening which are not tried. */
  readonly excluded: ExcludedIds;
  /** The number of other instances that may still be tried. */
  readonly attemptsLeft: number;
  /** The time until the call or the search ends, in ms. */
  readonly leftMs: number;
}

/**
 * The time in ms after which an opening at this instance is slow: half of what is left. Undefined when there is no alternative
 * to waiting for it: only over a network does a healthy backend open at once; a program takes time to start on any instance.
 */
export function slowAfterMs(ref: InstanceRef, opening: OpeningUnderWay): number | undefined {
  if (!isNetworked(ref.definition) || !hasAlternative(ref, opening)) return undefined;
  return Math.max(0, Math.ceil(opening.leftMs / 2));
}

/** True when another instance than this one may be tried. */
export function hasAlternative(
  { id: own }: InstanceRef,
  { group, excluded, attemptsLeft }: Omit<OpeningUnderWay, 'leftMs'>,
): boolean {
  return attemptsLeft > 0 && group.pool.candidates.some(({ id }) => id !== own && excluded?.has(id) !== true);
}
