// JSON-RPC 2.0 messages as the gateway meets them: types, and the reader of what a backend wrote.
// Framing (lines, SSE events, HTTP bodies) belongs to transports; ids are remapped in transports/stdio/correlator.ts.

import { isJsonObject, type JsonObject, JsonText, type JsonValue } from './json.ts';
import { LIMITS } from './limits.ts';

export type JsonRpcId = string | number;

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
  /** Of the legacy era; -32602 in the modern one. */
  resourceNotFound: -32002,
  /** What the SDKs answer for a bad request and for a session that is unknown. */
  badRequest: -32000,
  sessionNotFound: -32001,
  headerMismatch: -32020,
  missingCapability: -32021,
  unsupportedVersion: -32022,
} as const;

/** What one message of a backend is. `id` is null on an error answer to a message that could not be read. */
export type BackendMessage =
  | { readonly kind: 'result'; readonly id: JsonRpcId; readonly result: JsonText }
  | { readonly kind: 'error'; readonly id: JsonRpcId | null; readonly error: JsonRpcError }
  | { readonly kind: 'request'; readonly id: JsonRpcId; readonly method: string; readonly params: JsonObject }
  | { readonly kind: 'notification'; readonly method: string; readonly params: JsonObject };

type ResultMessage = Extract<BackendMessage, { kind: 'result' }>;

/** Throws on what is not UTF-8, instead of replacing it. */
const STRICT_UTF8 = new TextDecoder('utf-8', { fatal: true });
/** Digits of an id that are a whole number for certain; a longer one is left to the parser. */
const MOST_DIGITS = 15;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const ZERO = 0x30;
const HEAD_RESULT_FIRST = Buffer.from('{"result":{');
const MIDDLE_ID_LAST = Buffer.from(',"jsonrpc":"2.0","id":');
const HEAD_ID_FIRST = Buffer.from('{"jsonrpc":"2.0","id":');
const MIDDLE_RESULT_LAST = Buffer.from(',"result":{');

/**
 * Reads one message of a backend. Results in one of the two key orders that SDKs write are recognised by head and
 * tail, in constant time, and their bytes are forwarded as they came. Up to `provenBytes` those bytes are parsed
 * first, which proves the whole message; larger ones are trusted. Everything else is parsed. Returns undefined for
 * anything that is not a JSON-RPC 2.0 message: not JSON, an array, a wrong version, neither result nor error.
 * Source: ADR 8.
 */
export function readMessage(
  bytes: Uint8Array,
  provenBytes: number = LIMITS.provenAnswerBytes,
): BackendMessage | undefined {
  const buffer = asBuffer(bytes);
  const recognised = recognise(buffer);
  const isSmall = buffer.length <= provenBytes;
  const answer = recognised && (isSmall ? prove(recognised) : trust(recognised, buffer));
  if (answer !== undefined) return answer;
  try {
    return classify(JSON.parse(buffer.toString('utf8')));
  } catch {
    return undefined; // not JSON, or nested too deeply to be written again: the caller counts it
  }
}

/**
 * Sorts a parsed message; undefined when it is none. Throws RangeError for one that is nested too deeply to be written:
 * better here than where somebody is waiting for its bytes.
 */
export function classify(message: unknown): BackendMessage | undefined {
  if (!isJsonObject(message) || message.jsonrpc !== '2.0') return undefined;
  const { id, method, result, error } = message;
  if (typeof method === 'string') {
    const params = isJsonObject(message.params) ? message.params : {};
    requireDepth(params, DEEPEST_PARAMS);
    if (id === undefined) return { kind: 'notification', method, params };
    return isId(id) ? { kind: 'request', id, method, params } : undefined;
  }
  if (isJsonObject(error)) {
    return { kind: 'error', id: isId(id) ? id : null, error: readError(error) };
  }
  if (result === undefined || !isId(id)) return undefined;
  return { kind: 'result', id, result: JsonText.ofValue(result, Buffer.from(JSON.stringify(result))) };
}

/** Deepest nesting of what a backend notifies of or asks. It is written again for clients, on whatever stack is there then. */
const DEEPEST_PARAMS = 256;

function requireDepth(value: unknown, levels: number): void {
  if (typeof value !== 'object' || value === null) return;
  if (levels === 0) throw new RangeError('nested too deeply');
  for (const field of Object.values(value)) requireDepth(field, levels - 1);
}

/** True for what may stand as the id of a request. Source: MCP basic/index#requests (never null). */
export function isId(value: unknown): value is JsonRpcId {
  return typeof value === 'string' || (typeof value === 'number' && Number.isFinite(value));
}

