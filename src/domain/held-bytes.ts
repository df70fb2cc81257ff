// Budgets of bytes that are held in memory, in total and for each owner, and their bounds, which depend on the memory of the process.
// When a budget is exceeded, the holding with the most bytes times its age is cut, so that slow and large ones lose to fast and
// small ones. Source: ADR 42, ADR 45.

import { ANONYMOUS } from './account.ts';
import { LIMITS } from './limits.ts';

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

  get heldBytes(): number {
    return this.#heldBytes;
  }

  heldBy(ownerId: string): number {
    return this.#held.get(ownerId) ?? 0;
  }

  /** The owner of the most bytes; undefined while nothing is held. */
  get greatestOwner(): string | undefined {
    let greatest: string | undefined;
    for (const [owner, bytes] of this.#held) {
      if (greatest === undefined || bytes > this.heldBy(greatest)) greatest = owner;
    }
    return greatest;
  }

  /** Counts the bytes and returns true if they are within both bounds. */
  take(ownerId: string, bytes: number): boolean {
    const ofOwner = this.heldBy(ownerId) + bytes;
    if (ofOwner > this.bounds.ownerBytes || this.#heldBytes + bytes > this.bounds.totalBytes) return false;
    this.#held.set(ownerId, ofOwner);
    this.#heldBytes += bytes;
    return true;
  }

  giveBack(ownerId: string, bytes: number): void {
    const left = this.heldBy(ownerId) - bytes;
    if (left > 0) this.#held.set(ownerId, left);
    else this.#held.delete(ownerId);
    this.#heldBytes -= bytes;
  }
}

export interface MemoryBounds {
  /** Bodies of requests that are being read, queued or in flight. The owner is the principal. */
  readonly requests: ByteBounds;
  /** Incomplete answers of backends. The owner is the instance. */
  readonly backendAnswers: ByteBounds;
  /** Answers that clients have not read yet. The owner is the principal. */
  readonly unreadAnswers: ByteBounds;
}

/**
 * The bounds for a process with `memoryBytes`: an eighth for each kind, and a quarter of that for one owner, but always enough for
 * one body or message of the greatest size. The rest is for the program (about 150 MB), garbage, and copies in socket buffers.
 * Source: ADR 42.
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
 * Smaller holdings, which most answers are, are not counted. The numbers of calls in flight and of connections bound them.
 */
export const UNCOUNTED_BYTES = 16 * 1024;
/** Counted for each piece besides its bytes. */
export const PIECE_BYTES = 256;
/** An owner, or the whole budget, is under pressure above this part of its bound. */
const PRESSED = 0.75;

/** Requests whose answers may be large, and which other instances may serve. */
const CALLS: readonly string[] = ['tools/call', 'resources/read', 'prompts/get'];

export interface InstanceHeldBytes {
  /** True for a call while the owner is under pressure. Handshakes, probes and lists are never refused. */
  refuses(method: string): boolean;
  /** Makes a holding of 0 bytes. `cut` is called at most once, when its bytes are needed, after it was released. */
  hold(cut: () => void): Holding;
}

export class HeldBytes {
  readonly #budget: ByteBudget;
  readonly #now: () => number;
  readonly #holdings = new Set<Holding>();

  /** `now` is a monotonic clock in ms. */
  constructor(bounds: ByteBounds, now: () => number = () => performance.now()) {
    this.#budget = new ByteBudget(bounds);
    this.#now = now;
  }

  get bytes(): number {
    return this.#budget.heldBytes;
  }

  of(ownerId: string): InstanceHeldBytes {
    return {
      refuses: (method) => this.isPressed(ownerId) && CALLS.includes(method),
      hold: (cut) => this.hold(ownerId, cut),
    };
  }

  /**
   * True while the owner is near its bound; or while all together are near theirs, and the owner holds anything.
   */
  isPressed(ownerId: string): boolean {
    const { bounds, heldBytes } = this.#budget;
    // Most of the time one comparison is enough.
    if (heldBytes < bounds.ownerBytes * PRESSED) return false;
    const own = this.#budget.heldBy(ownerId);
    return own > 0 && (own >= bounds.ownerBytes * PRESSED || heldBytes >= bounds.totalBytes * PRESSED);
  }

  /** As InstanceHeldBytes.hold. */
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

  /** The holding of that owner to be cut; `asking` if there is no other, since it is too large by itself then. */
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

/** Something that counts in a budget, such as one answer. */
export class Holding {
  readonly ownerId: string;
  readonly sinceMs: number;
  readonly cut: () => void;
  readonly #all: HeldBytes;
  /** Changed by HeldBytes only. */
  bytes = 0;

  constructor(ownerId: string, cut: () => void, sinceMs: number, all: HeldBytes) {
    this.ownerId = ownerId;
    this.cut = cut;
    this.sinceMs = sinceMs;
    this.#all = all;
  }

  /** Sets the number of its bytes, for which others may be cut. False when it was cut itself, now or before. */
  set(bytes: number): boolean {
    return this.#all.change(this, bytes);
  }

  release(): void {
    this.#all.forget(this);
  }
}

/**
 * How much of a bounded resource each owner holds: no owner may hold all of it, so that the others are served. The caller decides what
 * is counted, and what a refusal says.
 */
export class OwnerShares {
  readonly share: number;
  /** True when one owner may hold everything: then only the total is bounded. */
  readonly coversAll: boolean;
  readonly #most: number;
  readonly #held = new Map<string, number>();
  #total = 0;

  /** Of `most` in all, each owner may hold `part`, above 0 and up to 1; LIMITS.ownerShareLeast if that is more. */
  constructor(most: number, part: number = LIMITS.ownerShare) {
    const share = Math.floor(Math.round(most * part * 1e6) / 1e6); // 100 * 0.29 is 28.999…
    this.share = Math.min(most, Math.max(LIMITS.ownerShareLeast, share));
    this.coversAll = this.share === most;
    this.#most = most;
  }

  get total(): number {
    return this.#total;
  }

  get isFull(): boolean {
    return this.#total >= this.#most;
  }

  get size(): number {
    return this.#held.size;
  }

  get owners(): Iterable<string> {
    return this.#held.keys();
  }

  held(ownerId: string): number {
    return this.#held.get(ownerId) ?? 0;
  }

  /** True when this owner may hold no more. While authentication is off all callers are one owner, which has no share. */
  isShareFull(ownerId: string): boolean {
    return ownerId !== ANONYMOUS.id && this.held(ownerId) >= this.share;
  }

  take(ownerId: string): void {
    this.#total += 1;
    this.#held.set(ownerId, this.held(ownerId) + 1);
  }

  release(ownerId: string): void {
    this.#total -= 1;
    const held = this.held(ownerId) - 1;
    if (held > 0) this.#held.set(ownerId, held);
    else this.#held.delete(ownerId);
  }
}

/**
 * True when an owner that holds `held` stays within an equal part of `most` with one more. `owners`: how many owners share it,
 * this one included. If it does and everything is taken, another owner holds more than an equal part.
 */
export function isWithinEqualPart(held: number, owners: number, most: number): boolean {
  return (held + 1) * owners <= most;
}
