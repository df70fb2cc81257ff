// The strategies: each chooses one of the candidates that may take a call. The pool says which may: not those that
// are full, ejected or already tried; unhealthy and draining ones are no candidates. Source: ADR 7, ADR 130.

import { isFields, type JsonFields, JsonText } from '../domain/json/json.ts';
import { memberBytes } from '../domain/json/json-scanner.ts';
import { hashOf, mixed } from '../domain/nodes/rendezvous.ts';
import { bestLatencyMs, healthScore, type Measured } from './health-score.ts';

/** An instance as strategies see it. Reading is cheap: the numbers are in memory. */
export interface Candidate extends Measured {
  /** Unique in the pool. */
  readonly id: string;
  /** Positive integer. */
  readonly weight: number;
  /** Calls that fill its capacity: not those whose backend waits for its client. */
  readonly activeCalls: number;
  /** Another node runs it: between equals, one of this node is chosen. Default false. */
  readonly isElsewhere?: boolean;
  /** Calls at an instance of another node that are not among `activeCalls`. Default 0. */
  readonly otherCalls?: number;
  /** Most exchanges; at this number the pool leaves the candidate out. */
  readonly capacity: number;
}

/** What a strategy may read of the request that it chooses for; of a new session only its caller is known. */
export interface StrategyRequest {
  /** Id of the principal, by which limits are counted; undefined for an anonymous one. */
  readonly caller?: string | undefined;
  readonly params?: JsonFields | undefined;
}

/**
 * Chooses one of the candidates that may take the call (`mayTake`), synchronously; undefined when none may.
 * `candidates` are in the order of their ids, and another list whenever they change. Asks about as few as
 * possible. May remember earlier choices.
 */
export type Strategy<C extends Candidate> = (
  candidates: readonly C[],
  mayTake: (candidate: C) => boolean,
  request: StrategyRequest,
) => C | undefined;

/** The values of `hash_on`: the caller, or behind this prefix the name of an argument. */
export const PRINCIPAL = 'principal';
export const ARGUMENT = 'argument:';

interface StrategyOptions {
  /** The settings in force. Default: those of the gateway. */
  readonly policy?: () => { readonly hashOn: string };
  /** Active calls at all candidates. Default: their sum. */
  readonly activeCalls?: () => number;
  /** Returns [0, 1). Default: Math.random. */
  readonly random?: () => number;
}

/** Makes a strategy with its own memory. */
export type StrategyFactory = <C extends Candidate>(options?: StrategyOptions) => Strategy<C>;

interface StrategyRow {
  /** Completes "a call goes to ...". */
  readonly meaning: string;
  readonly create: StrategyFactory;
}

/** Most candidates that `least_connections` compares for a call: the next ones in turn. Source: ADR 130. */
const MAX_COMPARED = 64;
/** Most candidates of which `health_based` computes the scores for a call. */
const MAX_SCORED = 16;
/** Draws of candidates that may not take the call, before all are asked. */
const MAX_VAIN_DRAWS = 8;
/** The least probability of a candidate of `health_based`, as a share of the best candidate's. */
const FLOOR = 0.05;
/** Calls in flight of a candidate of `consistent_hash`, as a multiple of the mean. */
const LOAD_BOUND = 1.25;
/** Bytes of an argument that `consistent_hash` reads; a difference behind them does not count. */
const MAX_KEY_BYTES = 4096;
/**
 * Most absent candidates (full, down, gone) whose credits `weighted_round_robin` remembers; above it all credits
 * are forgotten.
 */
const MAX_AWAY = 1_000;
/** Credits that differ by less than this, a rounding error, are equal: the first in the list comes first. */
const ROUNDING = 1e-9;

