// What every spec of a strategy needs: candidates made of a few words, seeded randomness, and counting.
// Independent of the strategies.

import type {
  Candidate,
  Strategy,
  StrategyOptions,
  StrategyRequest,
} from '../../src/balancing/strategy-types.ts';

/** A candidate whose load a spec may change. */
export type TestCandidate = { -readonly [Field in keyof Candidate]: Candidate[Field] };

export type Candidates<C extends Candidate = TestCandidate> = readonly [C, ...C[]];

type MayTake<C> = (candidate: C) => boolean;

/** A healthy, idle candidate of weight 1 with room for 256; `fields` says what is different. */
export function candidate(id: string, fields: Partial<Candidate> = {}): TestCandidate {
  return { id, weight: 1, activeCalls: 0, capacity: 256, successRate: 1, latencyMs: undefined, ...fields };
}

/** One candidate per id. */
export function candidates(first: string, ...others: string[]): Candidates {
  return [candidate(first), ...others.map((id) => candidate(id))];
}

/** One candidate per weight, with the ids a, b, c and so on. */
export function weighted(first: number, ...others: number[]): Candidates {
  const named = (weight: number, index: number) =>
    candidate(String.fromCharCode('a'.charCodeAt(0) + index), { weight });
  return [named(first, 0), ...others.map((weight, index) => named(weight, index + 1))];
}

/** Numbers in [0, 1) that are the same in every run (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** The choice of a strategy among candidates in any order, of which all may take the call by default. */
export function choose<C extends Candidate>(
  strategy: Strategy<C>,
  from: Candidates<C>,
  mayTake: MayTake<C> = () => true,
  request: StrategyRequest = {},
): C {
  const chosen = strategy(inOrder(from), mayTake, request);
  if (chosen === undefined) throw new Error('the strategy chose no candidate');
  return chosen;
}

/** Picks `times` times from the same candidates and returns the ids in order. */
export function picks(strategy: Strategy<TestCandidate>, from: Candidates, times: number): string[] {
  const candidates = inOrder(from);
  return Array.from({ length: times }, () => choose(strategy, candidates).id);
}

/** As the pool passes them: by id, and the same list while they stay. */
export function inOrder<C extends Candidate>(from: Candidates<C>): Candidates<C> {
  const isInOrder = from.every(({ id }, index) => index === 0 || id > (from[index - 1]?.id ?? ''));
  return isInOrder ? from : (from.toSorted((a, b) => (a.id < b.id ? -1 : 1)) as [C, ...C[]]);
}

/** How often each id occurs, in the order of the ids. */
export function counted(ids: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const id of [...ids].sort()) counts[id] = (counts[id] ?? 0) + 1;
  return counts;
}

/** Options of a strategy, for candidates that are idle. */
export function options(given: Partial<StrategyOptions> = {}): StrategyOptions {
  return { policy: () => ({ hashOn: 'principal' }), activeCalls: () => 0, random: Math.random, ...given };
}
