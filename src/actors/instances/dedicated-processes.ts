// The processes that one instance runs for single clients, through all lives of the process that the others share: how many
// there may be, and of one owner, and the end of all with their instance. Each ends with its client before, if that comes first.

import { backendUnavailable } from '../../domain/backend-errors.ts';
import { OWN_BOUNDS, type OwnBounds } from '../../domain/limits.ts';
import { processLimit, processShareLimit } from '../../domain/session-errors.ts';
import type { Upstream } from '../../transports/transport.ts';
import { OwnerShares } from './owner-shares.ts';

/** Opens the conversation with a process; undefined: there is to be none for a single client. `signal` ends the opening. */
export type OpenOwn = (signal: AbortSignal) => Promise<Upstream | undefined>;

export class OwnProcesses {
  readonly #most: number;
  readonly #shares: OwnerShares;
  readonly #all = new Set<ProcessLife>();

  constructor({ processes, share }: OwnBounds = OWN_BOUNDS) {
    this.#most = processes;
    this.#shares = new OwnerShares(processes, share);
  }

  /** Those that are being opened, and those that are told to end and are not gone yet, included. */
  get size(): number {
    return this.#all.size;
  }

  /** How many more there may be. */
  get room(): number {
    return Math.max(0, this.#most - this.size);
  }

  /** A place for one more, to be opened next. QUEUE_FULL when its owner has no share left. */
  take(ownerId: string): ProcessLife {
    const shares = this.#shares;
    const { share, isAll } = shares;
    if (shares.isFull(ownerId)) throw isAll ? processLimit(share) : processShareLimit(share);
    const process = new ProcessLife({
      limit: () => (this.size > this.#most ? processLimit(this.#most) : undefined),
      gone: () => {
        if (this.#all.delete(process)) shares.giveBack(ownerId);
      },
    });
    this.#all.add(process);
    shares.take(ownerId);
    return process;
  }

  /** Ends those that are there now. Resolves when nothing is left of them; never rejects. */
  async end(): Promise<void> {
    await Promise.all([...this.#all].map((process) => process.end()));
  }
}

interface ProcessLifeParts {
  /** Why it may not be opened; undefined when it may. */
  readonly limit: () => Error | undefined;
  /** Gives its place back. */
  readonly gone: () => void;
}

/** One of them, from before its opening until nothing is left of it. */
export class ProcessLife {
  readonly #parts: ProcessLifeParts;
  readonly #ending = new AbortController();
  #opening: Promise<Upstream | undefined> | undefined;

  constructor(parts: ProcessLifeParts) {
    this.#parts = parts;
  }

  /** Settles as `open` does; rejects with QUEUE_FULL before, when there are too many. To be called once. */
  async open(signal: AbortSignal, open: OpenOwn): Promise<Upstream | undefined> {
    this.#opening = this.#open(AbortSignal.any([signal, this.#ending.signal]), open);
    try {
      const upstream = await this.#opening;
      if (upstream === undefined) this.#parts.gone();
      else this.#follow(upstream);
      return upstream;
    } catch (thrown) {
      this.#parts.gone();
      throw thrown;
    }
  }

  async end(): Promise<void> {
    this.#ending.abort();
    const upstream = await this.#opening?.catch(() => undefined);
    if (upstream !== undefined) await goneOf(upstream);
  }

  async #open(signal: AbortSignal, open: OpenOwn): Promise<Upstream | undefined> {
    const limit = this.#parts.limit();
    if (limit !== undefined) throw limit;
    const upstream = await open(signal);
    if (upstream === undefined || !this.#ending.signal.aborted) return upstream;
    await goneOf(upstream);
    throw backendUnavailable('closed by the gateway', { delivered: 'no' });
  }

  /** A program that is told to end may take seconds to do so: it is there until it is gone. */
  #follow(upstream: Upstream): void {
    const ended = (): void => void goneOf(upstream).then(this.#parts.gone);
    upstream.closed$.subscribe({ next: ended, complete: ended, error: ended });
  }
}

/** Resolves when nothing is left of it, which its transport sees to in bounded time. Never rejects. */
async function goneOf(upstream: Upstream): Promise<void> {
  try {
    await upstream.close();
  } catch {
    // Conversations promise that closing never fails; one that breaks it must not be counted for ever.
  }
}
