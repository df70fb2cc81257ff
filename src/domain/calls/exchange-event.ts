// The events of an exchange, how it ends, and its outcome for a client.

import type { ErrorCode, HttpRefusal } from '../errors/errors.ts';
import { isJsonObject, type JsonText } from '../json/json.ts';
import { OPEN_BRACE } from '../json/json-scanner.ts';
import type { ServerMessage } from '../mcp/client.ts';
import { type JsonRpcError, RPC } from '../mcp/jsonrpc.ts';
import { listReturnedBy } from '../mcp/mcp.ts';

/**
 * The events of an exchange: zero or more messages, then one result or error, then it completes. `error` is an
 * answer of the backend, not a failure of the transport. A `request` comes only in a conversation that declared
 * the capabilities of a client. `interrupted`: the backend closed its event stream before the answer and wants to be
 * polled, which the transport does; clients that can poll may get the event.
 */
export type ExchangeEvent =
  | ServerMessage
  /** `retryMs`: the wait that the backend asked for. */
  | { readonly kind: 'interrupted'; readonly retryMs: number | undefined }
  | FinalEvent;

/** The answer of a backend, which ends the exchange. */
export type FinalEvent =
  /** `cut`: why the list ends with this page although its server has more items, as a clause. */
  | { readonly kind: 'result'; readonly result: JsonText; readonly cut?: string }
  /** `refusal`: how its server refused the request over HTTP, if the error came with a status that is not a success. */
  | { readonly kind: 'error'; readonly error: JsonRpcError; readonly refusal?: HttpRefusal };

/**
 * The answer itself, or an error in place of a result that is not an object: clients take such a message for none, and wait until
 * their own timeout. Source: ADR 44.
 */
export function validAnswer(answer: FinalEvent): FinalEvent {
  if (answer.kind === 'error' || isObjectText(answer.result)) return answer;
  const message = `The result of the server is ${kindOf(answer.result)}, not an object.`;
  return { kind: 'error', error: { code: RPC.internalError, message } };
}

/** True for the text of an object of JSON; the text has no space before it. */
export function isObjectText({ bytes }: JsonText): boolean {
  return bytes[0] === OPEN_BRACE;
}

function kindOf({ bytes }: JsonText): string {
  return KINDS[String.fromCharCode(bytes[0] ?? 0)] ?? 'a number';
}

const KINDS: Readonly<Record<string, string>> = {
  n: 'null',
  '"': 'a string',
  '[': 'an array',
  t: 'a boolean',
  f: 'a boolean',
};

/** True for the event that ends an exchange. */
export function isFinal(event: ExchangeEvent): event is FinalEvent {
  return event.kind === 'result' || event.kind === 'error';
}

/** The answer of the backend; or an error of the gateway, or of JSON-RPC; or the client disconnected. */
export type CallEnd =
  | FinalEvent
  | { readonly kind: 'failed'; readonly code: ErrorCode | number }
  | { readonly kind: 'cancelled' };

/**
 * The outcome for a client. `tool_error`: a result with `isError`; `error`: an error of JSON-RPC; `failed`: an
 * error of the gateway; `cancelled`: nothing, because it disconnected.
 */
export type CallOutcome = 'result' | 'tool_error' | 'error' | 'failed' | 'cancelled';

/** The outcome of a request of this method. A tool result with `isError` is a `tool_error`. */
export function outcomeOf(method: string, end: CallEnd): CallOutcome {
  if (end.kind === 'result')
    return method === 'tools/call' && isToolError(end.result) ? 'tool_error' : 'result';
  return isListRefusal(method, end) ? 'result' : end.kind;
}

/** True for the answer of a server that does not offer the list: it is empty. */
function isListRefusal(method: string, end: CallEnd): boolean {
  return (
    end.kind === 'error' && end.error.code === RPC.methodNotFound && listReturnedBy(method) !== undefined
  );
}

/** True for the outcomes of requests that the backend answered. */
export function isAnswered(outcome: CallOutcome): boolean {
  return outcome === 'result' || outcome === 'tool_error' || outcome === 'error';
}

/** Results up to this size are parsed to confirm a match. */
const PARSED_BYTES = 65_536;
const KEY = Buffer.from('"isError"');
const IS_TRUE = /"isError"\s*:\s*true/;

/**
 * True for a result of a tool with `isError: true`. Most results are not parsed: in a JSON string the quotes would be escaped, so
 * a match is a key, though perhaps a nested one.
 */
function isToolError(result: JsonText): boolean {
  const { bytes } = result;
  // One search for all matches: a result may consist of this key.
  if (!bytes.includes(KEY) || !IS_TRUE.test(bytes.toString('latin1'))) return false;
  if (bytes.length > PARSED_BYTES) return true;
  try {
    const { value } = result;
    return isJsonObject(value) && value.isError === true;
  } catch {
    return false; // not JSON: transports do not verify every result
  }
}
