// The line in front of programs that start: a burst of clients would otherwise start dozens at once, all of which then come
// up later than one after the other. What is started is its caller's.

import { backendUnavailable, type GatewayError } from '../domain/errors.ts';

/** A place in the line. */
interface Waiting {
  /** Called when its turn has come, or by whatever ends the wait. */
  readonly go: (refusal?: GatewayError) => void;
}

export interface StartLineOptions {
  /** How many may be starting at the same time. */
  readonly atOnce: number;
  /** Longest wait, in ms. */
  readonly patienceMs: number;
}

/** First come, first served. It does not limit how many wait: its owner does. */
export class StartLine {
  readonly #options: StartLineOptions;
  readonly #waiting = new Set<Waiting>();
  #starting = 0;

  constructor(options: StartLineOptions) {
    this.#options = options;
  }

  /** How many have not come to their turn yet. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** How many have come to their turn and not settled. */
  get starting(): number {
    return this.#starting;
  }

  /**
   * Runs `start` when it is its turn, at once if nobody is in front, and settles as it does. Rejects with what `calledOff`
   * makes when the signal aborts before, with BACKEND_UNAVAILABLE, `delivered: 'no'`, when the wait gets too long.
   */
  async take<T>(signal: AbortSignal, calledOff: () => GatewayError, start: () => Promise<T>): Promise<T> {
    if (this.#starting < this.#options.atOnce) this.#starting += 1;
    else await this.#turn(signal, calledOff);
    try {
      return await start();
    } finally {
      this.#passOn();
    }
  }

  /** Whoever leaves hands his place to the next one, so that nobody can come in between. */
  #passOn(): void {
    const [next] = this.#waiting;
    if (next === undefined) this.#starting -= 1;
    else next.go();
  }

  #turn(signal: AbortSignal, calledOff: () => GatewayError): Promise<void> {
    if (signal.aborted) return Promise.reject(calledOff());
    return new Promise((resolve, reject) => {
      const go: Waiting['go'] = (refusal) => {
        clearTimeout(timer);
        signal.removeEventListener('abort', stop);
        this.#waiting.delete(waiting);
        if (refusal === undefined) resolve();
        else reject(refusal);
      };
      const waiting: Waiting = { go };
      const stop = (): void => go(calledOff());
      const timer = setTimeout(() => go(tooMany()), this.#options.patienceMs);
      signal.addEventListener('abort', stop);
      this.#waiting.add(waiting);
    });
  }
}

function tooMany(): GatewayError {
  return backendUnavailable('too many of its programs were starting', { delivered: 'no' });
}
