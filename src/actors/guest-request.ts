// What a backend of the legacy era hears of a request of the modern one, and what of its log lines the client gets to hear.
// Which backend that is, and in which conversation, is guests.ts.

import type { Answer, ExchangeRequest } from '../domain/exchange.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../domain/json.ts';
import { META } from '../domain/mcp.ts';

/** From the least to the most severe. Source: MCP 2025-11-25 server/utilities/logging, after RFC 5424. */
const LEVELS: readonly JsonValue[] = [
  'debug',
  'info',
  'notice',
  'warning',
  'error',
  'critical',
  'alert',
  'emergency',
];

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
  return typeof level === 'string' && LEVELS.includes(level) ? level : undefined;
}

/** True when whoever gets the lines of level `set` gets those of level `wanted`, too. */
export function includesLevel(set: string, wanted: string): boolean {
  return LEVELS.indexOf(set) <= LEVELS.indexOf(wanted);
}

/** The same request without what the modern era added to it. */
export function forLegacy(request: ExchangeRequest): ExchangeRequest {
  const meta = request.params?._meta;
  if (!isJsonObject(meta) || !MODERN_KEYS.some((key) => key in meta)) return request;
  return { ...request, params: withMeta(request.params ?? {}, without(meta, MODERN_KEYS)) };
}

/** Says of each answer whether a client that opted in to `level` is to hear it: log lines only from that level on. */
export function hears(level: string | undefined): (answer: Answer) => boolean {
  return ({ event }) => {
    if (event.kind !== 'notification' || event.method !== 'notifications/message') return true;
    return level !== undefined && isAtLeast(event.params.level, level);
  };
}

/** The same parameters with `_meta`, or without one that would be empty. */
export function withMeta(params: JsonObject, meta: JsonObject): JsonObject {
  const { _meta: _, ...others } = params;
  return Object.keys(meta).length === 0 ? others : { ...others, _meta: meta };
}

export function without(meta: JsonObject, keys: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(meta).filter(([key]) => !keys.includes(key)));
}

/** A level that nobody knows is heard rather than lost. */
function isAtLeast(level: JsonValue | undefined, wanted: string): boolean {
  const severity = LEVELS.indexOf(level ?? null);
  return severity === -1 || severity >= LEVELS.indexOf(wanted);
}
