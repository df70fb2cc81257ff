// What a backend of the legacy era hears of a request of the modern one, and what of its log lines the client gets to hear.
// Which backend that is, and in which conversation, is stateless-clients.ts.

import type { ExchangeEvent, ExchangeRequest } from '../../domain/exchange.ts';
import { isJsonObject } from '../../domain/json.ts';
import { includesLevel, isLogLevel } from '../../domain/log-levels.ts';
import { META } from '../../domain/mcp.ts';
import { withoutMeta } from '../../domain/meta.ts';

/** Keys of `_meta` that only the modern era knows; every other one is the caller's and stays. */
const MODERN_KEYS = [
  META.protocolVersion,
  META.clientCapabilities,
  META.clientInfo,
  META.logLevel,
  META.subscriptionId,
] as const;

/** The level of log lines that the request opts in to; undefined when it does not. */
export function logLevelOf({ params }: ExchangeRequest): string | undefined {
  const meta = params?._meta;
  const level = isJsonObject(meta) ? meta[META.logLevel] : undefined;
  return isLogLevel(level) ? level : undefined;
}

/** The same request without what the modern era added to it. */
export function forLegacy(request: ExchangeRequest): ExchangeRequest {
  const meta = request.params?._meta;
  if (!isJsonObject(meta) || !MODERN_KEYS.some((key) => key in meta)) return request;
  return { ...request, params: withoutMeta(request.params ?? {}, MODERN_KEYS) };
}

/** True for each event that a client hears that opted in to `level`: log lines only from that level on. */
export function hears(level: string | undefined): (event: ExchangeEvent) => boolean {
  return (event) => {
    if (event.kind !== 'notification' || event.method !== 'notifications/message') return true;
    return level !== undefined && includesLevel(level, event.params.level);
  };
}
