// The route of calls that any instance of their template may answer.

import { type ExchangeRequest, ownerIdOf } from '../../domain/calls/exchange.ts';
import { isRepeatable } from '../../domain/calls/retry-rules.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import type { TemplateGroup } from '../template-group.ts';
import { type CallRoute, DirectStep, type RunningCall, type Step, stepWithout } from './call-route.ts';
import type { ExcludedIds } from './tries.ts';

/** Leads a call to the instance that the template's strategy chooses; the strategy chooses again at each step. */
export class BalancedRoute implements CallRoute {
  readonly onlyInstance = undefined;
  readonly #pool: TemplateGroup['pool'];
  readonly #request: ExchangeRequest;

  constructor({ pool }: TemplateGroup, request: ExchangeRequest) {
    this.#pool = pool;
    this.#request = request;
  }

  step({ tries: { excluded } }: RunningCall): Step {
    const ref = this.next(excluded);
    return ref === undefined ? stepWithout(this.isOnlyFull(excluded)) : new DirectStep(ref, this.#request);
  }

  /**
   * An instance below its capacity, or, if all are full, one whose reserve the owner of the request may use;
   * undefined if there is none. Source: ADR 41.
   */
  next(excluded: ExcludedIds): InstanceRef | undefined {
    const options = { excluded, isRepeatable: (ref: InstanceRef) => isRepeatable(this.#request, ref) };
    const ownerId = ownerIdOf(this.#request);
    return (
      this.#pool.pick(this.#request, options) ??
      this.#pool.pick(this.#request, { ...options, hasRoom: (ref) => ref.hasCapacityFor(ownerId) })
    );
  }

  isOnlyFull(excluded: ExcludedIds): boolean {
    return this.#pool.isFull(excluded);
  }
}
