// The report of one request of a client for the log, the audit log and the trace. The code that answers the client opens and ends it;
// the dispatcher records where the request was sent.

import type { ErrorCode } from './errors.ts';
import type { FinalEvent, Tracker } from './exchange.ts';
import { asBuffer, isJsonObject, type JsonText } from './json.ts';

/** Of one request. The dispatcher writes its fields as a Tracker. */
export interface CallReport extends Tracker {
  /** Called before the answer is written; only the first call counts. */
  ended(end: CallEnd): void;
}

/** The answer of the backend; or an error of the gateway, or of JSON-RPC; or the client disconnected. */
export type CallEnd =
  | FinalEvent
  | { readonly kind: 'failed'; readonly code: ErrorCode | number }
  | { readonly kind: 'cancelled' };

/**
 * What a client got. `tool_error`: a result with `isError`; `error`: an error of JSON-RPC; `failed`: an error of the gateway;
 * `cancelled`: nothing, because it disconnected.
 */
export type CallOutcome = 'result' | 'tool_error' | 'error' | 'failed' | 'cancelled';

export function outcomeOf(method: string, end: CallEnd): CallOutcome {
  return end.kind === 'result' && method === 'tools/call' && isToolError(end.result)
    ? 'tool_error'
    : end.kind;
}

/** Bytes at each end of a long result that are searched for `isError`, which servers write at its beginning or end. */
const SEARCHED_BYTES = 8_192;
/** Results up to this size are parsed to confirm what was found. */
const PARSED_BYTES = 65_536;
const KEY = Buffer.from('"isError"');
const IS_TRUE = /^"isError"\s*:\s*true/;

/**
 * True for a result of a tool with `isError: true`. Most results are not parsed: in a JSON string the quotes would be escaped, so
 * what is found is a key, though perhaps a nested one.
 */
function isToolError(result: JsonText): boolean {
  const bytes = asBuffer(result.bytes);
  const isShort = bytes.length <= 2 * SEARCHED_BYTES;
  const parts = isShort ? [bytes] : [bytes.subarray(0, SEARCHED_BYTES), bytes.subarray(-SEARCHED_BYTES)];
  if (!parts.some(hasTrueKey)) return false;
  if (bytes.length > PARSED_BYTES) return true;
  try {
    const { value } = result;
    return isJsonObject(value) && value.isError === true;
  } catch {
    return false; // not JSON: transports do not verify every result
  }
}

function hasTrueKey(bytes: Buffer): boolean {
  for (let at = bytes.indexOf(KEY); at !== -1; at = bytes.indexOf(KEY, at + KEY.length))
    if (IS_TRUE.test(bytes.toString('latin1', at, at + 2 * KEY.length))) return true;
  return false;
}
