// Reads the body of a POST as JSON, within bounds, and the messages in it: requests, notifications and answers, alone or
// in an array. It knows neither methods nor eras.

import { isUtf8 } from 'node:buffer';
import {
  definedFields,
  isFields,
  isJsonObject,
  type JsonFields,
  type JsonObject,
  parseExact,
} from '../domain/json/json.ts';
import {
  CLOSE_BRACKET,
  COMMA,
  hasMoreValues,
  NO_INDEX,
  OPEN_BRACE,
  OPEN_BRACKET,
  readFields,
  requestIdIn,
  type Scanned,
  SHORT_TEXT,
  scanned,
  skipSpace,
  skipValue,
  textOf,
} from '../domain/json/json-scanner.ts';
import { LIMITS } from '../domain/limits.ts';
import type { ClientAnswer, Notification } from '../domain/mcp/client.ts';
import { type JsonRpcId, RPC, readId } from '../domain/mcp/jsonrpc.ts';
import { invalidRequest, type RpcFailure, refused, rpcFailureOf } from './rpc.ts';

/**
 * The value of the body. Throws RpcFailure, with the id of the request where it can be read: 400 with -32700
 * for a body that is not JSON in UTF-8; 400 with -32600 for one that is nested too deeply, and for a batch of too
 * many messages; 422 with -32600 for more than LIMITS.bodyValues values, not counting arguments of calls, which are
 * only scanned. Texts pass unchanged, with NUL characters and lone surrogates (ADR 120). Numbers are exact
 * (parseExact), and parameters of requests may be kept as text (readFields).
 */
export function readBody(buffer: Buffer): unknown {
  if (!isUtf8(buffer)) throw parseError('the body is not UTF-8');
  try {
    return readJson(buffer);
  } catch (thrown) {
    throw rpcFailureOf(thrown, readId(requestIdIn(buffer)));
  }
}

function readJson(buffer: Buffer): unknown {
  const text = buffer.length <= SHORT_TEXT ? buffer.toString('utf8') : '';
  const source = scanned(buffer, BOUNDS, text);
  const start = skipSpace(buffer, 0);
  const values: unknown[] = [];
  const isBatch = buffer[start] === OPEN_BRACKET;
  const end = isBatch ? scanMessages(source, start, values) : scanMessage(source, start, 0, values);
  if (source.excess === 'depth')
    throw invalidRequest(`the body is nested deeper than ${LIMITS.nestingDepth} levels`);
  if (source.excess === 'values') {
    throw refused(
      422,
      `Invalid Request: the body has more than ${LIMITS.bodyValues} values besides the arguments of a call`,
      RPC.invalidRequest,
    );
  }
  if (end === NO_INDEX || skipSpace(buffer, end) !== buffer.length) {
    throw parseError('the body is not valid JSON'); // the message repeats nothing of the body
  }
  if (values.length > LIMITS.batchMessages) {
    throw invalidRequest(`a batch has at most ${LIMITS.batchMessages} messages`);
  }
  return isBatch ? values : values[0];
}

const BOUNDS = { levels: LIMITS.nestingDepth, values: LIMITS.bodyValues };

/** Puts the items of an array into `values`. The index after its end, or NO_INDEX. */
function scanMessages(source: Scanned, start: number, values: unknown[]): number {
  const { bytes } = source;
  source.left -= 1;
  let at = skipSpace(bytes, start + 1);
  if (bytes[at] === CLOSE_BRACKET) return at + 1;
  for (;;) {
    at = scanMessage(source, at, 1, values);
    if (at === NO_INDEX) return NO_INDEX;
    at = skipSpace(bytes, at);
    if (bytes[at] !== COMMA) return bytes[at] === CLOSE_BRACKET ? at + 1 : NO_INDEX;
    at = skipSpace(bytes, at + 1);
  }
}

/**
 * Puts a message, or any other value, into `values`. The index after its end, or NO_INDEX. Parameters that the gateway does not
 * read stay text: ADR 43.
 */
function scanMessage(source: Scanned, start: number, depth: number, values: unknown[]): number {
  const fields: JsonFields = {};
  const isObject = source.bytes[start] === OPEN_BRACE;
  const end = isObject
    ? readFields(source, start, fields, 'params', depth + 1)
    : skipValue(source, start, depth);
  if (end === NO_INDEX) return NO_INDEX;
  if (isObject && Object.hasOwn(fields, 'id') && isFields(fields.params)) {
    values.push(fields);
    return end;
  }
  // The whole request is counted, because all of it is parsed.
  if (hasMoreValues(source.bytes.subarray(start, end), BOUNDS.values)) {
    source.excess = 'values';
    return NO_INDEX;
  }
  values.push(parseExact(textOf(source, start, end)));
  return end;
}

