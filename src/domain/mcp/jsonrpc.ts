// JSON-RPC 2.0 messages: types, and the reader of messages of backends. Transports do the framing (lines, SSE
// events, HTTP bodies); transports/channel.ts maps ids.

import { isUtf8 } from 'node:buffer';
import {
  isDeeper,
  isJsonObject,
  type JsonFields,
  type JsonObject,
  JsonText,
  type JsonValue,
  parseExact,
  writeFields,
} from '../json/json.ts';
import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COMMA,
  hasMoreValues,
  NO_INDEX,
  OPEN_BRACE,
  OPEN_BRACKET,
  scanned,
  skipColon,
  skipSpace,
  skipString,
  skipValue,
} from '../json/json-scanner.ts';
import { LIMITS } from '../limits.ts';
import { withoutRest } from '../memory/held-bytes.ts';

/**
 * The longest method of a message of a backend, and the longest id of its request, in UTF-16 units. Both are kept while the
 * message waits for its client, when budgets count the params only; the id is also in the answer. Source: ADR 90.
 */
export const MAX_METHOD_LENGTH = 1_024;
export const MAX_REQUEST_ID_LENGTH = 256;

/** An integer beyond 2^53 is a bigint: `idValue` serializes it. */
export type JsonRpcId = string | number | bigint;

export interface JsonRpcError {
  readonly code: number;
  readonly message: string;
  readonly data?: JsonValue;
}

/** Codes the gateway reads or writes. Source: JSON-RPC 2.0 section 5.1; MCP 2026-07-28 basic/index#error-codes. */
export const RPC = {
  parseError: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internalError: -32603,
  /** The code of the legacy era; the modern one has -32602. */
  resourceNotFound: -32002,
  /** Answers of the SDKs to a bad request, and to an unknown session. */
  badRequest: -32000,
  sessionNotFound: -32001,
  headerMismatch: -32020,
  missingCapability: -32021,
  unsupportedVersion: -32022,
} as const;

/** The answer to a method that the era of the conversation does not have. */
export const METHOD_NOT_FOUND: JsonRpcError = { code: RPC.methodNotFound, message: 'Method not found' };

/** A message of a backend. `id` is null in an error about a message that the backend could not read. */
export type BackendMessage =
  | { readonly kind: 'result'; readonly id: JsonRpcId; readonly result: JsonText }
  | { readonly kind: 'error'; readonly id: JsonRpcId | null; readonly error: JsonRpcError }
  | { readonly kind: 'request'; readonly id: JsonRpcId; readonly method: string; readonly params: JsonObject }
  | { readonly kind: 'notification'; readonly method: string; readonly params: JsonObject };

export type AnswerMessage = Extract<BackendMessage, { kind: 'result' | 'error' }>;
export type RequestMessage = Extract<BackendMessage, { kind: 'request' }>;
export type NotificationMessage = Extract<BackendMessage, { kind: 'notification' }>;

/**
 * Reads one message of a backend. The result of an answer is forwarded as the received bytes, once one pass over
 * the whole message has proven that it is one JSON object with one version, one id and one result. Everything else
 * is parsed, up to LIMITS.parsedMessageBytes and LIMITS.parsedAtOnce. Returns undefined for anything that is not a
 * JSON-RPC 2.0 message: not JSON, an array, a wrong version, neither result nor error; and for a method, or an id of a
 * request, that is too long. A byte order mark is ignored. Source: ADR 44, 90.
 */
export function readMessage(whole: Buffer): BackendMessage | undefined {
  const buffer = withoutMark(whole);
  const start = skipSpace(buffer, 0);
  if (buffer[start] !== OPEN_BRACE) return undefined; // a program may write many lines of text
  const answer = readAnswer(buffer, start);
  if (answer !== undefined || buffer.length > LIMITS.parsedMessageBytes) return answer;
  try {
    if (hasMoreValues(buffer, LIMITS.parsedAtOnce)) return undefined;
    return classifyMessage(parseExact(buffer.toString('utf8')));
  } catch {
    return undefined; // not JSON, or nested too deeply to be serialized again
  }
}

/**
 * The words for a message of this size that was not read, because it is not a plain result; undefined when it is
 * within the limit.
 */
