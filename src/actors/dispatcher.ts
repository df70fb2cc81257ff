// Carries calls to instances: who may call, which template or instance is meant, and what a call may expect. How one
// call finds its instance is call.ts; answers come straight from the transport.

import { Observable } from 'rxjs';
import { asGatewayError, shuttingDown } from '../domain/errors.ts';
import type { Answer, ExchangeRequest } from '../domain/exchange.ts';
import { Call, type CallOrder, type CallParts } from './call.ts';
import type { Fleet } from './fleet.ts';

export interface ExchangeOptions {
  /** Ms until the first answer; each notification starts it anew. Default: the template's policy. */
  readonly timeoutMs?: number;
  /** Only this instance may answer: no balancing, no failover. */
  readonly instanceId?: string;
}

export interface DispatcherParts extends CallParts {
  readonly fleet: Fleet;
}

export class Dispatcher {
  readonly #parts: DispatcherParts;

  constructor(parts: DispatcherParts) {
    this.#parts = parts;
  }

  /**
   * Cold: subscribing starts the call, unsubscribing cancels it on the backend. Emits what the instance says, errors
   * with GatewayError: TEMPLATE_NOT_FOUND, SERVER_NOT_FOUND, NO_HEALTHY_INSTANCE, QUEUE_FULL, TOOL_NOT_FOUND,
   * BACKEND_UNAVAILABLE, BACKEND_TIMEOUT, SHUTTING_DOWN. Failover: `delivered: 'no'` goes on to another instance, at
   * most `maxRetries` times and never to the same one twice; `'unknown'` only for what is safe to repeat, within the
   * retry budget; never after the first message. The last failure is the one that is told. Source: ADR 9.
   */
  exchange(template: string, request: ExchangeRequest, options: ExchangeOptions = {}): Observable<Answer> {
    return new Observable((subscriber) => {
      const { emit, budget } = this.#parts;
      const { method } = request;
      emit({ type: 'exchange.started', atMs: Date.now(), template, method });
      let order: CallOrder;
      try {
        order = this.#order(template, request, options);
      } catch (thrown) {
        const error = asGatewayError(thrown);
        emit({ type: 'exchange.refused', atMs: Date.now(), template, method, code: error.code });
        subscriber.error(error);
        return;
      }
      budget.countCall();
      const call = new Call(this.#parts, order, subscriber);
      subscriber.add(() => call.end());
      call.begin();
    });
  }

  #order(template: string, request: ExchangeRequest, { instanceId, timeoutMs }: ExchangeOptions): CallOrder {
    const { fleet, isAccepting } = this.#parts;
    if (!isAccepting()) throw shuttingDown();
    const group = fleet.group(template);
    const pinned = instanceId === undefined ? undefined : fleet.get(template, instanceId);
    return { group, request, pinned, timeoutMs: timeoutMs ?? group.policy.callTimeoutMs };
  }
}
