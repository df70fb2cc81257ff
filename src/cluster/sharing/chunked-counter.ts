// Rate limits of a deployment without Redis: each principal has a home, the first of the live nodes in its order, which
// gives the others the requests that they may admit, in chunks.

import { LruMap } from '../../domain/memory/lru-map.ts';
import type { Window } from '../../domain/memory/window-counter.ts';
import { rendezvousOrder } from '../../domain/nodes/rendezvous.ts';
import type { Clock } from '../../domain/time/clock.ts';

/** The number of chunks of a limit for all nodes together: each node holds at most two chunks that it does not use. */
const CHUNKS = 20;
/** A node that got nothing asks again after this time, in ms. */
const ASK_AGAIN_MS = 1_000;

/** The requests of one principal that one node may admit in the present window: the sum of its chunks. */
interface Held {
  /** The process: the same for all its lives. */
  readonly process: string;
  readonly held: number;
  readonly endsInMs: number;
}

export interface ChunkRequest extends Held {
  readonly key: string;
  readonly limit: number;
  /** The requests that the asker needs besides those that it holds. */
  readonly wanted: number;
  /** True when the asker had no home before, or another one: the home then asks all nodes for their chunks. */
  readonly isFirst: boolean;
}

interface ChunkAnswer {
  readonly granted: number;
  /** The requests that the home can still give. */
  readonly left: number;
  readonly endsInMs: number;
}

/** The other nodes. Its promises are bounded in time and never reject. */
export interface LimitPeers {
  /** The lives of this node, first, and of all other members. */
  lives(): readonly string[];
  /** Resolves with undefined when there is no answer. */
  ask(life: string, request: ChunkRequest): Promise<ChunkAnswer | undefined>;
  /** The chunks that the other nodes hold; nodes without an answer are left out. */
  heldByOthers(key: string): Promise<readonly Held[]>;
}

/** The part of the limit of one key that this node has, with the last answer of the home of the key. */
interface Allotment {
  /** The least number of requests that the node gets at once. */
  chunk: number;
  used: number;
  held: number;
  left: number;
  endsAtMs: number;
  /** The life that was asked last. */
  home: string | undefined;
  asking: Promise<void> | undefined;
  nextAskAtMs: number;
}

interface ChunkedCounterOptions {
  readonly process: string;
  readonly peers: LimitPeers;
  readonly now: Clock['now'];
  readonly windowMs: number;
  /** The most principals that are counted. Beyond it the least recently counted one is dropped. */
  readonly keys: number;
}

/**
 * One limit at this node: the chunks that it holds, and the windows of the principals whose home it is. Within a chunk
 * a request is counted here, without a promise. src/cluster/sharing connects the nodes. Source: ADR 173.
 */
export class ChunkedCounter {
  readonly #options: ChunkedCounterOptions;
  readonly #allotments: LruMap<Allotment>;
  readonly #windows: LruMap<{ endsAtMs: number; readonly held: Map<string, number> }>;

  constructor(options: ChunkedCounterOptions) {
    this.#options = options;
    this.#allotments = new LruMap(options.keys);
    this.#windows = new LruMap(options.keys);
  }

