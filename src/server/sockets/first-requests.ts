// Begins the first requests of connections. The system queues connections that wait to be accepted, of all clients together, and
// the event loop accepts one a round: rounds have to be short while more arrive. So only a few first requests begin in them, and
// those of different networks take turns. Source: ADR 463.

import type { TaskScheduler } from '../../domain/time/task-scheduler.ts';

/** While connections arrive, first requests begin in every fourth round, unless few or very many wait. */
const ROUNDS = 4;
const FEW = 16;
const VERY_MANY = 4_096;
/** First requests that begin in one round otherwise. */
const AT_ONCE = 64;
/** While so many requests wait for the scheduler, fewer begin in a turn, so that new connections are accepted soon. */
export const MANY_WAITING = 256;
/** The most requests that wait there when more than one first request is added: the scheduler does not know networks. */
const MAX_SCHEDULED = MANY_WAITING + AT_ONCE;

interface FirstRequest {
  /** True once its client has left. */
  readonly isOver: () => boolean;
  readonly begin: () => void;
}

/** The first requests that wait, of all ports of a gateway. */
export class FirstRequests {
  readonly #scheduler: Pick<TaskScheduler, 'run' | 'waiting'>;
  readonly #nextRound: (run: () => void) => void;
  /** By network; the one whose turn is next is first. */
  readonly #waiting = new Map<string, Set<FirstRequest>>();
  #count = 0;
  #arrived = 0;
  /** Connections that had arrived before the round under way. */
  #arrivedBefore = 0;
  #rounds = 0;
  #isScheduled = false;

  /** `scheduler`: of all requests. `nextRound`: runs a function after the loop has read once more. */
  constructor(
    scheduler: Pick<TaskScheduler, 'run' | 'waiting'>,
    nextRound: (run: () => void) => void = setImmediate,
  ) {
    this.#scheduler = scheduler;
    this.#nextRound = nextRound;
  }

  /** A connection was accepted. */
  arrived(): void {
    this.#arrived += 1;
  }

  /** The request begins in the next round, or later. */
  add(network: string, request: FirstRequest): void {
    const ofNetwork = this.#waiting.get(network);
    if (ofNetwork === undefined) this.#waiting.set(network, new Set([request]));
    else ofNetwork.add(request);
    this.#count += 1;
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled || this.#count === 0) return;
    this.#isScheduled = true;
    this.#nextRound(this.#round);
  }

  readonly #round = (): void => {
    this.#isScheduled = false;
    const isArriving = this.#arrived > this.#arrivedBefore;
    this.#arrivedBefore = this.#arrived;
    this.#rounds += 1;
    const isHeld = isArriving && this.#count > FEW && this.#count < VERY_MANY;
    if (!isHeld) this.#beginNext(Math.max(1, Math.min(AT_ONCE, MAX_SCHEDULED - this.#scheduler.waiting)));
    else if (this.#rounds % ROUNDS === 0) this.#beginNext(1);
    this.#schedule();
  };

  #beginNext(most: number): void {
    for (let begun = 0; begun < most; ) {
      const [next] = this.#waiting;
      if (next === undefined) return;
      const [network, requests] = next;
      this.#waiting.delete(network);
      for (const request of requests) {
        requests.delete(request);
        this.#count -= 1;
        if (request.isOver()) continue;
        this.#scheduler.run(request.begin);
        begun += 1;
        break;
      }
      if (requests.size > 0) this.#waiting.set(network, requests);
    }
  }
}
