// The strategy `consistent_hash`: equal keys lead to the same candidate. Also reads the key of a call.

import { ANONYMOUS, countedIdOf } from '../domain/accounts/principal.ts';
import { isFields, type JsonFields, JsonText } from '../domain/json/json.ts';
import { memberBytes } from '../domain/json/json-scanner.ts';
import { hashOf, mixed } from '../domain/nodes/rendezvous.ts';
import type { Candidate, Strategy, StrategyOptions, StrategyRequest } from './strategy-types.ts';

/** The values of `hash_on`: the caller, or the name of an argument behind the prefix `argument:`. */
export const PRINCIPAL = 'principal';
export const ARGUMENT = 'argument:';

/** The most calls in flight of a candidate, as a multiple of the mean. */
const LOAD_BOUND = 1.25;
/** The number of bytes of an argument that are read; a difference behind them does not count. */
const MAX_KEY_BYTES = 4096;

/**
 * Rendezvous hashing with bounded loads: each key (a caller, or the value of an argument) has an order of all candidates.
 * It gets the first one with fewer calls in flight than 1.25 times their mean, rounded up, at least 1. A candidate
 * that comes or goes moves only the keys that it is first for. Weights are ignored. Calls without a key, such as those of
 * anonymous callers, are for `withoutKey`. Source: ADR 7.
 */
export function consistentHash<C extends Candidate>(
  withoutKey: Strategy<C>,
  { policy, activeCalls }: StrategyOptions,
): Strategy<C> {
  const keys: KnownKeys = new WeakMap();
  let hashed: readonly C[] = [];
  let hashes = new Uint32Array();
  return (candidates, mayTake, request) => {
    const key = requestKey(request, policy().hashOn, keys);
    if (key === undefined) return withoutKey(candidates, mayTake, request);
    if (candidates !== hashed) {
      hashed = candidates;
      hashes = Uint32Array.from(candidates, ({ id }) => hashOf(id));
    }
    const hash = hashOf(key);
    const firstBelow = (mean: () => number): C | undefined => {
      let bound: number | undefined;
      return firstByHash(candidates, hashes, hash, (candidate) => {
        if (!mayTake(candidate)) return false;
        if (candidate.activeCalls === 0) return true;
        bound ??= LOAD_BOUND * mean();
        return candidate.activeCalls < bound;
      });
    };
    const ofAll = firstBelow(() => activeCalls() / candidates.length);
    return ofAll ?? firstBelow(() => meanInFlight(candidates, mayTake));
  };
}

/**
 * The keys that were read from large arguments. One call may ask a strategy several times, and each reading takes
 * some milliseconds.
 */
type KnownKeys = WeakMap<JsonText, { readonly hashOn: string; readonly key: string | undefined }>;

function requestKey(
  { callerId, params }: StrategyRequest,
  hashOn: string,
  known: KnownKeys,
): string | undefined {
  if (hashOn === PRINCIPAL)
    return callerId === undefined || callerId === ANONYMOUS.id ? undefined : countedIdOf(callerId);
  const name = hashOn.slice(ARGUMENT.length);
  const { arguments: given } = params ?? {};
  if (!(given instanceof JsonText)) return keyIn(textOfMember(given, name));
  if (given.bytes.length <= MAX_KEY_BYTES) return keyIn(memberBytes(given.bytes, name));
  const before = known.get(given);
  if (before?.hashOn === hashOn) return before.key;
  const key = keyIn(memberBytes(given.bytes, name));
  known.set(given, { hashOn, key });
  return key;
}

function keyIn(value: Buffer | undefined): string | undefined {
  return value?.toString('latin1', 0, MAX_KEY_BYTES);
}

/** The text of a member of arguments that did not come as text, such as those of an embedding program. */
function textOfMember(given: JsonFields[string], name: string): Buffer | undefined {
  if (!isFields(given) || !Object.hasOwn(given, name)) return undefined;
  return Buffer.from(JSON.stringify(given[name] ?? null));
}

/**
 * The candidate of highest rank for this key that may take the call. The rank of a candidate is a hash of the
 * key and its id: so the order is random but fixed, and different for each key. Only candidates above the highest
 * rank so far are asked: about seven of 1,000.
 */
function firstByHash<C>(
  candidates: readonly C[],
  hashes: Uint32Array,
  key: number,
  mayTake: (candidate: C) => boolean,
): C | undefined {
  let chosen: C | undefined;
  let highest = -1;
  for (let index = 0; index < hashes.length; index += 1) {
    const rank = mixed((hashes[index] ?? 0) ^ key);
    if (rank <= highest) continue;
    const candidate = candidates[index];
    if (candidate === undefined || !mayTake(candidate)) continue;
    chosen = candidate;
    highest = rank;
  }
  return chosen;
}

/** The mean of the calls in flight over the candidates that may take the call, of which there is at least one. */
function meanInFlight<C extends Candidate>(
  candidates: readonly C[],
  mayTake: (candidate: C) => boolean,
): number {
  let [count, total] = [0, 0];
  for (const candidate of candidates) {
    if (!mayTake(candidate)) continue;
    count += 1;
    total += candidate.activeCalls;
  }
  return total / count;
}
