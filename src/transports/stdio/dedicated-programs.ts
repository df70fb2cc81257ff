// The programs that one instance dedicates to single clients, or to clients with equal extensions: a bounded number starts at a
// time, and a few are started in advance. The caller bounds their number; stdio-handshake.ts shakes hands with them.

import { backendUnavailable, openingRefused } from '../../domain/errors/backend-errors.ts';
import { FairSlots } from '../../domain/time/fair-slots.ts';
import type { Channel } from '../channel.ts';
import type { HandshakeOptions } from '../handshake.ts';
import type { OpenOptions } from '../open-options.ts';
import type { ConversationOpening } from '../transport.ts';
import { openOnPipe } from './stdio-handshake.ts';

/** The number of started processes that wait for the next client. */
const WARM_PROGRAMS = 1;

/** A warm program is stopped after this time, so that templates with few sessions do not keep one for ever. */
const WARM_IDLE_MS = 5 * 60_000;

/** Programs of one instance that start at the same time; others wait, because a start is mostly work for the processor. */
export const STARTS_AT_ONCE = 4;
/** Programs of one owner that start at the same time, so that another owner can start one, too. */
export const STARTS_PER_OWNER = 3;

type DedicatedProgramsOptions = Pick<
  OpenOptions,
  'client' | 'clock' | 'handshakeTimeoutMs' | 'room' | 'scheduler' | 'era'
>;

interface DedicatedOpening extends ConversationOpening, Pick<HandshakeOptions, 'mayBeModern'> {}

/** The dedicated programs of one instance. None is started before the first opening, because most instances never need one. */
export class DedicatedPrograms {
  readonly #start: (isDedicated: boolean) => Channel;
  readonly #options: DedicatedProgramsOptions;
  readonly #queue: FairSlots;
  /** Warm programs (started, and without a client), until they have ended, each with the timer that stops it. */
  readonly #warm = new Map<Channel, () => void>();
  #isClosed = false;

  constructor(start: (isDedicated: boolean) => Channel, options: DedicatedProgramsOptions) {
    const { handshakeTimeoutMs, scheduler, clock } = options;
    this.#start = start;
    this.#options = options;
    this.#queue = new FairSlots({
      atOnce: STARTS_AT_ONCE,
      atOncePerShare: STARTS_PER_OWNER,
      maxWaitMs: handshakeTimeoutMs,
      refusal: openingRefused,
      scheduler,
      clock,
    });
  }

  /** Warm programs that can be used. */
  get warm(): number {
    return this.#usable.length;
  }

  /**
   * Opens a program in the legacy era, or, if `mayBeModern`, in the modern one when it speaks no other. The caller ends it.
   * Throws like the handshake, `openingRefused`, and BACKEND_UNAVAILABLE after `close`.
   */
  async open({ ownerId, isShared = false, ...opening }: DedicatedOpening): Promise<Channel> {
    const start = async (): Promise<Channel> => {
      if (this.#isClosed) throw backendUnavailable('closed by the gateway', { delivered: 'no' });
      const channel = isShared ? this.#start(false) : this.#takeWarm();
      if (!isShared) channel.ownerId = ownerId ?? channel.ownerId;
      await openOnPipe(channel, { ...this.#options, ...opening });
      return channel;
    };
    const opened = await this.#queue.take({ shareId: ownerId, signal: opening.signal, start });
    if (!isShared) this.#refill(); // further clients with these extensions need no process
    return opened;
  }

  #takeWarm(): Channel {
    const [channel = this.#start(true)] = this.#usable;
    this.#forget(channel);
    return channel;
  }

  /** Stops the warm programs; no other is started. Resolves when they have ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#warm.keys()].map((channel) => this.#stop(channel)));
  }

  get #usable(): Channel[] {
    return [...this.#warm.keys()].filter(({ isUsable }) => isUsable);
  }

  /** Starts programs for the next clients when no opening needs the processor. */
  #refill(): void {
    const { room = () => Number.POSITIVE_INFINITY, clock } = this.#options;
    while (
      !this.#isClosed &&
      this.#queue.running + this.#queue.waiting === 0 &&
      this.warm < Math.min(WARM_PROGRAMS, room())
    ) {
      const channel = this.#start(true);
      this.#warm.set(
        channel,
        clock.alarm(WARM_IDLE_MS, () => void this.#stop(channel)),
      );
      channel.closed$.subscribe(() => this.#stop(channel));
    }
  }

  #forget(channel: Channel): void {
    this.#warm.get(channel)?.();
    this.#warm.delete(channel);
  }

  async #stop(channel: Channel): Promise<void> {
    if (!this.#warm.has(channel)) return;
    await channel.close();
    this.#forget(channel);
  }
}
