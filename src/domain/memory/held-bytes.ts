// Budgets of bytes that are held in memory, in total and for each owner, and their bounds, which depend on the memory
// of the process.

import { countedIdOf } from '../accounts/principal.ts';
import { valuesIn } from '../json/json.ts';
import { LIMITS } from '../limits.ts';
import { UserShares } from './user-shares.ts';

/** Values, keys included, of all pages of one list. A list with 10,000 tools has about 300,000. */
export const MAX_LIST_VALUES = 1_000_000;

export interface ByteBounds {
  readonly totalBytes: number;
  readonly ownerBytes: number;
}

/** Counts bytes within these bounds. */
export function byteShares({ totalBytes, ownerBytes }: ByteBounds): UserShares {
  return new UserShares(totalBytes, ownerBytes);
}

export interface MemoryBounds {
  /**
   * Bodies of requests that are being read, queued or in flight, and other messages that wait for their backends. The owner is
   * the principal.
   */
  readonly requests: ByteBounds;
  /** Incomplete answers of backends. The owner is the instance. */
  readonly backendAnswers: ByteBounds;
  /** Answers that clients have not read yet. The owner is the principal. */
  readonly unreadAnswers: ByteBounds;
  /**
   * Declarations of clients that are kept as values, see `keptBytes`; the owner is the principal. Also the lists
   * of tools of servers, in a budget of their own; the owner is the instance.
   */
  readonly declarations: ByteBounds;
  /** Lists of servers as values, while they are read and answered (ListReader). The owner is the principal. */
  readonly lists: ByteBounds;
  /**
   * Questions of servers to clients of the modern era, and results for them, that wait for the client. The owner
   * is the principal.
   */
  readonly questions: ByteBounds;
  /**
   * Open connections, each with some 16 KiB of memory, or 64 KiB with TLS; and bytes of unfinished requests of
   * unknown callers, some of which take three times as much. Source: ADR 91.
   */
  readonly connections: { readonly total: number; readonly unfinishedBytes: number };
}

/**
 * The bounds for a process with `memoryBytes`: an eighth for each kind, a sixteenth for declarations and for questions, and a
 * quarter of that for one owner, but always enough for one of the greatest size. The rest is for the program (about 150 MB),
 * garbage, and copies in socket buffers. Source: ADR 42, 89.
 */
export function memoryBounds(memoryBytes: number, connectionBytes = CONNECTION_BYTES): MemoryBounds {
  const part = Math.floor(memoryBytes / 8);
  const messages = bounds(part, LIMITS.backendMessageBytes);
  const listBytes = Math.max(part, memoryOf(MAX_LIST_VALUES, LIMITS.backendMessageBytes));
  return {
    requests: bounds(part, LIMITS.requestBodyBytes),
    backendAnswers: messages,
    unreadAnswers: messages,
    declarations: bounds(Math.floor(part / 2), 2 * LIMITS.requestBodyBytes),
    lists: { totalBytes: listBytes, ownerBytes: Math.floor(listBytes / 4) },
    questions: bounds(Math.floor(part / 2), LIMITS.backendMessageBytes),
    connections: {
      total: Math.min(LIMITS.connections, Math.floor(part / connectionBytes)),
      unfinishedBytes: Math.min(LIMITS.unfinishedBytes, Math.floor(part / 2)),
    },
  };
}

/** Memory of one open connection. Measured: 14 to 17 KiB. */
export const CONNECTION_BYTES = 16 * 1024;
/** The same with TLS. Measured: 67 KiB. Source: ADR 209. */
export const TLS_CONNECTION_BYTES = 64 * 1024;

function bounds(bytes: number, greatestBytes: number): ByteBounds {
  const totalBytes = Math.max(bytes, greatestBytes);
  return { totalBytes, ownerBytes: Math.max(Math.floor(totalBytes / 4), greatestBytes) };
}

/**
 * Memory of parsed JSON, at most. Measured: up to 72 bytes for a value or a key, whatever its kind, and 2 for a
 * character. Source: ADR 89.
 */
export function memoryOf(values: number, characters: number): number {
  return 80 * values + 2 * characters;
}

/** Memory of a JSON value. `characters`: the length of its text. */
export function jsonMemory(value: unknown, characters = JSON.stringify(value).length): number {
  return memoryOf(valuesIn(value, Number.POSITIVE_INFINITY), characters);
}

/** Memory of a value that is kept; 0 for small values, which the limits of sessions, streams and instances bound. */
export function keptBytes(value: unknown): number {
  const bytes = jsonMemory(value);
  return bytes > UNCOUNTED_KEPT_BYTES ? bytes : 0;
}

/** The capabilities and the name of a usual client take about 2 KiB. */
export const UNCOUNTED_KEPT_BYTES = 4 * 1024;

/**
 * Smaller holdings, which most answers are, are not counted. The numbers of calls in flight and of connections bound them.
 */
export const UNCOUNTED_BYTES = 16 * 1024;
/** The bytes that count for each piece besides its own. */
export const BYTES_PER_PIECE = 256;
/** The size of the buffer that small buffers of Node share. A holding may keep as much besides its bytes. */
const SHARED_BYTES = Buffer.poolSize;

/**
 * The bytes for those that keep them: a copy when they are a small part of a buffer over SHARED_BYTES, which they would keep
 * whole. A budget counts only their length.
 */
export function withoutRest(bytes: Buffer): Buffer {
  const kept = bytes.buffer.byteLength;
  return kept <= SHARED_BYTES || bytes.length * 2 >= kept ? bytes : Buffer.from(bytes);
}

/** The same for many of them, each of which counts BYTES_PER_PIECE: it shares nothing. */
export function inOwnMemory(bytes: Buffer): Buffer {
  if (bytes.length * 2 >= bytes.buffer.byteLength) return bytes;
  const own = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(own);
  return own;
}

