// Reads the body of a POST as JSON, within bounds. What the JSON says is not looked at here (classify.ts).

import { isUtf8 } from 'node:buffer';
import { asBuffer, isJsonObject, parseExact } from '../domain/json.ts';
import { excessIn, fieldStart, firstByte, itemStarts, readFields } from '../domain/json-scan.ts';
import { RPC } from '../domain/jsonrpc.ts';
import { LIMITS } from '../domain/limits.ts';
import { isCleanText } from '../domain/text.ts';
import { invalidRequest, type RpcFailure, refused } from './rpc-failure.ts';

/** Deepest nesting of arrays and objects that is taken from anybody. What is deeper can be read, but not written again. */
export const DEEPEST = 128;

/**
 * The value of the body. Throws RpcFailure: 400 with -32700 for what is not JSON in UTF-8, with -32600 for what is
 * nested too deeply, for a batch of too many messages, and for NUL characters and lone surrogates; 422 with -32600 for more than
 * LIMITS.bodyValues values. Numbers are exact (parseExact), and parameters of
 * requests may be kept as text (readFields).
 */
export function readBody(bytes: Uint8Array): unknown {
  const buffer = asBuffer(bytes);
  if (!isUtf8(buffer)) throw parseError('the body is not UTF-8');
  const excess = excessIn(buffer, DEEPEST);
  if (excess === 'depth') throw invalidRequest(`the body is nested deeper than ${DEEPEST} levels`);
  if (excess === 'values') {
    throw refused(
      422,
      `Invalid Request: the body has more than ${LIMITS.bodyValues} values`,
      RPC.invalidRequest,
    );
  }
  const text = buffer.toString('utf8');
  let value: unknown;
  try {
    value = parseExact(text);
  } catch {
    throw parseError('the body is not valid JSON'); // what the parser says of it may repeat the body
  }
  if (Array.isArray(value) && value.length > LIMITS.batchMessages) {
    throw invalidRequest(`a batch has at most ${LIMITS.batchMessages} messages`);
  }
  if (SUSPICIOUS.test(text) && !isClean(value)) {
    throw invalidRequest('the body holds a NUL character or half of a surrogate pair');
  }
  const start = firstByte(buffer);
  if (!Array.isArray(value)) return withTexts(buffer, start, value);
  return itemStarts(buffer, start).map((at, index) => withTexts(buffer, at, value[index]));
}

/** A request with the parameters as text that the gateway does not read: they travel as they came. Source: ADR 43. */
function withTexts(bytes: Buffer, start: number, message: unknown): unknown {
  if (!isJsonObject(message) || message.id === undefined || !isJsonObject(message.params)) return message;
  const at = fieldStart(bytes, start, 'params');
  return at === undefined ? message : { ...message, params: readFields(bytes, at, message.params) };
}

/** The only ways to write what no backend, log or database should get. */
const SUSPICIOUS = /\\u(?:0000|d[89a-f])/i;

/** Recursion ends with the depth of the body. */
function isClean(value: unknown): boolean {
  if (typeof value === 'string') return isCleanText(value);
  if (typeof value !== 'object' || value === null) return true;
  return Object.entries(value).every(([key, field]) => isCleanText(key) && isClean(field));
}

function parseError(what: string): RpcFailure {
  return refused(400, `Parse error: ${what}`, RPC.parseError);
}
