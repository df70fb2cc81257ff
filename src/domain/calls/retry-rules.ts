// The rules of retries and hedges: whether what has failed is done again, and whether one more begins beside what is silent. For calls, for
// openings of conversations, and for requests of the gateway itself. They are pure: the code that asks knows what happened and how often it
// may still be done, and does it. Nothing else decides. The budget is in actors/calls/retries.ts. Source: ADR 9, ADR 40, ADR 150.

import type { GatewayError } from '../errors/errors.ts';

/** A call, an opening or a request that has failed. */
export interface Failed {
  readonly error: GatewayError;
  /** Doing it twice does no harm. */
  readonly mayRepeat: boolean;
}

/** How often it may still be done. */
export interface TriesLeft {
  /** In the same conversation, once the cause of a refusal is removed. Default: never. */
  readonly here?: number;
  /** At another instance, or where its route leads. */
  readonly elsewhere: number;
}

/**
 * `here`: in the same conversation, now. `elsewhere`: where its route finds an instance. `stop`: the failure is final. What certainly did
 * not arrive may be done again; what perhaps did, if it does no harm; never what was answered.
 */
export function nextAfter(
  { error, mayRepeat }: Failed,
  { here = 0, elsewhere }: TriesLeft,
): 'here' | 'elsewhere' | 'stop' {
  const { delivered, facts } = error;
  if (delivered === 'yes' || (delivered === 'unknown' && !mayRepeat)) return 'stop';
  if (facts.isRepaired === true && here > 0) return 'here';
  return elsewhere > 0 ? 'elsewhere' : 'stop';
}

/** True when one more may begin elsewhere, beside what is silent and continues. `isAffordable`: the retry budget has room for it. */
export function mayHedge(
  { mayRepeat }: Pick<Failed, 'mayRepeat'>,
  { elsewhere }: TriesLeft,
  isAffordable: boolean,
): boolean {
  return mayRepeat && elsewhere > 0 && isAffordable;
}