export function unparsedSize(bytes: number): string | undefined {
  if (bytes <= LIMITS.parsedMessageBytes) return undefined;
  return `a message of ${bytes} bytes that is not a plain result, over the limit of ${LIMITS.parsedMessageBytes}`;
}

/**
 * Reads the messages of an array, in which some servers send their answers; none of anything else. They were batches of revision
 * 2025-03-26, and SDK clients still read them. Items that are not messages are left out.
 */
export function readBatch(whole: Buffer): readonly BackendMessage[] {
  const buffer = withoutMark(whole);
  let at = skipSpace(buffer, 0);
  if (buffer[at] !== OPEN_BRACKET) return [];
  const source = scanned(buffer, { levels: MAX_ANSWER_DEPTH, values: buffer.length });
  const messages: BackendMessage[] = [];
  do {
    const start = skipSpace(buffer, at + 1);
    const end = messages.length === LIMITS.batchMessages ? NO_INDEX : skipValue(source, start, 1);
    if (end === NO_INDEX) return [];
    const message = readMessage(buffer.subarray(start, end));
    if (message !== undefined) messages.push(message);
    at = skipSpace(buffer, end);
  } while (buffer[at] === COMMA);
  return buffer[at] === CLOSE_BRACKET && skipSpace(buffer, at + 1) === buffer.length ? messages : [];
}

/**
 * Classifies a parsed message; undefined for any other value, and for params that are nested too deeply to be serialized later.
 * Such data of an error is left out. Throws RangeError for such a result.
 */
function classifyMessage(message: unknown): BackendMessage | undefined {
  if (!isJsonObject(message) || message.jsonrpc !== '2.0') return undefined;
  const { method, result, error } = message;
  const id = readId(message.id);
  if (typeof method === 'string') {
    const params = isJsonObject(message.params) ? message.params : {};
    if (method.length > MAX_METHOD_LENGTH || isDeeper(params, MAX_PARAMS_DEPTH)) return undefined;
    if (message.id === undefined) return { kind: 'notification', method, params };
    const isTooLong = typeof id === 'string' && id.length > MAX_REQUEST_ID_LENGTH;
    return id === undefined || isTooLong ? undefined : { kind: 'request', id, method, params };
  }
  if (isJsonObject(error)) return { kind: 'error', id: id ?? null, error: readError(error) };
  if (result === undefined || id === undefined) return undefined;
  return { kind: 'result', id, result: JsonText.ofBytes(Buffer.from(JSON.stringify(result))) };
}

/**
 * The deepest params of notifications and requests of a backend, and data of its errors: they are serialized again by
 * recursion.
 */
const MAX_PARAMS_DEPTH = 256;

/** The id of a parsed message; undefined for an invalid one. Source: MCP basic/index#requests (never null). */
export function readId(value: unknown): JsonRpcId | undefined {
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return Number.isFinite(value) ? value : undefined;
  return value instanceof JsonText && LARGE_ID.test(value.text) ? BigInt(value.text) : undefined;
}

/** The number that an id or a token stands for: some servers and clients send a number back as its decimal text. */
export function numberMeant(value: unknown): number | undefined {
  if (typeof value === 'number') return value;
  return typeof value === 'string' && DECIMAL.test(value) ? Number(value) : undefined;
}

/** A number that the gateway gave. */
const DECIMAL = /^(?:0|[1-9]\d{0,14})$/;

/** Bounded, because parsing digits takes time with the square of their number. */
const LARGE_ID = /^-?[1-9]\d{0,63}$/;

/** The id for JSON.stringify. */
export function idValue(id: JsonRpcId | null): string | number | JsonText | null {
  return typeof id === 'bigint' ? JsonText.ofBytes(Buffer.from(String(id))) : id;
}

/** A request as JSON text; fields that are kept as text are inserted unchanged. Throws RangeError for too deep nesting. */
export function requestText(id: JsonRpcId, method: string, params: JsonFields | undefined): string {
  const head = `{"jsonrpc":"2.0","id":${JSON.stringify(idValue(id))},"method":${JSON.stringify(method)}`;
  return params === undefined ? `${head}}` : `${head},"params":${writeFields(params)}}`;
}

