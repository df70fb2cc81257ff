// Checks the arguments of an embedding program's calls. It runs for every call, so it only checks types, and allocates only for an
// error. A value that cannot be written as JSON is found when it is written.

import type { ErrorAnswer, RequestOptions } from '../actors/calls/requests.ts';
import { nearest } from '../config/nearest.ts';
import { validationFailed } from '../domain/error-catalogue.ts';
import type { GatewayError } from '../domain/errors.ts';
import { EVENT_NAMES, type EventName } from '../domain/events.ts';
import type { ExchangeRequest } from '../domain/exchange.ts';
import { LIST_METHODS, type ListField } from '../domain/mcp.ts';

/** The error for an invalid request; undefined for a valid one. VALIDATION_ERROR names the field, never its value. */
export function refusalOfRequest(
  request: ExchangeRequest,
  options: RequestOptions | undefined,
): GatewayError | undefined {
  if (typeof request !== 'object' || request === null) return refused('request', 'expected an object');
  const { method, params, headers } = request;
  if (typeof method !== 'string' || method === '') return refused('method', 'expected the name of a method');
  if (params !== undefined && !isFields(params)) return refused('params', 'expected an object');
  if (headers !== undefined && !isFields(headers)) return refused('headers', 'expected an object');
  return options === undefined ? undefined : refusalOfOptions(options);
}

/** The same for a call of a tool. */
export function refusalOfCall(
  tool: string,
  args: object,
  options: RequestOptions | undefined,
): GatewayError | undefined {
  if (typeof tool !== 'string' || tool === '') return refused('tool', 'expected the name of a tool');
  if (!isFields(args)) return refused('args', 'expected an object');
  return options === undefined ? undefined : refusalOfOptions(options);
}

/** The same for a list. */
export function refusalOfList(
  field: ListField,
  options: RequestOptions | undefined,
): GatewayError | undefined {
  const fields = Object.keys(LIST_METHODS);
  if (!fields.includes(field)) return refused('field', `expected one of ${fields.join(', ')}`);
  return options === undefined ? undefined : refusalOfOptions(options);
}

/** The same for an error answer that is to be translated. */
export function refusalOfAnswer(request: ExchangeRequest, answered: ErrorAnswer): GatewayError | undefined {
  const isAnswer = isFields(answered) && isFields(answered.error);
  return isAnswer ? refusalOfRequest(request, undefined) : refused('answered', 'expected an error answer');
}

/** VALIDATION_ERROR for a name that is not the name of an event. */
export function checkEventName(name: EventName): void {
  if (typeof name !== 'string') throw refused('name', 'expected the name of an event');
  if (Object.hasOwn(EVENT_NAMES, name)) return;
  const nearestName = nearest(name, Object.keys(EVENT_NAMES));
  throw refused('name', `there is no such event; "${nearestName}" is the nearest`);
}

function refusalOfOptions(options: RequestOptions): GatewayError | undefined {
  if (!isFields(options)) return refused('options', 'expected an object');
  const { timeoutMs, instanceId, signal, caller, requestId } = options;
  // Without an upper bound: LIMITS.callLongestMs limits every call.
  if (timeoutMs !== undefined && !(typeof timeoutMs === 'number' && timeoutMs > 0))
    return refused('timeoutMs', 'expected milliseconds above 0');
  if (instanceId !== undefined && typeof instanceId !== 'string')
    return refused('instanceId', 'expected the id of an instance');
  if (caller !== undefined && typeof caller !== 'string')
    return refused('caller', 'expected the id of a caller');
  if (requestId !== undefined && typeof requestId !== 'string')
    return refused('requestId', 'expected the id of a request');
  if (signal !== undefined && !(signal instanceof AbortSignal))
    return refused('signal', 'expected an AbortSignal');
  return undefined;
}

function isFields(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function refused(field: string, msg: string): GatewayError {
  return validationFailed([{ loc: ['arguments', field], msg, type: 'value_error' }]);
}
