// Converts answers of a legacy backend for a modern client: results get the fields that every modern result has, at their head
// and without being parsed; errors get the modern codes.
// Sources: MCP 2026-07-28 basic/index#resulttype, #error-codes, server/utilities/caching.

import { asBuffer, isJsonObject, type JsonFields, type JsonObject, JsonText } from '../../domain/json.ts';
import { closingQuote, skipSpace } from '../../domain/json-scanner.ts';
import { type JsonRpcError, RPC } from '../../domain/jsonrpc.ts';
import { LIMITS } from '../../domain/limits.ts';
import { listOf, META } from '../../domain/mcp.ts';
import type { InputRequests } from '../input-requests.ts';

/** The `resultType`; undefined when there is none, as in the legacy era. Of a large result only this field is read. */
export function resultTypeOf(result: JsonText): string | undefined {
  if (isSmall(result)) {
    const { value } = result;
    const type = isJsonObject(value) ? value.resultType : undefined;
    return typeof type === 'string' || type === undefined ? type : UNKNOWN;
  }
  const buffer = asBuffer(result.bytes);
  const start = topValue(buffer, 'resultType');
  if (start === -1) return undefined;
  return buffer[start] === QUOTE ? buffer.toString('utf8', start + 1, closingQuote(buffer, start)) : UNKNOWN;
}

/**
 * A result without a type, with the fields it lacks: `resultType`, `ttlMs` and `cacheScope` where the method needs them, and the
 * server info, except where the backend wrote a `_meta`, which could only be extended by reading all of it. A result that is no
 * object is unchanged.
 */
export function completed(method: string, result: JsonText, serverInfo: JsonObject): JsonText {
  const buffer = asBuffer(result.bytes);
  const start = skipSpace(buffer, 0);
  if (buffer[start] !== OPEN_BRACE) return result;
  const lacks = lackIn(result, buffer);
  const fields: JsonObject = { resultType: 'complete' };
  if (isCacheable(method)) {
    if (lacks('ttlMs')) fields.ttlMs = 0;
    if (lacks('cacheScope')) fields.cacheScope = 'private';
  }
  if (lacks('_meta')) fields._meta = { [META.serverInfo]: serverInfo };
  const rest = skipSpace(buffer, start + 1);
  const head = JSON.stringify(fields).slice(0, -1) + (buffer[rest] === CLOSE_BRACE ? '' : ',');
  return JsonText.ofBytes(Buffer.concat([Buffer.from(head), buffer.subarray(rest)]));
}

/** Results that need a cache lifetime. Those of a legacy backend must not be cached. */
function isCacheable(method: string): boolean {
  return method === 'resources/read' || listOf(method) !== undefined;
}

function lackIn(result: JsonText, buffer: Buffer): (key: string) => boolean {
  if (!isSmall(result)) return (key) => topValue(buffer, key) === -1;
  const { value } = result;
  return (key) => !isJsonObject(value) || !Object.hasOwn(value, key);
}

/** Small results are parsed on first use, which costs little, and most were: calls look for a task in them. */
function isSmall({ bytes }: JsonText): boolean {
  return bytes.length <= LIMITS.inspectedResultBytes;
}

/**
 * The URLs that the user must visit before a legacy backend serves the call. Undefined for every other error. The modern era
 * asks for that in a round of the call.
 * Source: MCP 2025-11-25 client/elicitation#url-elicitation-required-error; 2026-07-28 client/elicitation.
 */
export function requestedVisits({ code, data }: JsonRpcError): InputRequests | undefined {
  const elicitations =
    code === URL_ELICITATION_REQUIRED && isJsonObject(data) ? data.elicitations : undefined;
  if (!Array.isArray(elicitations)) return undefined;
  const visits = elicitations.flatMap((elicitation) => {
    const { url, message } = isJsonObject(elicitation) ? elicitation : {};
    if (typeof url !== 'string' || typeof message !== 'string') return [];
    return [{ method: 'elicitation/create', params: { mode: 'url', message, url } }];
  });
  if (visits.length === 0) return undefined;
  return Object.fromEntries(visits.map((visit, index) => [`visit-${index + 1}`, visit]));
}

/** The error with a code of the modern era: -32602 names a missing resource; -32002 and -32042 are not sent. */
export function modernError(method: string, params: JsonFields, error: JsonRpcError): JsonRpcError {
  const { code, message, data } = error;
  if (code === RPC.resourceNotFound) {
    const { uri } = params;
    const isAboutResource = method === 'resources/read' && typeof uri === 'string';
    const details = data ?? (isAboutResource ? { uri } : undefined);
    return { code: RPC.invalidParams, message, ...(details === undefined ? {} : { data: details }) };
  }
  return code === URL_ELICITATION_REQUIRED ? { ...error, code: RPC.internalError } : error;
}

const URL_ELICITATION_REQUIRED = -32042;
/** Stands for a type that is no string: such a result is unchanged. */
const UNKNOWN = 'unknown';
const QUOTE = 0x22;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

// Finds a field of JSON that is forwarded as bytes, without parsing it.
const BACKSLASH = 0x5c;
const COLON = 0x3a;

/**
 * The position of the value of a top-level key; -1 when there is none. The bytes must be valid JSON and the key plain ASCII. An
 * object without the text of the key, which is the usual case, costs one native search; one that has it near its end, as many
 * servers write, a few bytes more.
 */
export function topValue(object: Buffer, key: string): number {
  const quoted = `"${key}"`;
  const first = object.indexOf(quoted);
  if (first === -1) return -1;
  const last = object.lastIndexOf(quoted);
  const after = last + quoted.length;
  if (object.length - after < first) {
    const value = valueAfter(object, last, after);
    // After a top-level key, one bracket more is closed than opened.
    if (value !== -1 && openedIn(object, value) === -1) return value;
  }
  return findOnTop(object, quoted);
}

/** In JSON a quote that follows a backslash is inside a string, and only a key is followed by a colon. */
function valueAfter(object: Buffer, at: number, after: number): number {
  if (object[at - 1] === BACKSLASH) return -1;
  const next = skipSpace(object, after);
  return object[next] === COLON ? skipSpace(object, next + 1) : -1;
}

function findOnTop(object: Buffer, quoted: string): number {
  let open = 0;
  for (let at = 0; at < object.length; at += 1) {
    const byte = object[at];
    if (byte === QUOTE) {
      const end = closingQuote(object, at);
      const mayMatch = open === 1 && end - at === quoted.length - 1;
      const value = mayMatch ? valueAfter(object, at, end + 1) : -1;
      if (value !== -1 && object.toString('latin1', at, end + 1) === quoted) return value;
      at = end;
    } else if (byte === 0x7b || byte === 0x5b) open += 1;
    else if (byte === 0x7d || byte === 0x5d) open -= 1;
  }
  return -1;
}

/** Number of opened minus closed brackets, from a position outside of strings to the end. */
function openedIn(bytes: Buffer, from: number): number {
  let open = 0;
  for (let at = from; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (byte === QUOTE) at = closingQuote(bytes, at);
    else if (byte === 0x7b || byte === 0x5b) open += 1;
    else if (byte === 0x7d || byte === 0x5d) open -= 1;
  }
  return open;
}
