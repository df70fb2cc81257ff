// The programs that one instance dedicates to single clients: a bounded number starts at a time, and a few are started in advance.
// The caller bounds their number; stdio-handshake.ts shakes hands with them.

import type { ClientProfile } from '../../domain/client.ts';
import { backendUnavailable, openingCancelled } from '../../domain/error-catalogue.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Era } from '../../domain/mcp.ts';
import type { Channel } from '../channel.ts';
import type { OpenOptions } from '../transport.ts';
import { StartQueue } from './start-queue.ts';
import { openOnPipe } from './stdio-handshake.ts';

/** An unused program is stopped after this time, so that templates with few sessions do not keep one for ever. */
export const WARM_IDLE_MS = 5 * 60_000;

/** Programs of one instance that start at the same time; others wait, because a start is mostly work for the processor. */
export const STARTS_AT_ONCE = 4;
/** The same for one owner, so that another owner can start one, too. */
export const STARTS_PER_OWNER = 3;

export interface DedicatedProgramsOptions
  extends Pick<OpenOptions, 'client' | 'handshakeTimeoutMs' | 'room' | 'scheduler'> {
  /** The era of the shared program. */
  readonly era: Era;
}

/** The dedicated programs of one instance. None is started before the first opening, because most instances never need one. */
export class DedicatedPrograms {
  readonly #start: () => Channel;
  readonly #options: DedicatedProgramsOptions;
  readonly #queue: StartQueue;
  /** Unused programs, each with the timer that stops it. */
  readonly #warm = new Map<Channel, NodeJS.Timeout>();
  /** Unused programs that are being stopped. */
  readonly #ending = new Set<Promise<void>>();
  #isClosed = false;

  constructor(start: () => Channel, options: DedicatedProgramsOptions) {
    const { handshakeTimeoutMs, scheduler } = options;
    this.#start = start;
    this.#options = options;
    this.#queue = new StartQueue({
      atOnce: STARTS_AT_ONCE,
      atOncePerOwner: STARTS_PER_OWNER,
      maxWaitMs: handshakeTimeoutMs,
      scheduler,
    });
  }

  get warm(): number {
    return this.#warm.size;
  }

  /**
   * Opens a program in the legacy era, or in the modern one if it speaks no other. The caller ends it. Rejects with
   * BACKEND_UNAVAILABLE after `close` or too long a wait, and like the handshake.
   */
  async open(profile: ClientProfile, signal: AbortSignal, ownerId: string): Promise<Channel> {
    const { client, handshakeTimeoutMs, scheduler, era } = this.#options;
    const mayBeModern = era === 'modern';
    const start = async (): Promise<Channel> => {
      const channel = this.#take();
      await openOnPipe(channel, { client, profile, mayBeModern, signal, handshakeTimeoutMs, scheduler });
      return channel;
    };
    try {
      const opened = await this.#queue.take({ ownerId, signal, start });
      this.#refill();
      return opened;
    } catch (thrown) {
      throw signal.aborted ? openingCancelled(thrown) : thrown;
    }
  }

  /** Stops the unused programs; no other is started. Resolves when they have ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const channel of this.#warm.keys()) this.#stop(channel);
    await Promise.all(this.#ending);
  }

  #take(): Channel {
    if (this.#isClosed) throw backendUnavailable('closed by the gateway', { delivered: 'no' });
    const warm = [...this.#warm.keys()].find(({ isUsable }) => isUsable);
    if (warm !== undefined) this.#forget(warm);
    return warm ?? this.#start();
  }

  /** Starts programs for the next clients when no opening needs the processor. */
  #refill(): void {
    const { room = () => Number.POSITIVE_INFINITY } = this.#options;
    while (
      !this.#isClosed &&
      this.#queue.starting + this.#queue.waiting === 0 &&
      this.#warm.size < Math.min(LIMITS.warmProcesses, room())
    ) {
      const channel = this.#start();
      this.#warm.set(
        channel,
        setTimeout(() => this.#stop(channel), WARM_IDLE_MS),
      );
      channel.closed$.subscribe(() => this.#stop(channel));
    }
  }

  #forget(channel: Channel): void {
    clearTimeout(this.#warm.get(channel));
    this.#warm.delete(channel);
  }

  #stop(channel: Channel): void {
    if (!this.#warm.has(channel)) return;
    this.#forget(channel);
    const end = channel.close().then(() => {
      this.#ending.delete(end);
    });
    this.#ending.add(end);
  }
}
