// A bound on bytes that are held at one time, in total and for each owner, and how such bounds follow from the memory
// that the process may use. What is counted, and what happens at the bound, is decided where the bytes are held.

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
