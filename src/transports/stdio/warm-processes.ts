// The programs that one instance runs for single clients: how many of them start at a time, and the few that are started in
// advance. It starts them, and ends the unused ones. The caller bounds their number; stdio.ts does the handshake and the
// conversation.

import type { Observable } from 'rxjs';
import { backendUnavailable } from '../../domain/error-catalogue.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { TaskScheduler } from '../../domain/task-scheduler.ts';
import type { Closed } from '../transport.ts';
import { StartQueue } from './start-queue.ts';

/** A started program, as far as this file uses it. */
export interface WarmProcess {
  readonly closed$: Observable<Closed>;
  /** Resolves when nothing is left of it. Idempotent, never rejects. */
  close(): Promise<void>;
}

/** An unused program ends after so long: templates whose sessions are rare do not keep one for ever. */
export const WARM_IDLE_MS = 5 * 60_000;

/** Programs of one instance that start at the same time; the next ones wait. Most of a start is work for the processor. */
export const STARTS_AT_ONCE = 4;
/** Of these, one owner has at most so many: another owner finds a place. */
export const STARTS_PER_OWNER = 3;
/** A program that is silent for so long waits for something else than the processor: it may start beside the others. */
export const START_HELD_MS = 5_000;

export interface WarmOptions {
  /** Longest wait of a client for its turn. */
  readonly maxWaitMs: number;
  /** The number of programs there may be now beside those that were opened and are not gone. Default: any. */
  readonly room?: (() => number) | undefined;
  /** See StartQueueOptions. */
  readonly scheduler?: TaskScheduler | undefined;
}

/** The programs of one instance. None is started before the first opening: most instances never need one. */
export class WarmProcesses<P extends WarmProcess> {
  readonly #start: () => P;
  readonly #queue: StartQueue;
  readonly #room: () => number;
  /** Started and not taken, each with the end of its wait. */
  readonly #warm = new Map<P, NodeJS.Timeout>();
  /** Not taken, and on their way out. */
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

  /** The number of programs that wait for a client. */
  get waiting(): number {
    return this.#warm.size;
  }

  /**
   * Gives an unused program to `use`, when it is its turn, and settles as `use` does; until then the program counts as
   * starting. The caller ends the program. Rejects with BACKEND_UNAVAILABLE after `close` or too long a wait, and with the reason
   * of `signal` when that ends the wait.
   */
  async open<T>(ownerId: string, signal: AbortSignal, use: (process: P) => Promise<T>): Promise<T> {
    const opened = await this.#queue.take({ ownerId, signal, start: () => use(this.#take()) });
    this.#refill();
    return opened;
  }

  /** Ends those that no client has taken. Resolves when nothing is left of them; none is started after. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const process of this.#warm.keys()) this.#drop(process);
    await Promise.all(this.#ending);
  }

  #take(): P {
    if (this.#isClosed) throw backendUnavailable('closed by the gateway', { delivered: 'no' });
    const [waiting] = this.#warm.keys();
    if (waiting !== undefined) this.#forget(waiting);
    return waiting ?? this.#start();
  }

  /** Starts the programs for the next clients, once no opening needs the processor more. */
  #refill(): void {
    while (
      !this.#isClosed &&
      this.#queue.starting + this.#queue.waiting === 0 &&
      this.#warm.size < Math.min(LIMITS.warmProcesses, this.#room())
    ) {
      const process = this.#start();
      const idle = setTimeout(() => this.#drop(process), WARM_IDLE_MS);
      this.#warm.set(process, idle);
      process.closed$.subscribe(() => this.#drop(process));
    }
  }

  #forget(process: P): void {
    clearTimeout(this.#warm.get(process));
    this.#warm.delete(process);
  }

  /** Ends a waiting program. Its client ends a program that was taken. */
  #drop(process: P): void {
    if (!this.#warm.has(process)) return;
    this.#forget(process);
    const end = process.close().then(() => {
      this.#ending.delete(end);
    });
    this.#ending.add(end);
  }
}
