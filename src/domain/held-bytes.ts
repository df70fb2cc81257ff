// Bytes that are held at one time: their bounds, in total and for each owner, and how these follow from the memory that the process
// may use; holdings that count in such a budget, and which of them is cut when there is no room for more: the one with the most
// bytes times the time it has held them. Slow ones lose to fast ones, large ones to small ones. Source: ADR 42, ADR 45.

import { LIMITS } from './limits.ts';

/** Bytes in total, and the most of them that one owner may hold. */
export interface ByteBounds {
  readonly totalBytes: number;
  readonly ownerBytes: number;
}

export class ByteBudget {
  readonly bounds: ByteBounds;
  readonly #held = new Map<string, number>();
  #heldBytes = 0;

  constructor(bounds: ByteBounds) {
    this.bounds = bounds;
  }

  /** Bytes held by all owners. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** Bytes held by one owner. */
  heldBy(ownerId: string): number {
    return this.#held.get(ownerId) ?? 0;
  }

  /** Owner that holds the most bytes; undefined while nothing is held. */
  get greatestOwner(): string | undefined {
    let greatest: string | undefined;
    for (const [owner, bytes] of this.#held) {
      if (greatest === undefined || bytes > this.heldBy(greatest)) greatest = owner;
    }
    return greatest;
  }

  /** True, and counted, when the bytes are within both bounds; false, and not counted, when they are not. */
  take(ownerId: string, bytes: number): boolean {
    const ofOwner = this.heldBy(ownerId) + bytes;
    if (ofOwner > this.bounds.ownerBytes || this.#heldBytes + bytes > this.bounds.totalBytes) return false;
    this.#held.set(ownerId, ofOwner);
    this.#heldBytes += bytes;
    return true;
  }

  /** Returns bytes that were taken. */
  giveBack(ownerId: string, bytes: number): void {
    const left = this.heldBy(ownerId) - bytes;
    if (left > 0) this.#held.set(ownerId, left);
    else this.#held.delete(ownerId);
    this.#heldBytes -= bytes;
  }
}

/** Bounds of what a gateway holds for calls. */
export interface MemoryBounds {
  /** Bodies of requests that are read, queued or in flight. The owner is the principal. */
  readonly requests: ByteBounds;
  /** Answers of backends that are not complete yet. The owner is the instance. */
  readonly backendAnswers: ByteBounds;
  /** Answers that clients have not read yet. The owner is the principal. */
  readonly unreadAnswers: ByteBounds;
}

/**
 * The bounds that fit into `memoryBytes`: an eighth of it for each kind, and a quarter of that for one owner, but always
 * enough for one body or message of the greatest size. The rest is for the program itself (about 150 MB), garbage that is
 * not collected yet, and copies in socket buffers. Source: ADR 42.
 */
export function memoryBounds(memoryBytes: number): MemoryBounds {
  const part = Math.floor(memoryBytes / 8);
  const messages = bounds(part, LIMITS.backendMessageBytes);
  return {
    requests: bounds(part, LIMITS.requestBodyBytes),
    backendAnswers: messages,
    unreadAnswers: messages,
  };
}

function bounds(bytes: number, greatestBytes: number): ByteBounds {
  const totalBytes = Math.max(bytes, greatestBytes);
  return { totalBytes, ownerBytes: Math.max(Math.floor(totalBytes / 4), greatestBytes) };
}

/**
 * What is held below this size is not counted: most answers never are. It is bounded by the number of calls in flight and of
 * connections.
 */
export const UNCOUNTED_BYTES = 16 * 1024;
/** Charged for each piece that is held, besides its bytes. */
export const PIECE_BYTES = 256;
/** An owner, or the budget as a whole, is under pressure from this part of the bound on. */
const PRESSED = 0.75;

/** Requests whose answers may be large, and which others may serve. */
const CALLS: readonly string[] = ['tools/call', 'resources/read', 'prompts/get'];

/** What one owner holds. */
export interface OwnHeldBytes {
  /** True for a call while the owner should not be given more to hold. Handshakes, probes and lists are never refused. */
  refuses(method: string): boolean;
  /** Something new, of 0 bytes. `cut` is called at most once, when its bytes are needed; by then it is released. */
  hold(cut: () => void): Holding;
}

/** All holdings of one budget. */
export class HeldBytes {
  readonly #budget: ByteBudget;
  readonly #now: () => number;
  readonly #holdings = new Set<Holding>();

