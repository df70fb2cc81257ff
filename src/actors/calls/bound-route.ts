// The route of calls that only one given instance may answer.

import { type ExchangeRequest, ownerIdOf } from '../../domain/calls/exchange.ts';
import type { InstanceState } from '../../domain/instances/instance.ts';
import type { CallConversation } from '../../transports/transport.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import {
  type CallRoute,
  DirectStep,
  type ExcludedIds,
  FULL,
  NO_STEP,
  type RunningCall,
  type Step,
} from './call-route.ts';

/** Leads a call to one given instance only. */
export class BoundRoute implements CallRoute {
  readonly onlyInstance: InstanceRef;
  readonly #request: ExchangeRequest;
  readonly #isContinuation: boolean;
  readonly #conversation: CallConversation | undefined;

  /**
   * `isContinuation`: the call continues something that is under way at the instance, and a draining or unhealthy instance
   * still takes it. `conversation`: undefined for the transport of the instance.
   */
  constructor(
    bound: InstanceRef,
    request: ExchangeRequest,
    isContinuation: boolean,
    conversation?: CallConversation,
  ) {
    this.onlyInstance = bound;
    this.#request = request;
    this.#isContinuation = isContinuation;
    this.#conversation = conversation;
  }

  step({ excluded }: RunningCall): Step {
    const ref = this.next(excluded);
    if (ref !== undefined) return new DirectStep(ref, this.#request, this.#conversation);
    return this.isOnlyFull(excluded) ? FULL : NO_STEP;
  }

  next(excluded: ExcludedIds): InstanceRef | undefined {
    const hasCapacity = this.onlyInstance.hasCapacityFor(ownerIdOf(this.#request));
    return hasCapacity && this.isOpen(excluded) ? this.onlyInstance : undefined;
  }

  /** True when the instance may take the call, whether or not it is full at the moment. */
  isOpen(excluded: ExcludedIds): boolean {
    const isServing =
      this.onlyInstance.acceptsCalls(this.#conversation) ||
      (this.#isContinuation && CONTINUABLE.has(this.onlyInstance.state));
    return isServing && !excluded?.has(this.onlyInstance.id);
  }

  isOnlyFull(excluded: ExcludedIds): boolean {
    return this.isOpen(excluded) && this.onlyInstance.activeCalls >= this.onlyInstance.capacity;
  }
}

/** States of an instance that takes no new calls, but may continue what is under way there. */
const CONTINUABLE: ReadonlySet<InstanceState> = new Set(['draining', 'unhealthy']);