function parseError(what: string): RpcFailure {
  return refused(400, `Parse error: ${what}`, RPC.parseError);
}

export type McpMessage = ClientRequest | Notification | ClientAnswerMessage;

export interface ClientRequest {
  readonly kind: 'request';
  readonly id: JsonRpcId;
  readonly method: string;
  readonly params: JsonFields | undefined;
}

interface ClientAnswerMessage {
  readonly kind: 'answer';
  readonly id: JsonRpcId;
  readonly answer: ClientAnswer;
}

/** Reads one message. Throws RpcFailure (400, -32600) for any other value, with the id of a request. */
export function readClientMessage(parsed: unknown): McpMessage {
  if (!isJsonObject(parsed)) throw invalidRequest('it is not an object');
  const { jsonrpc, id, method, params } = parsed;
  const refuse = (problem: string): RpcFailure =>
    rpcFailureOf(invalidRequest(problem), method === undefined ? null : (readId(id) ?? null));
  if (jsonrpc !== '2.0') throw refuse('`jsonrpc` must be "2.0"');
  if (method === undefined) return readAnswer(parsed);
  if (typeof method !== 'string') throw refuse('`method` must be a string');
  if (!isAbsent(params) && !isJsonObject(params)) throw refuse('`params` must be an object');
  // Some serializers write null for a field without a value.
  if (id === undefined || (id === null && method.startsWith('notifications/')))
    return { kind: 'notification', method, params: params ?? {} };
  return { kind: 'request', id: clientId(id), method, params: withoutNulls(params ?? undefined) };
}

function isAbsent(value: unknown): value is null | undefined {
  return value === undefined || value === null;
}

/** Fields of requests that backends take as absent, or refuse, when they are null. Arguments are passed on unchanged. */
const OPTIONAL_PARAMS = ['_meta', 'cursor', 'task'] as const;

function withoutNulls(params: JsonFields | undefined): JsonFields | undefined {
  if (params === undefined || !OPTIONAL_PARAMS.some((name) => params[name] === null)) return params;
  const entries = Object.entries(params).filter(
    ([name, value]) => value !== null || !OPTIONAL_PARAMS.some((optional) => optional === name),
  );
  return Object.fromEntries(entries);
}

/**
 * Reads the messages of an array; readBody has refused too many before. Throws RpcFailure (400, -32600) when one is
 * invalid, there are none, one is an `initialize`, or two requests have the same id. Source: MCP 2025-03-26
 * basic/index#batching, basic/lifecycle.
 */
export function readClientBatch(parsed: readonly unknown[]): readonly McpMessage[] {
  if (parsed.length === 0) throw invalidRequest('a batch holds at least one message');
  const messages = parsed.map(readClientMessage);
  const requests = requestsOf(messages);
  if (requests.some(({ method }) => method === 'initialize')) {
    throw invalidRequest('only one initialization request is allowed, and not in a batch');
  }
  if (new Set(requests.map(({ id }) => id)).size < requests.length)
    throw invalidRequest('two requests have the same id');
  return messages;
}

/** The messages of a body, alone or in an array. Throws RpcFailure. */
export function messagesIn(body: Buffer): readonly McpMessage[] {
  const parsed = readBody(body);
  return Array.isArray(parsed) ? readClientBatch(parsed) : [readClientMessage(parsed)];
}

/** The number of requests that count for the rate limit: all but `ping`. */
export function countedRequests(messages: readonly McpMessage[]): number {
  let counted = 0;
  for (const message of messages) if (message.kind === 'request' && message.method !== 'ping') counted += 1;
  return counted;
}

export function requestsOf(messages: readonly McpMessage[]): ClientRequest[] {
  return messages.filter((message) => message.kind === 'request');
}

/** Reads an id, a string or an integer. Source: MCP basic/index#requests. */
function clientId(written: unknown): JsonRpcId {
  const id = readId(written);
  if (id !== undefined && (typeof id !== 'number' || Number.isInteger(id))) return id;
  throw invalidRequest('`id` must be a string or a whole number');
}

/** Reads an answer. `null` beside the other field counts as absent. */
function readAnswer({ id: written, result, error }: JsonObject): ClientAnswerMessage {
  const id = clientId(written);
  if (result !== undefined && isAbsent(error)) return { kind: 'answer', id, answer: { result } };
  if (!isJsonObject(error) || !isAbsent(result))
    throw invalidRequest('it is neither a request nor an answer');
  const { code, message, data } = error;
  if (typeof code !== 'number' || typeof message !== 'string')
    throw invalidRequest('`error` needs code and message');
  return { kind: 'answer', id, answer: { error: { code, message, ...definedFields({ data }) } } };
}
