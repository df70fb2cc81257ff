// The route of calls that are sent unchanged, through the transport of an instance: any one, or one that the caller names.
// The other routes use its two rules, too: which instance of a template takes a call, and whether a given one does.

import type { Pool } from '../../balancing/pool.ts';
import { type ExchangeRequest, ownerIdOf } from '../../domain/calls/exchange.ts';
import { isRepeatable } from '../../domain/calls/retry-rules.ts';
import type { CallConversation } from '../../transports/transport.ts';
import type { TemplateGroup } from '../fleet/template-group.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import type { AttemptPlan, CallRoute, RunningCall, SendStep, Step } from './call-route.ts';

/** Leads a call to the instance that the template's strategy chooses at each step, or to one given instance only. */
export class DirectRoute implements CallRoute {
  readonly onlyInstance: InstanceRef | undefined;
  readonly #pool: TemplateGroup['pool'];
  readonly #request: ExchangeRequest;
  readonly #isContinuation: boolean;

  /** `only`: the given instance; undefined when any may answer. `isContinuation`: see InstanceRef.acceptsCalls. */
  constructor({ pool }: TemplateGroup, request: ExchangeRequest, only?: InstanceRef, isContinuation = false) {
    this.#pool = pool;
    this.#request = request;
    this.onlyInstance = only;
    this.#isContinuation = isContinuation;
  }

  step({ tries: { excluded } }: RunningCall): Step {
    const only = this.onlyInstance;
    const request = this.#request;
    if (only !== undefined && excluded?.has(only.id)) return 'none';
    const choice =
      only === undefined
        ? chosenFrom(this.#pool, request, excluded)
        : ifAccepting(only, ownerIdOf(request), this.#isContinuation);
    return typeof choice === 'string' ? choice : new DirectStep(choice, request);
  }
}

/** The instance that takes a call now. `full`: only its capacity keeps an instance from it. `none`: there is no instance for it. */
export type InstanceChoice = InstanceRef | 'full' | 'none';

/** An instance below its capacity, or, if all are full, one whose reserve the owner of the request may use. Source: ADR 41. */
export function chosenFrom(
  pool: Pool<InstanceRef>,
  request: ExchangeRequest,
  excluded: ReadonlySet<string> | undefined,
): InstanceChoice {
  const options = { excluded, isRepeatable: (ref: InstanceRef) => isRepeatable(request, ref) };
  const ownerId = ownerIdOf(request);
  return (
    pool.pick(request, options) ??
    pool.pick(request, { ...options, hasRoom: (ref) => ref.hasCapacityFor(ownerId) }) ??
    (pool.isFull(excluded) ? 'full' : 'none')
  );
}

/**
 * This instance, if it takes a call of this owner in this conversation, by default its transport. `isContinuation`: see
 * acceptsCalls.
 */
export function ifAccepting(
  ref: InstanceRef,
  ownerId: string,
  isContinuation: boolean,
  conversation?: CallConversation,
): InstanceChoice {
  if (!ref.acceptsCalls(conversation, isContinuation)) return 'none';
  return ref.hasCapacityFor(ownerId) ? ref : 'full';
}

/** Sends a request unchanged. The object is the step and its plan at once, to make only one object per call. */
export class DirectStep implements SendStep, AttemptPlan {
  readonly kind = 'send';
  readonly ref: InstanceRef;
  readonly request: ExchangeRequest;

  constructor(ref: InstanceRef, request: ExchangeRequest) {
    this.ref = ref;
    this.request = request;
  }

  plan(): AttemptPlan {
    return this;
  }
}