/** An owner, or the whole budget, is under pressure above this part of its bound. */
const PRESSED = 0.75;

/** A holding is new for so long, in ms. One is as large as another that has at most this many times its bytes. */
const NEW_MS = 10_000;
const ALIKE = 2;

/** Requests whose answers may be large, and which other instances may serve. */
const CALLS: readonly string[] = ['tools/call', 'resources/read', 'prompts/get'];

export interface InstanceHeldBytes {
  /**
   * True for a call while the owner is under pressure, and bytes are held for the same caller, or it is not known for whom.
   * Handshakes, probes and lists are never refused.
   */
  refuses(method: string, callerId: string | undefined): boolean;
  /** Makes a holding of 0 bytes. `cut` is called at most once, when its bytes are needed, after it was released. */
  hold(cut: () => void, callerId?: string): Holding;
}

/** A part of a budget, such as one answer. */
export interface Holding {
  /** Sets the number of its bytes, for which others may be cut. False when it was cut itself, now or before. */
  set(bytes: number): boolean;
  release(): void;
}

interface HeldAmount {
  readonly ownerId: string;
  /** The caller for whom a server sends the bytes; undefined if that is not known. */
  readonly callerId: string | undefined;
  readonly sinceMs: number;
  readonly cut: () => void;
  bytes: number;
}

/**
 * A budget whose holdings can be cut. When a budget is exceeded, the holding with the most bytes times its age is cut,
 * so that slow and large ones lose to fast and small ones. Source: ADR 42, ADR 45.
 */
export class HeldBytes {
  readonly #shares: UserShares;
  readonly #now: () => number;
  readonly #all = new Set<HeldAmount>();

  /** `now` is a monotonic clock in ms. */
  constructor(bounds: ByteBounds, now: () => number) {
    this.#shares = byteShares(bounds);
    this.#now = now;
  }

  get bytes(): number {
    return this.#shares.total;
  }

  of(ownerId: string): InstanceHeldBytes {
    return {
      refuses: (method, callerId) =>
        this.isPressed(ownerId) && CALLS.includes(method) && this.#isHeldFor(ownerId, callerId),
      hold: (cut, callerId) => this.hold(ownerId, cut, callerId),
    };
  }

  #isHeldFor(ownerId: string, callerId: string | undefined): boolean {
    const [owner, caller] = [countedIdOf(ownerId), callerId && countedIdOf(callerId)];
    for (const held of this.#all) {
      const isOther = held.callerId !== undefined && caller !== undefined && held.callerId !== caller;
      if (held.ownerId === owner && held.bytes > 0 && !isOther) return true;
    }
    return false;
  }

  /** True while the owner is near its bound; or while all together are near theirs, and the owner holds anything. */
  isPressed(ownerId: string): boolean {
    const { share, most, total } = this.#shares;
    // Most of the time one comparison is enough.
    if (total < share * PRESSED) return false;
    if (total >= most * PRESSED) return this.#shares.held(ownerId) > 0;
    return this.#shares.isShareFull(ownerId, PRESSED);
  }

  /**
   * True when these bytes more would cut a holding of the owner that is as new and about as large: of what came in one moment the
   * first ones may stay.
   */
  isCrowded(ownerId: string, bytes: number): boolean {
    if (this.#shares.exceededBy(ownerId, bytes) === undefined) return false;
    const owner = countedIdOf(ownerId);
    const worst = this.#ownerOverBound(owner, bytes) === owner ? this.#worst(owner) : undefined;
    if (worst === undefined) return false;
    return this.#now() - worst.sinceMs < NEW_MS && worst.bytes <= ALIKE * bytes;
  }

  /** Makes a holding of the owner: see InstanceHeldBytes.hold. */
  hold(ownerId: string, cut: () => void, callerId?: string): Holding {
    const held: HeldAmount = {
      ownerId: countedIdOf(ownerId),
      callerId: callerId && countedIdOf(callerId),
      cut,
      sinceMs: this.#now(),
      bytes: 0,
    };
    this.#all.add(held);
    return { set: (bytes) => this.#set(held, bytes), release: () => this.#release(held) };
  }

  #set(held: HeldAmount, bytes: number): boolean {
    const { ownerId } = held;
    const more = bytes - held.bytes;
    if (!this.#all.has(held)) return false;
    if (more <= 0) this.#shares.release(ownerId, -more);
    else
      while (!this.#shares.take(ownerId, more)) {
        const victim = this.#worst(this.#ownerOverBound(ownerId, more)) ?? held;
        this.#release(victim);
        victim.cut();
        if (!this.#all.has(held)) return false;
      }
    held.bytes = bytes;
    return true;
  }

  #release(held: HeldAmount): void {
    if (this.#all.delete(held)) this.#shares.release(held.ownerId, held.bytes);
  }

  /** This owner if it would exceed its bound, else the owner that holds most. */
  #ownerOverBound(ownerId: string, more: number): string {
    if (this.#shares.exceededBy(ownerId, more)?.isShare) return ownerId;
    let greatest = ownerId;
    for (const owner of this.#shares.users)
      if (this.#shares.held(owner) > this.#shares.held(greatest)) greatest = owner;
    return greatest;
  }

  /** The holding of that owner with the most bytes times its age; undefined if the owner has none. */
  #worst(ownerId: string): HeldAmount | undefined {
    const nowMs = this.#now();
    let worst: HeldAmount | undefined;
    let most = 0;
    for (const held of this.#all) {
      const weight = held.ownerId === ownerId ? held.bytes * (nowMs - held.sinceMs + 1) : 0;
      if (weight <= most) continue;
      most = weight;
      worst = held;
    }
    return worst;
  }
}