function readError(error: JsonObject): JsonRpcError {
  const code = typeof error.code === 'number' ? error.code : RPC.internalError;
  const message = typeof error.message === 'string' ? error.message : 'the server gave no message';
  if (error.data === undefined) return { code, message };
  JSON.stringify(error.data);
  return { code, message, data: error.data };
}

/**
 * Proves that the recognised bytes are one JSON value in valid UTF-8; what is around them is known byte by byte.
 * Undefined when they are not, for instance because a key stands between the result and the tail.
 */
function prove(answer: ResultMessage): ResultMessage | undefined {
  const { bytes } = answer.result;
  try {
    return { ...answer, result: JsonText.ofValue(JSON.parse(STRICT_UTF8.decode(bytes)), bytes) };
  } catch {
    return undefined; // not what it looked like: the caller parses all of it
  }
}

/**
 * Takes a large answer as it looks, unless another one seems to begin inside: a line that broke off and the next one
 * glued to it begin like the first and end like the second, and would give one caller the data of another.
 */
function trust(answer: ResultMessage, buffer: Buffer): ResultMessage | undefined {
  const hasSecondHead = [HEAD_RESULT_FIRST, HEAD_ID_FIRST].some((head) => buffer.indexOf(head, 1) !== -1);
  return hasSecondHead ? undefined : answer;
}

/**
 * Finds id and result by the first and the last bytes. The id is sound for a JSON object: a line that ends
 * `,"jsonrpc":"2.0","id":N}` has that id at its top level, because its last brace closes the object and a quote
 * inside a string would be escaped; the same holds for the head of the other order. The result is what is left
 * between the two, and only as good as the server: other keys in there are seen by `prove`, not here.
 */
function recognise(buffer: Buffer): ResultMessage | undefined {
  let end = buffer.length;
  while (end > 0 && isSpace(buffer[end - 1])) end -= 1;
  if (end < 30 || buffer[0] !== OPEN_BRACE || buffer[end - 1] !== CLOSE_BRACE) return undefined;
  return recogniseIdLast(buffer, end) ?? recogniseIdFirst(buffer, end);
}

function recogniseIdLast(buffer: Buffer, end: number) {
  if (!startsWith(buffer, HEAD_RESULT_FIRST, 0)) return undefined;
  let digits = end - 1;
  while (digits > 0 && isDigit(buffer[digits - 1])) digits -= 1;
  const middle = digits - MIDDLE_ID_LAST.length;
  if (!isWholeNumber(buffer, digits, end - 1) || middle <= HEAD_RESULT_FIRST.length) return undefined;
  if (!startsWith(buffer, MIDDLE_ID_LAST, middle) || buffer[middle - 1] !== CLOSE_BRACE) return undefined;
  const result = buffer.subarray(HEAD_RESULT_FIRST.length - 1, middle);
  return {
    kind: 'result',
    id: readDigits(buffer, digits, end - 1),
    result: JsonText.ofBytes(result),
  } as const;
}

function recogniseIdFirst(buffer: Buffer, end: number) {
  if (!startsWith(buffer, HEAD_ID_FIRST, 0)) return undefined;
  let digits = HEAD_ID_FIRST.length;
  while (isDigit(buffer[digits])) digits += 1;
  if (!isWholeNumber(buffer, HEAD_ID_FIRST.length, digits)) return undefined;
  if (!startsWith(buffer, MIDDLE_RESULT_LAST, digits) || buffer[end - 2] !== CLOSE_BRACE) return undefined;
  const result = buffer.subarray(digits + MIDDLE_RESULT_LAST.length - 1, end - 1);
  return {
    kind: 'result',
    id: readDigits(buffer, HEAD_ID_FIRST.length, digits),
    result: JsonText.ofBytes(result),
  } as const;
}

function startsWith(buffer: Buffer, pattern: Buffer, at: number): boolean {
  return (
    buffer.length >= at + pattern.length &&
    buffer.compare(pattern, 0, pattern.length, at, at + pattern.length) === 0
  );
}

/** True when the digits there are a JSON number: at least one, and no zero before others. */
function isWholeNumber(buffer: Buffer, from: number, to: number): boolean {
  return to > from && to - from <= MOST_DIGITS && (to - from === 1 || buffer[from] !== ZERO);
}

function readDigits(buffer: Buffer, from: number, to: number): number {
  return Number(buffer.toString('latin1', from, to));
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= ZERO && byte <= 0x39;
}

function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
