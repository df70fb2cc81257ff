// The events of a call, from its start to its end at each instance. The call, or the session that carries it, emits them. All
// events of one type have the same fields in the same order: four of them are made per call at most, and thousands are kept.

import { ANONYMOUS } from '../../domain/account.ts';
import type { ErrorCode } from '../../domain/errors.ts';
import type { GatewayEvent, GatewayEvents } from '../../domain/events.ts';
import type { CallRecord, ExchangeRequest } from '../../domain/exchange.ts';
import type { InstanceDefinition } from '../../domain/instance.ts';
import { cutText } from '../../domain/text.ts';
import { toolOf } from './call-order.ts';
import type { ExchangeEnding } from './call-reply.ts';

/** The instance of the event. */
type EventInstance = Pick<InstanceDefinition, 'template' | 'id' | 'serverId'>;

/** The fields of the request in an event: of the params only the name of a tool. */
type EventRequest = Pick<ExchangeRequest, 'method' | 'params' | 'caller' | 'requestId'>;

/** A call at one instance: its number, the number of the attempt, and the time before it. */
export type Attempted = Pick<GatewayEvents['exchange.finished'], 'call' | 'attempt' | 'waitMs'>;

/** Longest name of a tool in an event, in UTF-16 units: clients choose it, and thousands of events are kept. */
const TOOL_NAME_UNITS = 256;

/** That it came in. */
export function startedEvent(template: string, { call }: CallRecord, request: EventRequest): GatewayEvent {
  return {
    type: 'exchange.started',
    atMs: Date.now(),
    template,
    call,
    method: request.method,
    tool: toolIn(request),
    principal: request.caller ?? ANONYMOUS.id,
    requestId: request.requestId,
  };
}

/** A call that no instance takes, after a wait. */
export function refusedEvent(
  template: string,
  { call }: CallRecord,
  request: EventRequest,
  code: ErrorCode,
  waitMs: number,
): GatewayEvent {
  return {
    type: 'exchange.refused',
    atMs: Date.now(),
    template,
    call,
    method: request.method,
    tool: toolIn(request),
    principal: request.caller ?? ANONYMOUS.id,
    requestId: request.requestId,
    waitMs,
    code,
  };
}

/** A call whose caller left during the wait. */
export function cancelledEvent(
  template: string,
  { call }: CallRecord,
  request: EventRequest,
  waitMs: number,
): GatewayEvent {
  return {
    type: 'exchange.cancelled',
    atMs: Date.now(),
    template,
    call,
    method: request.method,
    tool: toolIn(request),
    principal: request.caller ?? ANONYMOUS.id,
    requestId: request.requestId,
    waitMs,
  };
}

/** A call that goes on after a failure at this instance. */
export function retriedEvent(
  { template, id, serverId }: EventInstance,
  { call, attempt }: Pick<Attempted, 'call' | 'attempt'>,
  request: EventRequest,
  code: ErrorCode,
): GatewayEvent {
  return {
    type: 'exchange.retried',
    atMs: Date.now(),
    template,
    instanceId: id,
    serverId,
    call,
    method: request.method,
    tool: toolIn(request),
    principal: request.caller ?? ANONYMOUS.id,
    requestId: request.requestId,
    attempt,
    code,
  };
}

/** How it ended there, and whether the call has ended with it. */
export function finishedEvent(
  { template, id, serverId }: EventInstance,
  { call, attempt, waitMs }: Attempted,
  request: EventRequest,
  { outcome, durationMs, error }: ExchangeEnding,
  isLast: boolean,
): GatewayEvent {
  return {
    type: 'exchange.finished',
    atMs: Date.now(),
    template,
    instanceId: id,
    serverId,
    call,
    method: request.method,
    tool: toolIn(request),
    principal: request.caller ?? ANONYMOUS.id,
    requestId: request.requestId,
    attempt,
    waitMs,
    outcome,
    durationMs,
    isLast,
    code: error?.code,
  };
}

function toolIn(request: EventRequest): string | undefined {
  const tool = toolOf(request);
  if (tool === undefined || tool.length <= TOOL_NAME_UNITS) return tool;
  // Copied: a slice would keep the whole name in memory.
  return Buffer.from(cutText(tool, TOOL_NAME_UNITS)).toString();
}
