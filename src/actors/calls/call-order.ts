// What one call is to do, settled before it begins. How it is done is call.ts.

import type { ExchangeRequest } from '../../domain/exchange.ts';
import type { Upstream } from '../../transports/transport.ts';
import type { Group } from '../group.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';

/** What is asked, of whom, and how long the answer may take. */
export interface CallOrder {
  readonly group: Group;
  readonly request: ExchangeRequest;
  /** The tool that an instance has to have; undefined when any will do, or the backend itself may say that it has none such. */
  readonly wantedTool: string | undefined;
  /** Only this instance may answer. */
  readonly pinned: InstanceRef | undefined;
  /** The bound instance may answer although it takes nothing new: it goes on with what is under way there. */
  readonly goesOn: boolean;
  /** The conversation it goes through; undefined for the instance's own. */
  readonly upstream: Upstream | undefined;
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