/** Every strategy by the name it has in settings. */
export const STRATEGIES = table({
  /** In the order of their ids. While the candidates stay the same, no two counts differ by more than one. */
  round_robin: {
    meaning: 'each in turn',
    create: () => inTurns(() => 0),
  },

  /**
   * The fewest calls, those of other nodes included; of equal numbers, those of this node first. Further ones take turns, so that
   * an idle pool is used evenly. Among more than MAX_COMPARED candidates, the first idle one in turn, or else the lowest of the
   * next MAX_COMPARED. The count is right only if the send that counts follows the pick without an `await`.
   */
  least_connections: {
    meaning: 'the one with the fewest calls in flight',
    create: () =>
      inTurns((candidate) => (candidate.isElsewhere ? callsThere(candidate) + 0.5 : candidate.activeCalls)),
  },

  /**
   * Smooth weighted round robin, keyed by id. At every pick each candidate earns its share of one call; the candidate with the
   * highest credit gets the call and pays for it. Over as many calls as the sum of the weights, each candidate gets exactly its
   * weight: 3:1 over 8 picks gives 6:2.
   *
   * Credit is counted in calls, not in weights as in the common form of the algorithm. The order is the same while the candidates
   * stay; but when a heavy one leaves, the light ones have about one call of credit at most, not the whole weight, which would be
   * spent in one long run. Absent candidates neither earn nor pay.
   *
   * A candidate is asked for its weight, and whether it may take calls, when it is to be chosen, and one more at
   * each pick in turn: reading the numbers of 1,000 instances would take longer than the rest of the pick.
   */
  weighted_round_robin: {
    meaning: 'each in turn, by weight',
    create: <C extends Candidate>(): Strategy<C> => {
      const remembered = new Map<string, number>();
      let known: readonly C[] = [];
      let credits = new Float64Array();
      let weights = new Float64Array(); // 0: may not take calls
      let total = 0;
      let turn = 0;
      const read = (candidates: readonly C[]): void => {
        for (const [index, { id }] of known.entries()) remembered.set(id, credits[index] ?? 0);
        if (remembered.size > candidates.length + MAX_AWAY) remembered.clear();
        known = candidates;
        credits = Float64Array.from(candidates, ({ id }) => remembered.get(id) ?? 0);
        weights = Float64Array.from(candidates, ({ weight }) => weight);
        total = sum(weights);
        turn = 0;
      };
      return (candidates, mayTake) => {
        if (candidates !== known) read(candidates);
        const ask = (index: number): boolean => {
          const candidate = candidates[index];
          if (candidate === undefined) return false;
          const weight = mayTake(candidate) ? candidate.weight : 0;
          total += weight - (weights[index] ?? 0);
          weights[index] = weight;
          return weight > 0;
        };
        turn = (turn + 1) % candidates.length;
        ask(turn);
        let index = highestCredit(credits, weights, total);
        if (!ask(index)) {
          // Also those that had no room when they were asked.
          for (const other of candidates.keys()) ask(other);
          index = highestCredit(credits, weights, total);
        }
        if (index < 0) return undefined;
        earn(credits, weights, total);
        credits[index] = (credits[index] ?? 0) - 1;
        return candidates[index];
      };
    },
  },

  /**
   * Draws with a probability proportional to the score squared: half the score, a quarter of the calls. The least probability is
   * 5 % of the greatest, so that a recovered instance is noticed. When all scores are 0, all probabilities are equal. More than
   * MAX_SCORED candidates are sampled first.
   */
  health_based: {
    meaning: 'more often to those with better health scores',
    create: ({ random = Math.random } = {}) => {
      return (candidates, mayTake) => {
        const scored = sample(candidates, mayTake, MAX_SCORED, random);
        const best = bestLatencyMs(scored);
        const scores = scored.map((candidate) => healthScore(candidate, best));
        const floor = Math.max(...scores) ** 2 * FLOOR;
        const chances = scores.map((score) => (floor === 0 ? 1 : Math.max(score ** 2, floor)));
        let rest = random() * sum(chances);
        const drawn = scored.find((_, index) => {
          rest -= chances[index] ?? 0;
          return rest < 0;
        });
        return drawn ?? scored.at(-1); // a rounding remainder belongs to the last one
      };
    },
  },

  /** Every candidate with the same probability; weights and load are ignored. The only strategy without a memory. */
  random: {
    meaning: 'any, by chance',
    create: ({ random = Math.random } = {}) => {
      return (candidates, mayTake) => {
        const drawn = sample(candidates, mayTake, 1, random);
        return drawn[Math.floor(random() * drawn.length)];
      };
    },
  },

  /**
   * Rendezvous hashing with bounded loads: each key (a caller, or the value of an argument) has an order of all
   * candidates of its own, and gets the first one with fewer than 1.25 times the mean of the calls in flight,
   * rounded up, at least 1. A candidate that comes or goes moves only the keys that it is first for; weights are
   * ignored. Calls without a key take turns. Source: ADR 130.
   */
  consistent_hash: {
    meaning:
      'the same one for the same caller or argument, while that is not busier than 1.25 times the mean',
    create: <C extends Candidate>({ policy, activeCalls }: StrategyOptions = {}): Strategy<C> => {
      const inTurn = inTurns<C>(() => 0);
      const keys: KnownKeys = new WeakMap();
      let hashed: readonly C[] = [];
      let hashes = new Uint32Array();
      return (candidates, mayTake, request) => {
        const key = requestKey(request, policy?.().hashOn ?? PRINCIPAL, keys);
        if (key === undefined) return inTurn(candidates, mayTake, request);
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
        const ofAll = activeCalls && firstBelow(() => activeCalls() / candidates.length);
        return ofAll ?? firstBelow(() => meanInFlight(candidates, mayTake));
      };
    },
  },
});

