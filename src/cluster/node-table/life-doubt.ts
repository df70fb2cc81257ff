// While it is in doubt whether the life of this node goes on, requests wait: others may have recovered its sessions.

import { nodeUnavailable } from '../../domain/errors/node-errors.ts';
import { type Clock, settlesWithin } from '../../domain/time/clock.ts';
import type { NodeRules } from './node-rules.ts';

/** Requests wait for so long after the beginning of a doubt, in ms: the first question of a woken node may fail after 1.5 s. */
const DOUBT_MS = 2_500;

/**
 * Lets requests wait for the end of a doubt. A doubt that lasts refuses them, because a node that serves all the same
 * could serve a session beside its holder. Source: ADR 162.
 */
export class LifeDoubt {
  /** Id of the node. */
  readonly #node: string;
  readonly #clock: Clock;
  readonly #rules: Pick<NodeRules, 'isInDoubt' | 'isStopped' | 'handle'>;
  /** The end of the doubt; set while requests wait for it. */
  #over: PromiseWithResolvers<void> | undefined;
  /** The times at which the doubt was first and last seen. */
  #seen: { readonly firstMs: number; readonly lastMs: number } | undefined;
  /** The number of lives that others ended and whose sessions are being dropped. */
  #drops = 0;

  constructor(node: string, clock: Clock, rules: Pick<NodeRules, 'isInDoubt' | 'isStopped' | 'handle'>) {
    this.#node = node;
    this.#clock = clock;
    this.#rules = rules;
  }

  /**
   * The result is nearly always undefined: this life goes on. A promise after a freeze, in which others may have ended it:
   * resolves when the database has answered, and the node goes on as its present life. Throws NODE_UNAVAILABLE 2.5 s after the
   * beginning of the doubt, or after the last freeze in it.
   */
  untilLifeKnown(): Promise<void> | undefined {
    if (!this.#isInDoubt) return undefined; // nearly always
    const leftMs = this.#see();
    this.#over ??= Promise.withResolvers();
    const { promise } = this.#over;
    this.#rules.handle({ type: 'tick' }); // a heartbeat is due; this may end the doubt
    const within = this.#within(promise, leftMs);
    within.catch(() => undefined); // a caller that asks only whether there is a doubt leaves the promise
    return within;
  }

  /** Lets the requests go on if the doubt is over. Called when something was learned. */
  settle(): void {
    if (this.#isInDoubt) {
      this.#see();
      return;
    }
    this.#seen = undefined;
    this.#over?.resolve();
    this.#over = undefined;
  }

  /** Others have ended the life of this node: requests wait until its sessions are dropped, too. `dropped` never rejects. */
  untilDropped(dropped: Promise<void>): void {
    this.#drops += 1;
    void dropped.then(() => {
      this.#drops -= 1;
      this.settle();
    });
  }

  get #isInDoubt(): boolean {
    return this.#rules.isInDoubt || (this.#drops > 0 && !this.#rules.isStopped);
  }

  /**
   * Notes the doubt; returns how long requests may wait for its end, in ms. Each tick notes it, unless the process stood still.
   */
  #see(): number {
    const nowMs = this.#clock.now();
    const { firstMs, lastMs } = this.#seen ?? { firstMs: nowMs, lastMs: nowMs };
    const sinceMs = nowMs - lastMs < DOUBT_MS ? firstMs : nowMs;
    this.#seen = { firstMs: sinceMs, lastMs: nowMs };
    return Math.max(sinceMs + DOUBT_MS - nowMs, 0);
  }

  async #within(over: Promise<void>, leftMs: number): Promise<void> {
    if (await settlesWithin(over, leftMs, this.#clock)) return;
    throw nodeUnavailable(this.#node, 'it does not know whether others have taken over its sessions', 'no');
  }
}
