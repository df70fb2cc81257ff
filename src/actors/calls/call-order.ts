// The definition of one call, fixed before it begins. call.ts carries it out.

import type { ExchangeRequest } from '../../domain/exchange.ts';
import type { Group } from '../group.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import type { CallRoute } from './routes.ts';

/** The request, the instances that may take it, and the time for the answer. */
export interface CallOrder {
  readonly group: Group;
  readonly request: ExchangeRequest;
  readonly route: CallRoute;
  /** The tool that an instance must have; undefined when any instance will do, or the backend itself may reject the tool. */
  readonly wantedTool: string | undefined;
  readonly timeoutMs: number;
}

/** The request as it is sent, without its arrival time, which is for the gateway alone. */
export function asSent(request: ExchangeRequest): ExchangeRequest {
  if (request.cameAtMs === undefined) return request;
  const { cameAtMs: _, ...sent } = request;
  return sent;
}

/** True when an instance has not listed the tool: the instance lacks it, or the list is out of date. */
export function mayLackTool({ wantedTool }: CallOrder, { tools }: InstanceRef): boolean {
  return wantedTool !== undefined && tools?.knows(wantedTool) === 'no';
}

/** True when another lookup would not help. */
export function certainlyLacksTool(order: CallOrder, ref: InstanceRef): boolean {
  return mayLackTool(order, ref) && !ref.tools?.mayRefresh;
}
