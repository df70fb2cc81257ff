// The form of a modern client's request for a legacy backend, and the log messages that reach the client.

import type { ExchangeRequest } from '../../../domain/calls/exchange.ts';
import type { ExchangeEvent } from '../../../domain/calls/exchange-event.ts';
import { isJsonObject } from '../../../domain/json/json.ts';
import { includesLevel, isLogLevel, LOG, META, withoutMeta } from '../../../domain/mcp/mcp.ts';

/** Keys of `_meta` that only the modern era defines; all others belong to the caller and are kept. */
const MODERN_KEYS = [
  META.protocolVersion,
  META.clientCapabilities,
  META.clientInfo,
  META.logLevel,
  META.subscriptionId,
] as const;

/** The level of log messages that the request opts in to, if any. */
export function logLevelOf({ params }: ExchangeRequest): string | undefined {
  const meta = params?._meta;
  const level = isJsonObject(meta) ? meta[META.logLevel] : undefined;
  return isLogLevel(level) ? level : undefined;
}

/** The request without the metadata that only modern backends read. */
export function forLegacy(request: ExchangeRequest): ExchangeRequest {
  const meta = request.params?._meta;
  if (!isJsonObject(meta) || !MODERN_KEYS.some((key) => key in meta)) return request;
  return { ...request, params: withoutMeta(request.params ?? {}, MODERN_KEYS) };
}

/** Makes the filter for a client that opted in to `level`: log messages only from that level on. */
export function isLogged(level: string | undefined): (event: ExchangeEvent) => boolean {
  return (event) => {
    if (event.kind !== 'notification' || event.method !== LOG) return true;
    return level !== undefined && includesLevel(level, event.params.level);
  };
}
