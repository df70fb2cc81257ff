// Whose answer was it, when a message cannot be used? Looks for the id in what can be read of it, so that the caller
// is told at once instead of waiting for nothing. Usable messages are read in domain/jsonrpc.ts.

import { isJsonObject } from '../domain/json.ts';
import { LIMITS } from '../domain/limits.ts';
import type { OversizeLine } from './stdio/line-decoder.ts';

/** Ids that an unusable line answers; empty for what is no answer, such as a log line that strayed to stdout. */
export function idsOfBrokenAnswer(line: Buffer): readonly number[] {
  if (!looksLikeJson(line)) return [];
  const message = parsed(line);
  if (message === undefined) {
    // Cut off somewhere, or two in one, or large: the head may still name an id, and the tail another.
    const head = idAtHead(line.toString('latin1', 0, EDGE_BYTES));
    const tail = idAtTail(line.toString('latin1', Math.max(0, line.length - EDGE_BYTES)));
    return [...new Set([head, tail])].filter((id) => id !== undefined);
  }
  const answers = Array.isArray(message) ? message : [message];
  return answers.filter(looksLikeAnswer).map(({ id }) => id);
}

/** Undefined for what is not JSON, or too large to be parsed. */
function parsed(line: Buffer): unknown {
  if (line.length > LIMITS.parsedMessageBytes) return undefined;
  try {
    return JSON.parse(line.toString('utf8'));
  } catch {
    return undefined; // what else can be read of it is looked for
  }
}

/** Whether a line begins like a JSON object or list, and not like text. */
export function looksLikeJson(line: Buffer): boolean {
  return line[0] === OPEN_BRACE || line[0] === OPEN_BRACKET;
}

/** Who waits for an oversize line: an exchange, nobody (it is no answer), or there is no telling. */
export function ownerOfOversize({ head, tail }: OversizeLine): number | 'nobody' | 'unknown' {
  const start = head.toString('latin1');
  if (METHOD_AT_HEAD.test(start)) return 'nobody';
  return idAtHead(start) ?? idAtTail(tail.toString('latin1')) ?? 'unknown';
}

const OPEN_BRACE = 0x7b;
const OPEN_BRACKET = 0x5b;
const EDGE_BYTES = 256;

// Python, Go and Rust servers write the id before the result, TypeScript servers after it. What closes the line
// closes the outermost object, and a quote inside a string would be escaped: these are ids of the message itself.
const ID_AT_HEAD = /^\s*\{\s*(?:"jsonrpc"\s*:\s*"[^"]*"\s*,\s*)?"id"\s*:\s*(\d+)\s*[,}]/;
const ID_AT_TAIL =
  /[,{]\s*(?:"jsonrpc"\s*:\s*"[^"]*"\s*,\s*"id"\s*:\s*(\d+)|"id"\s*:\s*(\d+)\s*,\s*"jsonrpc"\s*:\s*"[^"]*")\s*\}\s*$/;
const METHOD_AT_HEAD = /^\s*\{\s*(?:"jsonrpc"\s*:\s*"[^"]*"\s*,\s*)?(?:"id"\s*:\s*[^,{[]*,\s*)?"method"\s*:/;

function idAtHead(head: string): number | undefined {
  return numberOf(ID_AT_HEAD.exec(head)?.[1]);
}

function idAtTail(tail: string): number | undefined {
  const match = ID_AT_TAIL.exec(tail);
  return numberOf(match?.[1] ?? match?.[2]);
}

function numberOf(digits: string | undefined): number | undefined {
  return digits === undefined ? undefined : Number(digits);
}

/** Programs that log JSON to stdout often have an `id` in it; an answer has more than that. */
function looksLikeAnswer(message: unknown): message is { readonly id: number } {
  if (!isJsonObject(message) || typeof message.id !== 'number' || 'method' in message) return false;
  return 'jsonrpc' in message || 'result' in message || isJsonObject(message.error);
}