export const STRATEGY_NAMES = Object.keys(STRATEGIES) as (keyof typeof STRATEGIES)[];

function table<Name extends string>(rows: Readonly<Record<Name, StrategyRow>>) {
  return rows;
}

/**
 * Chooses the lowest load among the next MAX_COMPARED candidates; equal ones take turns, and no load is below 0.
 * Remembers one id.
 *
 * The turn only moves forward over ids, so it cannot skip a present one: two candidates that may always take calls alternate
 * strictly, whatever the others do. An index into a changing list would favour some and starve others.
 */
function inTurns<C extends Candidate>(loadOf: (candidate: C) => number): Strategy<C> {
  let lastId = '';
  return (candidates, mayTake) => {
    const { length } = candidates;
    const first = firstAfter(candidates, lastId);
    let chosen: C | undefined;
    let least = Number.POSITIVE_INFINITY;
    for (let step = 0, compared = 0; step < length && compared < MAX_COMPARED && least > 0; step += 1) {
      const candidate = candidates[(first + step) % length];
      if (candidate === undefined || !mayTake(candidate)) continue;
      compared += 1;
      const load = loadOf(candidate);
      if (load >= least) continue;
      chosen = candidate;
      least = load;
    }
    lastId = chosen?.id ?? lastId;
    return chosen;
  };
}

function callsThere({ activeCalls, otherCalls = 0 }: Candidate): number {
  return activeCalls + otherCalls;
}

/**
 * Index of the first candidate whose id is greater; the length of the list if there is none. `candidates`: in the
 * order of ids.
 */
export function firstAfter(candidates: readonly Candidate[], id: string): number {
  let [low, high] = [0, candidates.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((candidates[middle]?.id ?? '') > id) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Index of the highest credit after this pick, of those with a weight; -1 without one. */
function highestCredit(credits: Float64Array, weights: Float64Array, total: number): number {
  let chosen = -1;
  let highest = Number.NEGATIVE_INFINITY;
  for (let index = 0; index < weights.length; index += 1) {
    const weight = weights[index] ?? 0;
    const credit = (credits[index] ?? 0) + weight / total;
    if (weight === 0 || credit <= highest + ROUNDING) continue;
    chosen = index;
    highest = credit;
  }
  return chosen;
}

function earn(credits: Float64Array, weights: Float64Array, total: number): void {
  for (let index = 0; index < weights.length; index += 1)
    credits[index] = (credits[index] ?? 0) + (weights[index] ?? 0) / total;
}

/** All candidates that may take the call, if the list is no longer than `size`; else as many random ones, some perhaps twice. */
function sample<C>(
  candidates: readonly C[],
  mayTake: (candidate: C) => boolean,
  size: number,
  random: () => number,
): readonly C[] {
  if (candidates.length <= size) return candidates.filter(mayTake);
  const drawn: C[] = [];
  for (let draws = 0; draws < size + MAX_VAIN_DRAWS && drawn.length < size; draws += 1) {
    const candidate = candidates[Math.floor(random() * candidates.length)];
    if (candidate !== undefined && mayTake(candidate)) drawn.push(candidate);
  }
  return drawn.length > 0 ? drawn : candidates.filter(mayTake);
}

/** The keys in large arguments: one call may ask a strategy several times, and each reading takes some milliseconds. */
type KnownKeys = WeakMap<JsonText, { readonly hashOn: string; readonly key: string | undefined }>;

function requestKey(
  { caller, params }: StrategyRequest,
  hashOn: string,
  known: KnownKeys,
): string | undefined {
  if (hashOn === PRINCIPAL) return caller;
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

/** The text of a member of arguments that were never text, such as those of an embedding program. */
function textOfMember(given: JsonFields[string], name: string): Buffer | undefined {
  if (!isFields(given) || !Object.hasOwn(given, name)) return undefined;
  return Buffer.from(JSON.stringify(given[name] ?? null));
}

/**
 * The candidate of highest rank for this key that may take the call. Each rank is a hash of the key and the id: so
 * the order is random but fixed, and another for each key. Only candidates above the highest rank so far are
 * asked: about seven of 1,000.
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

/** The mean over the candidates that may take the call; there is at least one. */
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

function sum(numbers: readonly number[] | Float64Array): number {
  let total = 0;
  for (let index = 0; index < numbers.length; index += 1) total += numbers[index] ?? 0;
  return total;
}
