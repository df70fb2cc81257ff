// The input of one call, fixed before it begins, and the search for its instances: the route names the next one, and instances
// that were tried or lack the tool are skipped. Also the error when there is none.

import { backendUnavailable, noHealthyInstance, toolNotFound } from '../../domain/error-catalogue.ts';
import type { GatewayError } from '../../domain/errors.ts';
import type { ExchangeRequest } from '../../domain/exchange.ts';
import type { InstanceSnapshot, InstanceState } from '../../domain/instance.ts';
import type { Group } from '../group.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import type { CallRoute, Tried } from './routes.ts';

export interface CallInput {
  readonly group: Group;
  readonly request: ExchangeRequest;
  readonly route: CallRoute;
  /** The tool that an instance must have; undefined when any instance will do, or the backend itself may reject the tool. */
  readonly wantedTool: string | undefined;
  readonly timeoutMs: number;
}

export class InstanceSearch {
  readonly #input: CallInput;
  #tried: Set<string> | undefined;
  /** An instance lacked the wanted tool. */
  #isToolLacking = false;

  constructor(input: CallInput) {
    this.#input = input;
  }

  get tried(): Tried {
    return this.#tried;
  }

  /** Undefined when no instance can take the call now. The call is to be sent in the same synchronous block: see Pool.pick. */
  next(): InstanceRef | undefined {
    const { route } = this.#input;
    let ref = route.next(this.#tried);
    while (ref !== undefined && mayLackTool(this.#input, ref) && !ref.tools?.mayRefresh) {
      this.#skip(ref);
      ref = route.next(this.#tried);
    }
    return ref;
  }

  exclude(ref: InstanceRef): void {
    this.#tried ??= new Set();
    this.#tried.add(ref.id);
  }

  /** The instance has listed its tools again for the call. An instance without the tool is not asked again. */
  lookedUp(ref: InstanceRef): void {
    if (mayLackTool(this.#input, ref)) this.#skip(ref);
  }

  /** `members`: all instances of the template. TOOL_NOT_FOUND unless an unavailable instance may have the tool. */
  error(members: readonly UnavailableInstance[]): GatewayError {
    const { group, route, wantedTool } = this.#input;
    const { template } = group;
    const { bound } = route;
    const mayExist =
      bound === undefined && members.some(({ id, state }) => !this.#tried?.has(id) && MAY_RETURN.has(state));
    if (wantedTool !== undefined && this.#isToolLacking && !mayExist)
      return toolNotFound(wantedTool, template);
    if (bound === undefined) return noneHealthy(template, members);
    return backendUnavailable(`"${bound.id}" is ${bound.state}`, { delivered: 'no' });
  }

  #skip(ref: InstanceRef): void {
    this.#isToolLacking = true;
    this.exclude(ref);
  }
}

/** True when an instance has not listed the tool: the instance lacks it, or the list is out of date. */
export function mayLackTool({ wantedTool }: CallInput, { tools }: InstanceRef): boolean {
  return wantedTool !== undefined && tools?.knows(wantedTool) === 'no';
}

/** An instance that takes no call, as the error names it. */
type UnavailableInstance = Pick<InstanceSnapshot, 'id' | 'state' | 'reason'>;

/** States of an instance that may become available on this node: its tools are unknown. */
const MAY_RETURN: ReadonlySet<InstanceState> = new Set(['starting', 'unhealthy']);

const MOST_NAMED = 3;

/** NO_HEALTHY_INSTANCE: `a is starting; b: connection refused; c is starting; and 2 more`. Reasons hold no secrets. */
export function noneHealthy(template: string, instances: readonly UnavailableInstance[]): GatewayError {
  if (instances.length === 0) return noHealthyInstance(template, 'none is registered');
  const absent = instances.filter(({ state }) => state !== 'healthy');
  const named = absent.slice(0, MOST_NAMED).map(clauseOf);
  const more = absent.length - named.length;
  return noHealthyInstance(template, [...named, ...(more === 0 ? [] : [`and ${more} more`])].join('; '));
}

function clauseOf({ id, state, reason }: UnavailableInstance): string {
  const hasReason = state === 'unhealthy' || state === 'stopped';
  return hasReason && reason !== null ? `${id}: ${reason}` : `${id} is ${state}`;
}
