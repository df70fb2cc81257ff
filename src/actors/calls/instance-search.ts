// The order of one call, fixed before it begins, and the search for its instances: the route names the next one, and instances
// that were tried or lack the tool are skipped.

import type { GatewayError } from '../../domain/errors.ts';
import type { ExchangeRequest } from '../../domain/exchange.ts';
import type { Group } from '../group.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import { noInstanceError, type UnavailableInstance } from './no-instance-error.ts';
import type { CallRoute, Tried } from './routes.ts';

/** The request, the instances that may take it, and the time for the answer. */
export interface CallOrder {
  readonly group: Group;
  readonly request: ExchangeRequest;
  readonly route: CallRoute;
  /** The tool that an instance must have; undefined when any instance will do, or the backend itself may reject the tool. */
  readonly wantedTool: string | undefined;
  readonly timeoutMs: number;
}

export class InstanceSearch {
  readonly #order: CallOrder;
  #tried: Set<string> | undefined;
  /** The missing tool, once an instance turned out not to have it. */
  #lackedTool: string | undefined;

  constructor(order: CallOrder) {
    this.#order = order;
  }

  get tried(): Tried {
    return this.#tried;
  }

  /** Undefined when no instance can take the call now. The call is to be sent in the same synchronous block: see Pool.pick. */
  next(): InstanceRef | undefined {
    const { route } = this.#order;
    let ref = route.next(this.#tried);
    while (ref !== undefined && mayLackTool(this.#order, ref) && !ref.tools?.mayRefresh) {
      this.#skip(ref);
      ref = route.next(this.#tried);
    }
    return ref;
  }

  exclude(ref: InstanceRef): void {
    this.#tried ??= new Set();
    this.#tried.add(ref.id);
  }

  /** The list of tools of this instance was looked up for the call: an instance that lacks the tool is not asked again. */
  lookedUp(ref: InstanceRef): void {
    if (mayLackTool(this.#order, ref)) this.#skip(ref);
  }

  /** Why none of all `members` of the template takes the call. */
  error(members: readonly UnavailableInstance[]): GatewayError {
    const { group, route } = this.#order;
    const { template } = group;
    return noInstanceError(
      { template, bound: route.bound, lackedTool: this.#lackedTool, tried: this.#tried },
      members,
    );
  }

  #skip(ref: InstanceRef): void {
    this.#lackedTool = this.#order.wantedTool;
    this.exclude(ref);
  }
}

/** True when an instance has not listed the tool: the instance lacks it, or the list is out of date. */
export function mayLackTool({ wantedTool }: CallOrder, { tools }: InstanceRef): boolean {
  return wantedTool !== undefined && tools?.knows(wantedTool) === 'no';
}
