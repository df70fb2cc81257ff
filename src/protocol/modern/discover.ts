// The answer to `server/discover`: capabilities, name and instructions of the servers behind one path, merged as if they were
// one server. Source: MCP 2026-07-28 server/discover.

import { isJsonObject, type JsonObject, type JsonValue } from '../../domain/json/json.ts';
import { type Handshake, META, MODERN_VERSIONS, type ServerInfo } from '../../domain/mcp/mcp.ts';
import { GATEWAY_INFO } from '../../domain/version.ts';
import type { ModernRequest } from './modern-request.ts';

/** The answer. It may not be cached: capabilities change, and no notice says so. */
export function discoverResult(handshakes: readonly Handshake[]): JsonObject {
  const [instructions, ...others] = handshakes.map(({ greeting }) => greeting.instructions);
  const isSame = typeof instructions === 'string' && others.every((other) => other === instructions);
  return {
    supportedVersions: [...MODERN_VERSIONS],
    capabilities: commonCapabilities(handshakes),
    ...(isSame ? { instructions } : {}),
    resultType: 'complete',
    ttlMs: 0,
    cacheScope: 'private',
    _meta: { [META.serverInfo]: serverInfoOf(handshakes) },
  };
}

/**
 * The server info for results: that of the servers, or, at the path of all templates, which may have
 * thousands of servers, that of the gateway.
 */
export function infoFor({ backends, owner, pathName }: ModernRequest): ServerInfo {
  return pathName === undefined ? GATEWAY_INFO : serverInfoOf(backends.handshakes(owner));
}

/**
 * The info of the server, if all instances run the same server and it has a name; otherwise that of the
 * gateway.
 */
function serverInfoOf(handshakes: readonly Handshake[]): ServerInfo {
  const [first, ...others] = handshakes.map(({ serverInfo }) => serverInfo);
  const isOneServer = first?.name !== '' && others.every(({ name }) => name === first?.name);
  return first !== undefined && isOneServer ? first : GATEWAY_INFO;
}

/**
 * The capabilities that all instances have; for `listChanged` one instance is enough. Without `tasks`, which
 * differs between the eras.
 */
export function commonCapabilities(handshakes: readonly Handshake[]): JsonObject {
  const [first = {}, ...others] = handshakes.map(({ capabilities }) => capabilities);
  const { tasks: _, ...capabilities } = others.reduce((a, b) => inBoth(a, b), first);
  return capabilities;
}

function inBoth(a: JsonObject, b: JsonObject): JsonObject {
  const both: JsonObject = {};
  for (const key of Object.keys(a)) {
    const value = Object.hasOwn(b, key) ? shared(a[key], b[key]) : undefined;
    if (value !== undefined) both[key] = value;
  }
  if (a.listChanged === true || b.listChanged === true) both.listChanged = true;
  return both;
}

/** The common part of two values: objects keep their common fields, other values remain when they are equal. */
function shared(a: JsonValue | undefined, b: JsonValue | undefined): JsonValue | undefined {
  if (isJsonObject(a) && isJsonObject(b)) return inBoth(a, b);
  return JSON.stringify(a) === JSON.stringify(b) ? a : undefined;
}
