// The parts of a client's message that the bridge reads: method, ids of the requests, era. The line itself is forwarded unchanged.

import { isJsonObject, type JsonObject, parseExact } from '../../domain/json.ts';
import { idValue, type JsonRpcId, readId } from '../../domain/jsonrpc.ts';
import { LEGACY_VERSIONS, META } from '../../domain/mcp.ts';

/** One line of the client. */
export interface BridgeMessage {
  readonly line: string;
  /** Ids of the requests in it: none of a notification or an answer, several of a batch. */
  readonly ids: readonly JsonRpcId[];
  /** Empty for an answer and a batch. */
  readonly method: string;
  readonly params: JsonObject;
  /** The revision that a message without a session names; undefined in the era with sessions. */
  readonly modernVersion: string | undefined;
}

/** Undefined when the line is no JSON-RPC message. */
export function readBridgeMessage(line: string): BridgeMessage | undefined {
  let value: unknown;
  try {
    value = parseExact(line);
  } catch {
    return undefined;
  }
  if (Array.isArray(value)) {
    const ids = value.flatMap((each) => requestIdOf(each) ?? []);
    return { line, ids, method: '', params: {}, modernVersion: undefined };
  }
  if (!isJsonObject(value)) return undefined;
  const id = requestIdOf(value);
  const params = isJsonObject(value.params) ? value.params : {};
  const version = isJsonObject(params._meta) ? params._meta[META.protocolVersion] : undefined;
  const isModern = typeof version === 'string' && !LEGACY_VERSIONS.some((legacy) => legacy === version);
  return {
    line,
    ids: id === undefined ? [] : [id],
    method: typeof value.method === 'string' ? value.method : '',
    params,
    modernVersion: isModern ? version : undefined,
  };
}

/** The key of an id in a map: 1 and "1" are two. */
export function idKey(id: JsonRpcId): string {
  return JSON.stringify(idValue(id));
}

function requestIdOf(value: unknown): JsonRpcId | undefined {
  return isJsonObject(value) && typeof value.method === 'string' ? readId(value.id) : undefined;
}
