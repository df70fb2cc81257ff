// The route of calls that only one given instance may answer.

import { type ExchangeRequest, ownerIdOf } from '../../domain/calls/exchange.ts';
import type { InstanceState } from '../../domain/instances/instance.ts';
import type { CallConversation } from '../../transports/transport.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import { type CallRoute, DirectStep, type RunningCall, type Step, stepWithout } from './call-route.ts';
import type { ExcludedIds } from './tries.ts';

/** Whether a call begins at its instance, or continues something there. */
type BoundKind = 'new' | 'continued';

/** Leads a call to one given instance only. */
export class BoundRoute implements CallRoute {
  readonly onlyInstance: InstanceRef;
  readonly #request: ExchangeRequest;
  readonly #kind: BoundKind;
  readonly #conversation: CallConversation | undefined;

  /**
   * `continued`: the call continues something that is under way at the instance, and a draining or unhealthy instance
   * still takes it. `conversation`: undefined for the transport of the instance.
   */
  constructor(
    bound: InstanceRef,
    request: ExchangeRequest,
    kind: BoundKind,
    conversation?: CallConversation,
  ) {
    this.onlyInstance = bound;
    this.#request = request;
    this.#kind = kind;
    this.#conversation = conversation;
  }

  step({ tries: { excluded } }: RunningCall): Step {
    const ref = this.next(excluded);
    return ref === undefined
      ? stepWithout(this.isOnlyFull(excluded))
      : new DirectStep(ref, this.#request, this.#conversation);
  }

  next(excluded: ExcludedIds): InstanceRef | undefined {
    const hasCapacity = this.onlyInstance.hasCapacityFor(ownerIdOf(this.#request));
    return hasCapacity && this.isOpen(excluded) ? this.onlyInstance : undefined;
  }

  /** True when the instance may take the call, whether or not it is full at the moment. */
  isOpen(excluded: ExcludedIds): boolean {
    const isServing =
      this.onlyInstance.acceptsCalls(this.#conversation) ||
      (this.#kind === 'continued' && CONTINUABLE.has(this.onlyInstance.state));
    return isServing && !excluded?.has(this.onlyInstance.id);
  }

  isOnlyFull(excluded: ExcludedIds): boolean {
    return this.isOpen(excluded) && this.onlyInstance.activeCalls >= this.onlyInstance.capacity;
  }
}

/** States of an instance that takes no new calls, but may continue what is under way there. */
const CONTINUABLE: ReadonlySet<InstanceState> = new Set(['draining', 'unhealthy']);
