// Who may take a call next: one of its template that was not tried, or the one it is bound to, and whether that one has the
// tool. It counts nobody and keeps nothing; what follows from it is call.ts's business.

import { ANONYMOUS } from '../../domain/account.ts';
import type { ExchangeRequest } from '../../domain/exchange.ts';
import type { InstanceState } from '../../domain/instance.ts';
import type { Group } from '../group.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import type { CallOrder } from './call-order.ts';
import { isRepeatable } from './failover.ts';

/** Ids of instances that are not asked again; undefined while there is none. */
export type Tried = ReadonlySet<string> | undefined;

/** States of an instance that takes nothing new, and may go on with what is under way there. */
const UNDER_WAY: ReadonlySet<InstanceState> = new Set(['draining', 'unhealthy']);

/** Undefined when nobody can take it now. The send that counts it is to follow in the same synchronous block: see Pool.pick. */
export function nextInstance(order: CallOrder, tried: Tried): InstanceRef | undefined {
  const { group, pinned, request } = order;
  if (pinned === undefined) return pickFor(request.caller, request, group.pool, tried);
  const hasPlace = pinned.hasPlaceFor(request.caller ?? ANONYMOUS.id);
  return hasPlace && mayServe(pinned, order, tried) ? pinned : undefined;
}

/** One that is below its capacity; if all are full, one whose reserve is open to the owner of the request. Source: ADR 41. */
export function pickFor(
  ownerId: string = ANONYMOUS.id,
  request: ExchangeRequest,
  pool: Group['pool'],
  tried: Tried,
): InstanceRef | undefined {
  const mayRepeat = (ref: InstanceRef) => isRepeatable(request, ref);
  return pool.pick(tried, mayRepeat) ?? pool.pick(tried, mayRepeat, (ref) => ref.hasPlaceFor(ownerId));
}

/** True when there is somebody who may take it and is only full: waiting may help. */
export function isOnlyFull(order: CallOrder, tried: Tried): boolean {
  const { group, pinned } = order;
  if (pinned === undefined) return group.pool.isFull(tried);
  return mayServe(pinned, order, tried) && isFull(pinned);
}

/** True when an instance has not listed the tool: it lacks it, or the list is out of date. */
export function mayLackTool({ wantedTool }: CallOrder, { tools }: InstanceRef): boolean {
  return wantedTool !== undefined && tools?.knows(wantedTool) === 'no';
}

/** True when looking again would not help. */
export function certainlyLacksTool(order: CallOrder, ref: InstanceRef): boolean {
  return mayLackTool(order, ref) && !ref.tools?.mayRefresh;
}

function mayServe(ref: InstanceRef, { goesOn, upstream }: CallOrder, tried: Tried): boolean {
  const isOpen = ref.takes(upstream) || (goesOn && UNDER_WAY.has(ref.state));
  return isOpen && !tried?.has(ref.id);
}

function isFull({ inFlight, capacity }: InstanceRef): boolean {
  return inFlight >= capacity;
}
