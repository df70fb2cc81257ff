// Progress tokens on their way through: the gateway's own token goes to the backend, the caller's own comes back.
// Every client counts from 0, so tokens of two callers collide. Which call a notification is about is found elsewhere.

import type { ExchangeRequest } from '../domain/exchange.ts';
import { isJsonObject, type JsonFields, type JsonObject, type JsonValue } from '../domain/json.ts';
import { META } from '../domain/mcp.ts';

/** The token the caller gave, if he wants to hear about progress. */
export function callerTokenOf(request: ExchangeRequest): JsonValue | undefined {
  const meta = request.params?._meta;
  return isJsonObject(meta) ? meta[META.progressToken] : undefined;
}

/**
 * The params to send, with the gateway's token in place of the caller's. Progress restarts the deadline of a call, so the
 * call of a tool asks for it even when the caller does not; everything else is short, and asks when its caller does.
 */
export function paramsWithToken({ method, params }: ExchangeRequest, token: number): JsonFields | undefined {
  const meta = isJsonObject(params?._meta) ? params._meta : undefined;
  const isAsked = meta?.[META.progressToken] !== undefined;
  if (!isAsked && method !== 'tools/call') return params;
  return { ...params, _meta: { ...meta, [META.progressToken]: token } };
}

/** Params of a progress notification as the caller expects them: with his token, or with none if he gave none. */
export function paramsForCaller(params: JsonObject, callerToken: JsonValue | undefined): JsonObject {
  const { progressToken: _, ...rest } = params;
  return callerToken === undefined ? rest : { progressToken: callerToken, ...rest };
}
