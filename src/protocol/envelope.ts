// Serializes JSON-RPC messages for clients. The bytes of a result are copied as they came from the backend and never parsed. It
// does not know eras, streams and sessions.

import type { JsonFields, JsonObject, JsonText } from '../domain/json.ts';
import { idValue, type JsonRpcError, type JsonRpcId } from '../domain/jsonrpc.ts';

const CLOSE_BRACE = Buffer.from('}');

/** The answer to request `id`: `{"jsonrpc":"2.0","id":…,"result":…}` in UTF-8. One copy of the result, no parse. */
export function resultMessage(id: JsonRpcId, result: JsonText): Buffer {
  const { bytes } = result;
  const head = `{"jsonrpc":"2.0","id":${JSON.stringify(idValue(id))},"result":`;
  const headBytes = Buffer.byteLength(head);
  const message = Buffer.allocUnsafe(headBytes + bytes.length + 1);
  message.write(head);
  message.set(bytes, headBytes);
  message.set(CLOSE_BRACE, headBytes + bytes.length);
  return message;
}

/** The error answer to request `id`; null when no id could be read. Source: JSON-RPC 2.0 section 5. */
export function errorMessage(id: JsonRpcId | null, error: JsonRpcError): string {
  return JSON.stringify({ jsonrpc: '2.0', id: idValue(id), error });
}

/** A notification as JSON text. */
export function notificationMessage(method: string, params: JsonFields): string {
  return JSON.stringify({ jsonrpc: '2.0', method, params });
}

/** A request of a server to its client as JSON text. */
export function requestMessage(id: JsonRpcId, method: string, params: JsonObject): string {
  return JSON.stringify({ jsonrpc: '2.0', id: idValue(id), method, params });
}
