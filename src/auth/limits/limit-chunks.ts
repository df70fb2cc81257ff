// Rate limits of a deployment without Redis: each principal has a home, the first of the live nodes in its order,
// which gives the others the requests that they may admit, in chunks. Within a chunk a request is counted here,
// without a promise. src/cluster/sharing connects the nodes. Source: ADR 173.

import { LruMap } from '../../domain/memory/lru-map.ts';
import { rendezvousOrder } from '../../domain/nodes/rendezvous.ts';
import type { Clock } from '../../domain/time/clock.ts';
import type { Window } from './rate-limiter.ts';

/** Chunks of all nodes together in a limit: what the nodes hold and do not use is at most two chunks each. */
const CHUNKS = 20;
/** A node that got nothing asks again after this time, in ms. */
const ASK_AGAIN_MS = 1_000;

/** The requests of one principal that one node may admit in the present window: the sum of its chunks. */
export interface Held {
  /** The process: the same for all its lives. */
  readonly process: string;
  readonly held: number;
  readonly endsInMs: number;
}

export interface ChunkRequest extends Held {
  readonly key: string;
  readonly limit: number;
  /** Requests that it needs besides those that it holds. */
  readonly wanted: number;
  /** True when the asker had no home before, or another one: the home then asks all nodes what they hold. */
  readonly isFirst: boolean;
}

export interface ChunkAnswer {
  readonly granted: number;
  /** What the home can still give. */
  readonly left: number;
  readonly endsInMs: number;
}

/** The other nodes. Its promises are bounded in time and never reject. */
export interface LimitPeers {
  /** The lives of this node, first, and of all other members. */
  lives(): readonly string[];
  /** Undefined: no answer. */
  ask(life: string, request: ChunkRequest): Promise<ChunkAnswer | undefined>;
  /** What the others hold; those without an answer are left out. */
  heldByOthers(key: string): Promise<readonly Held[]>;
}

interface Share {
  /** Least number of requests that it gets at once. */
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

interface HomeWindow {
  endsAtMs: number;
  /** By process. */
  readonly held: Map<string, number>;
}

export interface ChunkedCounterOptions {
  readonly process: string;
  readonly peers: LimitPeers;
  readonly now: Clock['now'];
  readonly windowMs: number;
  /** Most principals that are counted. Beyond it the least recently counted one is dropped. */
  readonly keys: number;
}

export class ChunkedCounter {
  readonly #options: ChunkedCounterOptions;
  readonly #shares: LruMap<Share>;
  readonly #windows: LruMap<HomeWindow>;

  constructor(options: ChunkedCounterOptions) {
    this.#options = options;
    this.#shares = new LruMap(options.keys);
    this.#windows = new LruMap(options.keys);
  }

