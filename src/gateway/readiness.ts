// Whether a gateway takes requests: during its start, while it is drained, and before and during its stop. Source:
// ADR 83, 96, 161.

import { shuttingDown } from '../domain/errors/gateway-errors.ts';
import type { InstanceState } from '../domain/instances/instance.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Clock } from '../domain/time/clock.ts';
import type { GatewayPhase } from './gateway-types.ts';

/** The phase of one gateway, from its start to its end. */
export class Readiness {
  readonly #emit: (type: 'gateway.draining' | 'gateway.resumed') => void;
  readonly #clock: Clock;
  #phase: GatewayPhase = 'starting';
  #leaving: 'drain' | 'stop' | undefined;
  /** The instances that were loaded at the start, until each of them has opened or failed, or LIMITS.firstOpeningsMs are over. */
  #opening: readonly { readonly state: InstanceState }[] = [];

  constructor(emit: (type: 'gateway.draining' | 'gateway.resumed') => void, clock: Clock) {
    this.#emit = emit;
    this.#clock = clock;
  }

  get phase(): GatewayPhase {
    return this.#phase;
  }

  /** True while calls are accepted, and the instances of the start have opened, failed or had their time. */
  get isReady(): boolean {
    if (this.#opening.every(({ state }) => state !== 'starting')) this.#opening = [];
    return this.#phase === 'running' && !this.isLeaving && this.#opening.length === 0;
  }

  /** True while it is drained, and after the announcement of a stop: load balancers send requests elsewhere. */
  get isLeaving(): boolean {
    return this.#leaving !== undefined;
  }

  /** True between `drain` and `resume`. */
  get isDraining(): boolean {
    return this.#leaving === 'drain';
  }

  /** The registry is loaded. `opening`: its instances. */
  run(opening: readonly { readonly state: InstanceState }[]): void {
    this.#opening = opening;
    this.#phase = 'running';
    // The instances are forgotten even if nothing reads `isReady`: otherwise an instance that is removed later would still take
    // memory.
    this.#clock.background.alarm(LIMITS.firstOpeningsMs, () => {
      this.#opening = [];
    });
  }

  /**
   * Makes the gateway not ready until `resume`, or until the process ends. It opens no sessions for clients, and other nodes
   * may continue sessions that have no calls; everything else is served. Throws SHUTTING_DOWN, as `resume` does: a stop is
   * not taken back.
   */
  drain(): void {
    this.#leave('drain');
  }

  resume(): void {
    this.#leave(undefined);
  }

  /** Makes the gateway not ready from now on; everything is served until the stop. */
  announceClose(): void {
    this.#leaving = 'stop';
  }

  close(): void {
    this.#phase = 'closing';
  }

  #leave(leaving: 'drain' | undefined): void {
    if (this.#leaving === 'stop' || this.#phase === 'closing') throw shuttingDown();
    if (this.#leaving === leaving) return;
    this.#leaving = leaving;
    this.#emit(leaving === 'drain' ? 'gateway.draining' : 'gateway.resumed');
  }
}
