// What one call is to do, settled before it begins. How it is done is call.ts.

import type { ExchangeRequest } from '../../domain/exchange.ts';
import type { Group } from '../group.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import type { Route } from './routes.ts';

/** What is asked, of which instances, and how long the answer may take. */
export interface CallOrder {
  readonly group: Group;
  readonly request: ExchangeRequest;
  readonly route: Route;
  /** The tool that an instance has to have; undefined when any will do, or the backend itself may say that it has none such. */
  readonly wantedTool: string | undefined;
  readonly timeoutMs: number;
  /** Called after a third of that, and after two, while nothing was heard. */
  readonly slow: (() => void) | undefined;
}

/** The request as it is sent: when it came is for the gateway alone. */
export function asSent(request: ExchangeRequest): ExchangeRequest {
  if (request.cameAtMs === undefined) return request;
  const { cameAtMs: _, ...sent } = request;
  return sent;
}

/** Name of the tool that a request calls, if it does. */
export function toolOf({ method, params }: ExchangeRequest): string | undefined {
  return method === 'tools/call' && typeof params?.name === 'string' ? params.name : undefined;
}

/** True when an instance has not listed the tool: it lacks it, or the list is out of date. */
export function mayLackTool({ wantedTool }: CallOrder, { tools }: InstanceRef): boolean {
  return wantedTool !== undefined && tools?.knows(wantedTool) === 'no';
}

/** True when looking again would not help. */
export function certainlyLacksTool(order: CallOrder, ref: InstanceRef): boolean {
  return mayLackTool(order, ref) && !ref.tools?.mayRefresh;
}