  /** `now` is a monotonic clock in ms. */
  constructor(bounds: ByteBounds, now: () => number = () => performance.now()) {
    this.#budget = new ByteBudget(bounds);
    this.#now = now;
  }

  /** Bytes held by all owners. */
  get bytes(): number {
    return this.#budget.heldBytes;
  }

  /** The part of one owner. */
  of(ownerId: string): OwnHeldBytes {
    return {
      refuses: (method) => this.isPressed(ownerId) && CALLS.includes(method),
      hold: (cut) => this.hold(ownerId, cut),
    };
  }

  /**
   * True while the owner is near its bound; or while all together are near theirs, and the owner holds anything: an owner
   * that holds nothing is never refused for what others hold.
   */
  isPressed(ownerId: string): boolean {
    const { bounds, heldBytes } = this.#budget;
    // Most of the time: one comparison, no look-up.
    if (heldBytes < bounds.ownerBytes * PRESSED) return false;
    const own = this.#budget.heldBy(ownerId);
    return own > 0 && (own >= bounds.ownerBytes * PRESSED || heldBytes >= bounds.totalBytes * PRESSED);
  }

  /** As OwnHeldBytes.hold. */
  hold(ownerId: string, cut: () => void): Holding {
    const holding = new Holding(ownerId, cut, this.#now(), this);
    this.#holdings.add(holding);
    return holding;
  }

  /** Of Holding only. */
  change(holding: Holding, bytes: number): boolean {
    const { ownerId } = holding;
    const more = bytes - holding.bytes;
    if (!this.#holdings.has(holding)) return false;
    if (more <= 0) {
      this.#budget.giveBack(ownerId, -more);
      holding.bytes = bytes;
      return true;
    }
    while (!this.#budget.take(ownerId, more)) {
      const victim = this.#worst(this.#ownerOverBound(ownerId, more), holding);
      this.#release(victim);
      victim.cut();
      if (victim === holding || !this.#holdings.has(holding)) return false;
    }
    holding.bytes = bytes;
    return true;
  }

  /** Of Holding only. */
  forget(holding: Holding): void {
    if (this.#holdings.has(holding)) this.#release(holding);
  }

  #release(holding: Holding): void {
    this.#holdings.delete(holding);
    this.#budget.giveBack(holding.ownerId, holding.bytes);
    holding.bytes = 0;
  }

  #ownerOverBound(ownerId: string, more: number): string {
    const isOwn = this.#budget.heldBy(ownerId) + more > this.#budget.bounds.ownerBytes;
    return isOwn ? ownerId : (this.#budget.greatestOwner ?? ownerId);
  }

  /** Of that owner's; `asking` when nothing else is held, since it alone is too large then. */
  #worst(ownerId: string, asking: Holding): Holding {
    const nowMs = this.#now();
    let worst = asking;
    let most = 0;
    for (const holding of this.#holdings) {
      if (holding.ownerId !== ownerId) continue;
      const weight = holding.bytes * (nowMs - holding.sinceMs + 1);
      if (weight <= most) continue;
      most = weight;
      worst = holding;
    }
    return worst;
  }
}

/** One answer, or another piece that is held. */
export class Holding {
  readonly ownerId: string;
  readonly sinceMs: number;
  readonly cut: () => void;
  readonly #all: HeldBytes;
  /** Changed by `set` and `release` only. */
  bytes = 0;

  constructor(ownerId: string, cut: () => void, sinceMs: number, all: HeldBytes) {
    this.ownerId = ownerId;
    this.cut = cut;
    this.sinceMs = sinceMs;
    this.#all = all;
  }

  /** Sets the number of its bytes. Others may be cut for them. False when it was cut itself, now or before. */
  set(bytes: number): boolean {
    return this.#all.change(this, bytes);
  }

  /** Its bytes are released. */
  release(): void {
    this.#all.forget(this);
  }
}
