// The requests of one session that wait for a binding. The state machine decides when they continue; client-session.ts
// passes its decisions on.

import { Observable, type Subscriber } from 'rxjs';
import type { GatewayError } from '../../../domain/errors/errors.ts';
import { shuttingDown } from '../../../domain/errors/gateway-errors.ts';
import { tooMany } from '../../../domain/errors/request-errors.ts';
import { sessionEnded } from '../../../domain/errors/session-errors.ts';
import { MAX_QUEUED_PER_INSTANCE } from '../../instances/call-counter.ts';
import type { SessionCore } from '../session-core.ts';
import type { Binding } from './binding.ts';

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
      const closed = this.#closed;
      if (closed !== undefined) return subscriber.error(closed);
      const exceeded = { most: MAX_QUEUED_PER_INSTANCE, isShare: false };
      if (this.size >= exceeded.most)
        return subscriber.error(tooMany('requests that wait for an instance', exceeded, 1));
      const request = { needsDedicated, subscriber };
      this.#requests = [...this.#requests, request];
      this.#session.requestBinding(needsDedicated);
      return () => {
        this.#requests = this.#requests.filter((each) => each !== request);
      };
    });
  }

  /**
   * Continues all waiting requests. `failure`: of the opening of a dedicated conversation, for those that need one.
   * In a microtask, so that no call runs inside the actor's mailbox, and what it reports takes effect at once.
   */
  serve(binding: Binding, failure: GatewayError | undefined): void {
    const requests = this.#takeAll();
    if (requests.length === 0) return;
    queueMicrotask(() => {
      for (const { needsDedicated, subscriber } of requests) {
        if (failure !== undefined && needsDedicated) subscriber.error(failure);
        else subscriber.next(binding);
      }
    });
  }

  /**
   * Refuses all waiting requests with `failure`, otherwise because the gateway or the session closes, otherwise with the
   * error of `errorOf`. Later ones wait again.
   */
  refuse(failure: GatewayError | undefined, errorOf: () => GatewayError): void {
    const requests = this.#takeAll();
    if (requests.length === 0) return;
    const error = failure ?? this.#closed ?? errorOf();
    for (const { subscriber } of requests) subscriber.error(error);
  }

  /** Why no request waits any more; undefined while some may. */
  get #closed(): GatewayError | undefined {
    const { deps, value } = this.#session;
    if (!deps.isAccepting()) return shuttingDown();
    return value.endReason === undefined ? undefined : sessionEnded(value.endReason);
  }

  #takeAll(): readonly WaitingRequest[] {
    const requests = this.#requests;
    this.#requests = [];
    return requests;
  }
}