  /**
   * Counts as WindowCounter.add does, for all nodes together. Gives a promise, bounded in time, only where the chunk is used up.
   */
  add(key: string, count: number, limit: number): Window | Promise<Window> {
    const allotment = this.#allotmentOf(key, limit);
    if (allotment.used + count > allotment.held) return this.#addLater(key, allotment, count, limit);
    allotment.used += count;
    const low = allotment.held - allotment.used <= allotment.chunk / 2;
    if (low && allotment.left > 0 && allotment.asking === undefined && this.#mayAsk(allotment, 0))
      void this.#ask(key, allotment, limit, 0);
    return this.#windowOf(allotment, limit, 0);
  }

  /** The present window, as far as this node knows it. */
  peek(key: string, limit: number): Window {
    return this.#windowOf(this.#allotmentOf(key, limit), limit, 0);
  }

  /** The chunks that this node holds, for the home of the principal. */
  heldOf(key: string): Held {
    const { process, now } = this.#options;
    const allotment = this.#allotments.peek(key);
    const endsInMs = (allotment?.endsAtMs ?? 0) - now();
    return allotment === undefined || endsInMs <= 0
      ? { process, held: 0, endsInMs: 0 }
      : { process, held: allotment.held, endsInMs };
  }

  /** Answers another node, as the home of the principal. */
  async answer(request: ChunkRequest): Promise<ChunkAnswer> {
    return this.#give(request);
  }

  async #addLater(key: string, allotment: Allotment, count: number, limit: number): Promise<Window> {
    while (allotment.used + count > allotment.held) {
      if (!this.#mayAsk(allotment, count) && allotment.asking === undefined)
        return this.#windowOf(allotment, limit, count);
      await (allotment.asking ?? this.#ask(key, allotment, limit, allotment.used + count - allotment.held));
    }
    allotment.used += count;
    return this.#windowOf(allotment, limit, 0);
  }

  /** True when the home may give so many requests, as far as this node knows, or when its last refusal is some time ago. */
  #mayAsk({ used, held, left, nextAskAtMs }: Allotment, count: number): boolean {
    return used + count <= held + left || this.#options.now() >= nextAskAtMs;
  }

  async #ask(key: string, allotment: Allotment, limit: number, wanted: number): Promise<void> {
    const { process, peers, now } = this.#options;
    const lives = peers.lives();
    const [home = ''] = rendezvousOrder(key, lives);
    const isFirst = allotment.home !== home;
    allotment.home = home;
    allotment.chunk = chunkOf(limit, lives.length);
    const request = {
      process,
      key,
      limit,
      wanted,
      isFirst,
      held: allotment.held,
      endsInMs: allotment.endsAtMs - now(),
    };
    const given = home === lives[0] ? this.#give(request) : peers.ask(home, request);
    if (given instanceof Promise) {
      allotment.asking = given.then((answer) => this.#take(allotment, answer, limit, lives.length));
      await allotment.asking;
    } else this.#take(allotment, given, limit, lives.length);
  }

  /** Takes the answer of the home. Without an answer, this node admits its equal share of the limit. */
  #take(allotment: Allotment, answer: ChunkAnswer | undefined, limit: number, nodes: number): void {
    const nowMs = this.#options.now();
    allotment.asking = undefined;
    if (answer === undefined) {
      allotment.home = undefined;
      allotment.held = Math.max(allotment.held, Math.floor(limit / nodes));
      allotment.left = 0;
    } else {
      allotment.held += answer.granted;
      allotment.left = answer.left;
      allotment.endsAtMs = Math.min(allotment.endsAtMs, nowMs + answer.endsInMs);
    }
    if (answer === undefined || answer.granted === 0) allotment.nextAskAtMs = nowMs + ASK_AGAIN_MS;
  }

  /** The answer of this node as the home; a promise where the other nodes have to be asked first. */
  #give(request: ChunkRequest): ChunkAnswer | Promise<ChunkAnswer> {
    const { peers, now } = this.#options;
    const known = this.#windows.get(request.key);
    const isOpen = known !== undefined && known.endsAtMs > now();
    if (peers.lives().length === 1 || (isOpen && !request.isFirst)) return this.#giveFrom(request, []);
    return peers.heldByOthers(request.key).then((others) => this.#giveFrom(request, others));
  }

  #giveFrom(request: ChunkRequest, others: readonly Held[]): ChunkAnswer {
    const nowMs = this.#options.now();
    const { key, limit, wanted, process } = request;
    const all = [request, ...others.filter((other) => other.process !== process && other.held > 0)];
    let window = this.#windows.get(key);
    if (window === undefined || window.endsAtMs <= nowMs) {
      const endsInMs = Math.min(...all.map((each) => each.endsInMs));
      window = { endsAtMs: nowMs + endsInMs, held: new Map() };
      this.#windows.set(key, window);
    }
    // The number that a node names replaces the known one: an answer may have been lost.
    for (const each of all) window.held.set(each.process, each.held);
    const sum = [...window.held.values()].reduce((total, held) => total + held, 0);
    const left = Math.max(0, limit - sum);
    const chunk = chunkOf(limit, this.#options.peers.lives().length);
    // A request for which too little is left gets nothing, since the other nodes could admit nothing more.
    const granted = wanted <= left ? Math.min(Math.max(chunk, wanted), left) : 0;
    window.held.set(process, request.held + granted);
    return { granted, left: left - granted, endsInMs: window.endsAtMs - nowMs };
  }

  #allotmentOf(key: string, limit: number): Allotment {
    const { peers, now, windowMs } = this.#options;
    const known = this.#allotments.get(key);
    const nowMs = now();
    if (known !== undefined && known.endsAtMs > nowMs) return known;
    // The first chunk needs no answer, unless the limit is so small that those of all nodes would exceed it.
    const nodes = peers.lives().length;
    const held = limit < CHUNKS * nodes ? 0 : chunkOf(limit, nodes);
    const allotment: Allotment = {
      chunk: chunkOf(limit, nodes),
      used: 0,
      held,
      left: limit - held,
      endsAtMs: nowMs + windowMs,
      home: undefined,
      asking: undefined,
      nextAskAtMs: nowMs,
    };
    this.#allotments.set(key, allotment);
    return allotment;
  }

  /** `refused`: a count that was not added. */
  #windowOf({ used, held, left, endsAtMs }: Allotment, limit: number, refused: number): Window {
    const count = limit - left - (held - used);
    const endsInMs = endsAtMs - this.#options.now();
    return { count: refused > 0 ? Math.max(limit + 1, count + refused) : Math.min(count, limit), endsInMs };
  }
}

function chunkOf(limit: number, nodes: number): number {
  return Math.max(1, Math.floor(limit / (CHUNKS * nodes)));
}
