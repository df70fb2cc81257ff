// The parts of a client's message that the bridge reads; the line itself is forwarded unchanged.

import { isJsonObject, type JsonObject, jsonIn, parseExact } from '../../domain/json/json.ts';
import { idValue, type JsonRpcId, readId } from '../../domain/mcp/jsonrpc.ts';
import { LEGACY_VERSIONS, LISTEN, META, METHODS } from '../../domain/mcp/mcp.ts';

export interface BridgeMessage {
  readonly line: string;
  /** The ids of its requests: none in a notification or an answer, several in a batch. */
  readonly ids: readonly JsonRpcId[];
  /** The method; empty for an answer and a batch. */
  readonly method: string;
  readonly params: JsonObject;
  /** The revision that a message without a session names; undefined in the era with sessions. */
  readonly modernVersion: string | undefined;
}

/** Reads a line; undefined when it is not a JSON-RPC message. */
export function readBridgeMessage(line: string): BridgeMessage | undefined {
  const value = jsonIn(line, parseExact);
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

/** The key of an id in a map: 1 and "1" differ. */
export function idKey(id: JsonRpcId): string {
  return JSON.stringify(idValue(id));
}

function requestIdOf(value: unknown): JsonRpcId | undefined {
  return isJsonObject(value) && typeof value.method === 'string' ? readId(value.id) : undefined;
}

/** True for a message that may be sent a second time. */
export function mayBeSentTwice({ method, ids }: BridgeMessage): boolean {
  if (method === LISTEN) return true;
  return ids.length === 0 ? method.startsWith('notifications/') : METHODS[method]?.repeatable === true;
}