function readError(error: JsonObject): JsonRpcError {
  const code = typeof error.code === 'number' ? error.code : RPC.internalError;
  const message = typeof error.message === 'string' ? error.message : 'the server gave no message';
  const { data } = error;
  return data === undefined || isDeeper(data, MAX_PARAMS_DEPTH) ? { code, message } : { code, message, data };
}

/** Reads an answer with a result; undefined for any other message, and for an answer that needs the parser. */
function readAnswer(buffer: Buffer, start: number): Extract<BackendMessage, { kind: 'result' }> | undefined {
  const source = scanned(buffer, { levels: MAX_ANSWER_DEPTH, values: buffer.length });
  let at = start;
  let hasVersion = false;
  let id: JsonRpcId | undefined;
  let result: Buffer | undefined;
  do {
    const key = skipSpace(buffer, at + 1);
    const keyEnd = skipString(source, key);
    const value = keyEnd === NO_INDEX ? NO_INDEX : skipColon(buffer, keyEnd);
    const end = value === NO_INDEX ? NO_INDEX : skipValue(source, value, 1);
    if (end === NO_INDEX) return undefined;
    if (spells(JSONRPC, buffer, key, keyEnd)) {
      if (hasVersion || !spells(RPC_VERSION, buffer, value, end)) return undefined;
      hasVersion = true;
    } else if (spells(ID, buffer, key, keyEnd)) {
      if (id !== undefined || end - value > MAX_ID_LENGTH) return undefined;
      id = digitsAt(buffer, value, end) ?? readId(parseExact(buffer.toString('utf8', value, end)));
    } else if (spells(RESULT, buffer, key, keyEnd)) {
      if (result !== undefined) return undefined;
      result = buffer.subarray(value, end);
    } else if (isOtherKind(buffer.subarray(key, keyEnd))) return undefined;
    at = skipSpace(buffer, end);
  } while (buffer[at] === COMMA);
  const isWhole = buffer[at] === CLOSE_BRACE && skipSpace(buffer, at + 1) === buffer.length;
  if (!isWhole || !hasVersion || id === undefined || result === undefined || !isUtf8(buffer))
    return undefined;
  return { kind: 'result', id, result: JsonText.ofBytes(withoutRest(result)) };
}

/** True when these bytes are `word`. Making a string of a few bytes would take ten times as long. */
function spells(word: Buffer, buffer: Buffer, start: number, end: number): boolean {
  if (end - start !== word.length) return false;
  for (let at = 0; at < word.length; at += 1) if (buffer[start + at] !== word[at]) return false;
  return true;
}

/** The number in these bytes, if they are a few digits and nothing else. */
function digitsAt(buffer: Buffer, start: number, end: number): number | undefined {
  if (end - start > MAX_DIGITS) return undefined;
  let number = 0;
  for (let at = start; at < end; at += 1) {
    const digit = (buffer[at] ?? 0) - ZERO;
    if (digit < 0 || digit > 9) return undefined;
    number = number * 10 + digit;
  }
  return number;
}

const ZERO = 0x30;
const MAX_DIGITS = 15;

/** The bytes without the byte order mark, which some programs and servers write first. */
function withoutMark(whole: Buffer): Buffer {
  const hasMark = whole[0] === MARK[0] && whole.subarray(0, MARK.length).equals(MARK);
  return hasMark ? whole.subarray(MARK.length) : whole;
}

const MARK = Buffer.from('\ufeff');

/** Levels of arrays and objects in an answer. */
const MAX_ANSWER_DEPTH = 500;

/** True for a key of another kind of message, and for one with escapes, which may be any key. */
function isOtherKind(key: Buffer): boolean {
  return key.includes(BACKSLASH) || key.equals(METHOD) || key.equals(ERROR);
}

const METHOD = Buffer.from('"method"');
const ERROR = Buffer.from('"error"');
const JSONRPC = Buffer.from('"jsonrpc"');
const RPC_VERSION = Buffer.from('"2.0"');
const ID = Buffer.from('"id"');
const RESULT = Buffer.from('"result"');
/** The ids of the gateway are short; a longer one is left to the parser. */
const MAX_ID_LENGTH = 256;
