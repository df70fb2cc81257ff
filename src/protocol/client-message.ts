// Reads the messages of one POST: requests, notifications and answers, one by one or in an array. It does not know methods and
// eras.

import type { ClientReply } from '../domain/client.ts';
import { isJsonObject, type JsonFields, type JsonObject } from '../domain/json.ts';
import { type JsonRpcId, readId } from '../domain/jsonrpc.ts';
import { invalidRequest } from './rpc-failure.ts';

/** One message of a client. */
export type McpMessage = ClientRequest | ClientNotification | ClientAnswer;

/** A message that needs an answer. */
export interface ClientRequest {
  readonly kind: 'request';
  readonly id: JsonRpcId;
  readonly method: string;
  readonly params: JsonFields | undefined;
}

/** A message without an answer. `params` is empty when none came. */
export interface ClientNotification {
  readonly kind: 'notification';
  readonly method: string;
  readonly params: JsonObject;
}

/** The answer to a request of a server. */
interface ClientAnswer {
  readonly kind: 'answer';
  readonly id: JsonRpcId;
  readonly reply: ClientReply;
}

/** Reads one message. Throws RpcFailure (400, -32600) for anything else. */
export function readClientMessage(parsed: unknown): McpMessage {
  if (!isJsonObject(parsed)) throw invalidRequest('it is no object');
  const { jsonrpc, id, method, params } = parsed;
  if (jsonrpc !== '2.0') throw invalidRequest('`jsonrpc` must be "2.0"');
  if (method === undefined) return readAnswer(parsed);
  if (typeof method !== 'string') throw invalidRequest('`method` must be a string');
  if (params !== undefined && !isJsonObject(params)) throw invalidRequest('`params` must be an object');
  if (id === undefined) return { kind: 'notification', method, params: params ?? {} };
  return { kind: 'request', id: clientId(id), method, params };
}

/**
 * Reads the messages of an array; too many were refused before (read-body.ts). Throws RpcFailure (400, -32600) when one
 * is invalid, there are none, one is an `initialize`, or two requests have the same id.
 * Source: MCP 2025-03-26 basic/index#batching, basic/lifecycle.
 */
export function readBatch(parsed: readonly unknown[]): readonly McpMessage[] {
  if (parsed.length === 0) throw invalidRequest('a batch holds at least one message');
  const messages = parsed.map(readClientMessage);
  const requests = requestsOf(messages);
  if (requests.some(({ method }) => method === 'initialize')) {
    throw invalidRequest('only one initialization request is allowed, and not in a batch');
  }
  if (new Set(requests.map(({ id }) => id)).size < requests.length)
    throw invalidRequest('two requests have one id');
  return messages;
}

/** The requests among the messages. */
export function requestsOf(messages: readonly McpMessage[]): ClientRequest[] {
  return messages.filter((message) => message.kind === 'request');
}

/** Source: MCP basic/index#requests: string or integer. */
function clientId(written: unknown): JsonRpcId {
  const id = readId(written);
  if (id !== undefined && (typeof id !== 'number' || Number.isInteger(id))) return id;
  throw invalidRequest('`id` must be a string or a whole number');
}

function readAnswer({ id: written, result, error }: JsonObject): ClientAnswer {
  const id = clientId(written);
  if (result !== undefined && error === undefined) return { kind: 'answer', id, reply: { result } };
  if (!isJsonObject(error) || result !== undefined) throw invalidRequest('it is neither request nor answer');
  const { code, message, data } = error;
  if (typeof code !== 'number' || typeof message !== 'string')
    throw invalidRequest('`error` needs code and message');
  return { kind: 'answer', id, reply: { error: { code, message, ...(data === undefined ? {} : { data }) } } };
}
