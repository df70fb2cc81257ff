// Starts the programs that one instance dedicates to single clients: a bounded number at a time, and a few in advance. It stops those
// that were not used. The caller bounds their number and shakes hands with them.

import type { Observable } from 'rxjs';
import { backendUnavailable } from '../../domain/error-catalogue.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { TaskScheduler } from '../../domain/task-scheduler.ts';
import type { Closed } from '../transport.ts';
import { StartQueue } from './start-queue.ts';

export interface WarmProcess {
  readonly closed$: Observable<Closed>;
  /** Resolves when nothing is left of it. Idempotent, never rejects. */
  close(): Promise<void>;
}

/** An unused program is stopped after this time, so that templates with few sessions do not keep one for ever. */
export const WARM_IDLE_MS = 5 * 60_000;

/** Programs of one instance that start at the same time; others wait, because a start is mostly work for the processor. */
export const STARTS_AT_ONCE = 4;
/** The same for one owner, so that there is a place for another owner. */
export const STARTS_PER_OWNER = 3;
/** A program that is silent for this time does not use the processor, so the next one may start. */
export const START_HELD_MS = 5_000;

export interface WarmOptions {
  /** Longest wait for a place. */
  readonly maxWaitMs: number;
  /** Returns how many programs there may be besides those that clients have. Default: no limit. */
  readonly room?: (() => number) | undefined;
  /** See StartQueueOptions. */
  readonly scheduler?: TaskScheduler | undefined;
}

/** The programs of one instance. None is started before the first opening, because most instances never need one. */
export class WarmProcesses<P extends WarmProcess> {
  readonly #start: () => P;
  readonly #queue: StartQueue;
  readonly #room: () => number;
  /** Unused programs, each with the timer that stops it. */
  readonly #warm = new Map<P, NodeJS.Timeout>();
  /** Unused programs that are being stopped. */
  readonly #ending = new Set<Promise<void>>();
  #isClosed = false;

  constructor(start: () => P, { maxWaitMs, scheduler, room = () => Number.POSITIVE_INFINITY }: WarmOptions) {
    this.#start = start;
    this.#room = room;
    this.#queue = new StartQueue({
      atOnce: STARTS_AT_ONCE,
      atOncePerOwner: STARTS_PER_OWNER,
      heldMs: START_HELD_MS,
      maxWaitMs,
      scheduler,
    });
  }

  /** Number of unused programs. */
  get waiting(): number {
    return this.#warm.size;
  }

  /**
   * Gives an unused program to `use`, as soon as the queue permits, and settles as `use` does; until then the program counts as
   * starting. The caller ends the program. Rejects with BACKEND_UNAVAILABLE after `close` or too long a wait, and with the reason
   * of `signal` when that ends the wait.
   */
  async open<T>(ownerId: string, signal: AbortSignal, use: (process: P) => Promise<T>): Promise<T> {
    const opened = await this.#queue.take({ ownerId, signal, start: () => use(this.#take()) });
    this.#refill();
    return opened;
  }

  /** Stops the unused programs; no other is started. Resolves when they have ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const process of this.#warm.keys()) this.#stop(process);
    await Promise.all(this.#ending);
  }

  #take(): P {
    if (this.#isClosed) throw backendUnavailable('closed by the gateway', { delivered: 'no' });
    const [waiting] = this.#warm.keys();
    if (waiting !== undefined) this.#forget(waiting);
    return waiting ?? this.#start();
  }

  /** Starts programs for the next clients when no opening needs the processor. */
  #refill(): void {
    while (
      !this.#isClosed &&
      this.#queue.starting + this.#queue.waiting === 0 &&
      this.#warm.size < Math.min(LIMITS.warmProcesses, this.#room())
    ) {
      const process = this.#start();
      const idle = setTimeout(() => this.#stop(process), WARM_IDLE_MS);
      this.#warm.set(process, idle);
      process.closed$.subscribe(() => this.#stop(process));
    }
  }

  #forget(process: P): void {
    clearTimeout(this.#warm.get(process));
    this.#warm.delete(process);
  }

  /** Stops an unused program. */
  #stop(process: P): void {
    if (!this.#warm.has(process)) return;
    this.#forget(process);
    const end = process.close().then(() => {
      this.#ending.delete(end);
    });
    this.#ending.add(end);
  }
}