  /** As WindowCounter.add, for all nodes together. A promise, bounded in time, only where the chunk is used up. */
  add(key: string, count: number, limit: number): Window | Promise<Window> {
    const share = this.#shareOf(key, limit);
    if (share.used + count > share.held) return this.#addLater(key, share, count, limit);
    share.used += count;
    const low = share.held - share.used <= share.chunk / 2;
    if (low && share.left > 0 && share.asking === undefined && this.#mayAsk(share))
      void this.#ask(key, share, limit, 0);
    return this.#windowOf(share, limit, 0);
  }

  /** The present window, as far as this node knows it. */
  peek(key: string, limit: number): Window {
    return this.#windowOf(this.#shareOf(key, limit), limit, 0);
  }

  /** What this node holds, for the home of the principal. */
  heldOf(key: string): Held {
    const { process, now } = this.#options;
    const share = this.#shares.peek(key);
    const endsInMs = (share?.endsAtMs ?? 0) - now();
    return share === undefined || endsInMs <= 0
      ? { process, held: 0, endsInMs: 0 }
      : { process, held: share.held, endsInMs };
  }

  /** Answers another node, as the home of the principal. */
  async answer(request: ChunkRequest): Promise<ChunkAnswer> {
    return this.#give(request);
  }

  async #addLater(key: string, share: Share, count: number, limit: number): Promise<Window> {
    while (share.used + count > share.held) {
      if (!this.#mayAsk(share) && share.asking === undefined) return this.#windowOf(share, limit, count);
      await (share.asking ?? this.#ask(key, share, limit, share.used + count - share.held));
    }
    share.used += count;
    return this.#windowOf(share, limit, 0);
  }

  #mayAsk(share: Share): boolean {
    return this.#options.now() >= share.nextAskAtMs;
  }

  async #ask(key: string, share: Share, limit: number, wanted: number): Promise<void> {
    const { process, peers, now } = this.#options;
    const lives = peers.lives();
    const [home = ''] = rendezvousOrder(key, lives);
    const isFirst = share.home !== home;
    share.home = home;
    share.chunk = chunkOf(limit, lives.length);
    const request = {
      process,
      key,
      limit,
      wanted,
      isFirst,
      held: share.held,
      endsInMs: share.endsAtMs - now(),
    };
    const given = home === lives[0] ? this.#give(request) : peers.ask(home, request);
    if (given instanceof Promise) {
      share.asking = given.then((answer) => this.#take(share, answer, limit, lives.length));
      await share.asking;
    } else this.#take(share, given, limit, lives.length);
  }

  /** Without an answer, this node admits its own share. */
  #take(share: Share, answer: ChunkAnswer | undefined, limit: number, nodes: number): void {
    const nowMs = this.#options.now();
    share.asking = undefined;
    if (answer === undefined) {
      share.home = undefined;
      share.held = Math.max(share.held, Math.floor(limit / nodes));
      share.left = 0;
    } else {
      share.held += answer.granted;
      share.left = answer.left;
      share.endsAtMs = Math.min(share.endsAtMs, nowMs + answer.endsInMs);
    }
    if (answer === undefined || answer.granted === 0) share.nextAskAtMs = nowMs + ASK_AGAIN_MS;
  }

  /** As the home; a promise where the other nodes have to be asked first. */
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
    // What a node names replaces what is known: an answer may have been lost.
    for (const each of all) window.held.set(each.process, each.held);
    const sum = [...window.held.values()].reduce((total, held) => total + held, 0);
    const granted = Math.max(
      0,
      Math.min(Math.max(chunkOf(limit, this.#options.peers.lives().length), wanted), limit - sum),
    );
    window.held.set(process, request.held + granted);
    return { granted, left: Math.max(0, limit - sum - granted), endsInMs: window.endsAtMs - nowMs };
  }

  #shareOf(key: string, limit: number): Share {
    const { peers, now, windowMs } = this.#options;
    const known = this.#shares.get(key);
    const nowMs = now();
    if (known !== undefined && known.endsAtMs > nowMs) return known;
    // The first chunk needs no answer, unless the limit is so small that those of all nodes would exceed it.
    const nodes = peers.lives().length;
    const held = limit < CHUNKS * nodes ? 0 : chunkOf(limit, nodes);
    const share: Share = {
      chunk: chunkOf(limit, nodes),
      used: 0,
      held,
      left: limit - held,
      endsAtMs: nowMs + windowMs,
      home: undefined,
      asking: undefined,
      nextAskAtMs: nowMs,
    };
    this.#shares.set(key, share);
    return share;
  }

  /** `refused`: a count that was not added. */
  #windowOf({ used, held, left, endsAtMs }: Share, limit: number, refused: number): Window {
    const count = limit - left - (held - used);
    const endsInMs = endsAtMs - this.#options.now();
    return { count: refused > 0 ? Math.max(limit + 1, count + refused) : Math.min(count, limit), endsInMs };
  }
}

function chunkOf(limit: number, nodes: number): number {
  return Math.max(1, Math.floor(limit / (CHUNKS * nodes)));
}
