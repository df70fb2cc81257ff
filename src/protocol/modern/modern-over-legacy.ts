// Converts answers of a legacy backend for a modern client: results get the fields that every modern result has, added
// at the front without parsing the result; errors get the modern codes. Sources: MCP 2026-07-28 basic/index#resulttype,
// #error-codes, server/utilities/caching.

import { URL_ELICITATION_REQUIRED } from '../../domain/calls/connection-required.ts';
import {
  isJsonObject,
  type JsonFields,
  type JsonObject,
  JsonText,
  type JsonValue,
  parseExact,
} from '../../domain/json/json.ts';
import { editedFields, fieldIn, REMOVED, withFields } from '../../domain/json/json-fields.ts';
import { CLOSE_BRACE, OPEN_BRACE, skipSpace } from '../../domain/json/json-scanner.ts';
import { LIMITS } from '../../domain/limits.ts';
import { type JsonRpcError, RPC } from '../../domain/mcp/jsonrpc.ts';
import { listReturnedBy, META } from '../../domain/mcp/mcp.ts';
import type { InputRequests } from '../input-requests.ts';

/**
 * The end of most results. The last of repeated keys counts, and a quote after a comma begins a text, so that this
 * end is unambiguous.
 */
const COMPLETE_END = Buffer.from(',"resultType":"complete"}');

/** The `resultType`; undefined when there is none, as in the legacy era. */
export function resultTypeOf(result: JsonText): string | undefined {
  const { bytes } = result;
  if (bytes.includes(COMPLETE_END, bytes.length - COMPLETE_END.length)) return 'complete'; // nearly always
  const type = fieldOf(result, 'resultType') ?? undefined;
  return typeof type === 'string' || type === undefined ? type : UNKNOWN;
}

/** Reads one field. Small results are parsed as a whole, which most were already, since calls look for a task in them. */
function fieldOf(result: JsonText, key: string): unknown {
  if (result.bytes.length <= LIMITS.inspectedResultBytes)
    return isJsonObject(result.value) ? result.value[key] : undefined;
  const written = fieldIn(result.bytes, key);
  if (written === undefined || written.length > MAX_FIELD_LENGTH) return written && UNKNOWN;
  return parseExact(written.toString());
}

/** The longest field that is read in a large result, in bytes of JSON. */
const MAX_FIELD_LENGTH = 256;

/**
 * Adds the required fields that a result lacks: `resultType`; for cacheable methods `ttlMs` and `cacheScope`, also in
 * place of values that clients refuse; and for a result without a type also the server info, unless the backend wrote
 * a `_meta`, which could only be extended by parsing it. Returns the same object when nothing is missing, and for a
 * result that is not an object.
 */
export function completed(
  method: string,
  type: string | undefined,
  result: JsonText,
  serverInfoOf: () => JsonObject,
): JsonText {
  const isCacheable = method === 'resources/read' || listReturnedBy(method) !== undefined;
  if (type === 'complete' && !isCacheable) return result; // nearly always
  const { bytes } = result;
  const start = skipSpace(bytes, 0);
  if (bytes[start] !== OPEN_BRACE) return result;
  const fields: JsonObject = {};
  const wrong: string[] = [];
  const require = (key: string, value: JsonValue, isValid: (given: unknown) => boolean): void => {
    const given = fieldOf(result, key);
    if (isValid(given)) return;
    fields[key] = value;
    if (given !== undefined) wrong.push(key);
  };
  require('resultType', 'complete', (given) => typeof given === 'string');
  // These need a cache lifetime. Results of a legacy backend must not be cached.
  if (isCacheable) {
    require('ttlMs', 0, (given) => Number.isSafeInteger(given) && Number(given) >= 0);
    require('cacheScope', 'private', (given) => given === 'private' || given === 'public');
  }
  if (type === undefined)
    require('_meta', { [META.serverInfo]: serverInfoOf() }, (given) => given !== undefined && given !== null);
  if (Object.keys(fields).length === 0) return result;
  if (wrong.length > 0) {
    const kept = editedFields(bytes, (key) => (wrong.includes(key) ? REMOVED : undefined));
    return JsonText.ofBytes(withFields(kept, Buffer.from(JSON.stringify(fields).slice(1, -1))));
  }
  const rest = skipSpace(bytes, start + 1);
  const head = JSON.stringify(fields).slice(0, -1) + (bytes[rest] === CLOSE_BRACE ? '' : ',');
  return JsonText.ofBytes(Buffer.concat([Buffer.from(head), bytes.subarray(rest)]));
}

/**
 * The URLs that the user must visit before a legacy backend serves the call; undefined for every other error.
 * The modern era asks for that in a round of the call. Source: MCP 2025-11-25
 * client/elicitation#url-elicitation-required-error; 2026-07-28 client/elicitation.
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

/** Stands for a type that is not a string: such a result is left unchanged. */
const UNKNOWN = 'unknown';
