// Converts a modern client's request for a legacy backend, and filters the log messages that reach the client.

import type { ExchangeRequest } from '../domain/calls/exchange.ts';
import type { ExchangeEvent } from '../domain/calls/exchange-event.ts';
import { isJsonObject } from '../domain/json/json.ts';
import { includesLevel, isLogLevel, LOG, META, withoutMeta } from '../domain/mcp/mcp.ts';

/** Keys of `_meta` that only the modern era defines. All other keys belong to the caller and are kept. */
const MODERN_KEYS = [
  META.protocolVersion,
  META.clientCapabilities,
  META.clientInfo,
  META.logLevel,
  META.subscriptionId,
] as const;

/** The level of log messages that the request asks for; undefined when it asks for none. */
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

/** A filter of events that passes log messages only from `level` on, and none when `level` is undefined. */
export function isLogged(level: string | undefined): (event: ExchangeEvent) => boolean {
  return (event) => {
    if (event.kind !== 'notification' || event.method !== LOG) return true;
    return level !== undefined && includesLevel(level, event.params.level);
  };
}
