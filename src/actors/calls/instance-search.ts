// The search for the instances of one call: its route says which is next; those that were tried or lack its tool are passed over.

import type { GatewayError } from '../../domain/errors.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import { type CallOrder, certainlyLacksTool, mayLackTool } from './call-order.ts';
import { type Absent, noInstanceError } from './no-instance-error.ts';
import type { Tried } from './routes.ts';

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
    while (ref !== undefined && certainlyLacksTool(this.#order, ref)) {
      this.#passOver(ref);
      ref = route.next(this.#tried);
    }
    return ref;
  }

  exclude(ref: InstanceRef): void {
    this.#tried ??= new Set();
    this.#tried.add(ref.id);
  }

  /** Its list of tools was looked up. Whatever the age of that list now: the instance was asked, and is not asked again. */
  lookedUp(ref: InstanceRef): void {
    if (mayLackTool(this.#order, ref)) this.#passOver(ref);
  }

  /** Why none of all `members` of the template takes the call. */
  error(members: readonly Absent[]): GatewayError {
    const { group, route } = this.#order;
    const { template } = group;
    return noInstanceError(
      { template, bound: route.bound, lackedTool: this.#lackedTool, tried: this.#tried },
      members,
    );
  }

  #passOver(ref: InstanceRef): void {
    this.#lackedTool = this.#order.wantedTool;
    this.exclude(ref);
  }
}
