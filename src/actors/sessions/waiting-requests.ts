// The requests of one session that wait for a binding. The state machine decides when they continue; client-session.ts
// passes its decisions on.

import { Observable, type Subscriber } from 'rxjs';
import { queueFull } from '../../domain/errors/backend-errors.ts';
import type { GatewayError } from '../../domain/errors/errors.ts';
import { shuttingDown } from '../../domain/errors/gateway-errors.ts';
import { sessionEnded, sessionLost } from '../../domain/errors/session-errors.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Binding } from './binding.ts';
import type { ClientSessionEmission } from './client-session.machine.ts';
import type { SessionCore } from './session-core.ts';

type Serving = Pick<Extract<ClientSessionEmission, { type: 'serving' }>, 'binding' | 'failure'>;

interface Refusal {
  /** The error that the requests get. Undefined: it follows from `why`, or the gateway closes. */
  readonly failure: GatewayError | undefined;
  readonly why: 'noneHealthy' | 'finishing' | 'ended';
}

const NO_NEW_CALLS = 'its instance takes no new calls';

interface WaitingRequest {
  /** True when the request needs a dedicated conversation. */
  readonly needsDedicated: boolean;
  readonly subscriber: Subscriber<Binding>;
}

/** The requests of one session that wait for a binding. */
export class WaitingRequests {
  readonly #session: SessionCore;
  #requests: readonly WaitingRequest[] = [];

  constructor(session: SessionCore) {
    this.#session = session;
  }

  get size(): number {
    return this.#requests.length;
  }

  /** True when at least one of the requests needs a dedicated conversation. */
  get needsDedicated(): boolean {
    return this.#requests.some(({ needsDedicated }) => needsDedicated);
  }

  /** See SessionCore.untilBound. */
  untilBound(needsDedicated: boolean): Observable<Binding> {
    return new Observable((subscriber) => {
      const { value, deps } = this.#session;
      const { template, endReason } = value;
      if (!deps.isAccepting()) return subscriber.error(shuttingDown());
      if (endReason !== undefined) return subscriber.error(sessionEnded(endReason));
      if (this.size >= LIMITS.queuedPerInstance) return subscriber.error(queueFull(template));
      const request = { needsDedicated, subscriber };
      this.#requests = [...this.#requests, request];
      this.#session.requestBinding(needsDedicated);
      return () => {
        this.#requests = this.#requests.filter((each) => each !== request);
      };
    });
  }

  /**
   * Continues all waiting requests. Those that need a dedicated conversation are refused when opening one has failed.
   * In a microtask, so that no call runs inside the actor's mailbox, and what it reports takes effect at once.
   */
  resume({ binding, failure }: Serving): void {
    const requests = this.#takeAll();
    if (requests.length === 0) return;
    queueMicrotask(() => {
      for (const { needsDedicated, subscriber } of requests) {
        if (failure !== undefined && needsDedicated) subscriber.error(failure);
        else subscriber.next(binding);
      }
    });
  }

  /** Refuses all waiting requests; later ones wait again. */
  refuse({ failure, why }: Refusal): void {
    const requests = this.#takeAll();
    if (requests.length === 0) return;
    const error = failure ?? this.#refusal(why);
    for (const { subscriber } of requests) subscriber.error(error);
  }

  #refusal(why: Refusal['why']): GatewayError {
    const { deps, group, value } = this.#session;
    if (!deps.isAccepting()) return shuttingDown();
    if (why === 'noneHealthy') return group.noneHealthy();
    return why === 'finishing' ? sessionLost(NO_NEW_CALLS) : sessionEnded(value.endReason ?? 'closed');
  }

  #takeAll(): readonly WaitingRequest[] {
    const requests = this.#requests;
    this.#requests = [];
    return requests;
  }
}
