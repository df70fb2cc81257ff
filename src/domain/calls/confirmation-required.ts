// The answer to a call that its user has to confirm first: what to ask. Each door gives it in its form: an input
// request, a request on the stream of the call, the result of a tool, or an error of REST. Source: ADR 241.

import { type JsonFields, type JsonObject, JsonText } from '../json/json.ts';
import { type JsonRpcError, RPC } from '../mcp/jsonrpc.ts';
import { cutBytes, cutText } from '../text.ts';
import { itemKey } from '../views/approval.ts';

/** The time for which a question may be answered, and an answer be used. */
export const CONFIRM_MS = 10 * 60_000;

/** The key of the input request. */
export const CONFIRM = 'confirm';

/** Bytes of the question. */
const MAX_QUESTION_BYTES = 1_000;
/** Characters of each name in it. */
const MAX_NAME = 128;

/** A tool as its caller knows it, and what it is at its server. */
export interface ConfirmedTool {
  readonly listed: string;
  readonly template: string;
  readonly own: string;
}

/** The refusal of a call that its user must confirm. A class, so that no backend can make such an answer. */
export class ConfirmationRequired implements JsonRpcError {
  readonly code = RPC.internalError;
  /** The message for callers that cannot be asked. */
  readonly message: string;
  /** The tool to confirm, as the key of itemKey: a name may mean another tool later. */
  readonly tool: string;
  /** The form that asks the user. It has no fields. Source: MCP 2025-11-25 client/elicitation. */
  readonly request: { readonly method: 'elicitation/create'; readonly params: JsonObject };

  constructor(tool: ConfirmedTool, args: JsonFields[string]) {
    const name = shownName(tool.listed);
    this.message = `"${name}" needs confirmation by its user: call it with a client of MCP that can ask (elicitation).`;
    this.tool = itemKey(tool.template, tool.own);
    this.request = {
      method: 'elicitation/create',
      params: { message: question(tool, args), requestedSchema: { type: 'object', properties: {} } },
    };
  }
}

/** The text for the model when the user did not confirm. `action`: the one of the answer of the user, if it has one. */
export function notConfirmed(action: unknown): string {
  const what = action === 'decline' ? 'The user declined the call' : 'The user did not confirm the call';
  return `${what}: it was not made.`;
}

function question({ listed, template, own }: ConfirmedTool, args: JsonFields[string]): string {
  const origin = own === listed ? `of ${template}` : `(${shownName(own)} of ${template})`;
  const head = `Call "${shownName(listed)}" ${origin}`;
  const { bytes } = args instanceof JsonText ? args : JsonText.ofValue(args ?? {});
  if (bytes.equals(NO_ARGUMENTS)) return `${head} without arguments?`;
  const start = `${head} with these arguments? `;
  const shown = visible(cutBytes(bytes, MAX_QUESTION_BYTES));
  if (bytes.length <= MAX_QUESTION_BYTES && Buffer.byteLength(start + shown) <= MAX_QUESTION_BYTES)
    return start + shown;
  // The end may be what matters: the question says that there is more.
  const left = MAX_QUESTION_BYTES - Buffer.byteLength(start) - REST_BYTES;
  let kept = '';
  let keptBytes = 0;
  let sourceBytes = 0;
  for (const character of cutBytes(bytes, MAX_QUESTION_BYTES)) {
    const next = visible(character);
    keptBytes += Buffer.byteLength(next);
    if (keptBytes > left) break;
    kept += next;
    sourceBytes += Buffer.byteLength(character);
  }
  return `${start}${kept}… (${bytes.length - sourceBytes} bytes of arguments are not shown)`;
}

const NO_ARGUMENTS = Buffer.from('{}');
/** Bytes kept free for `… (n bytes of arguments are not shown)`. */
const REST_BYTES = 60;

function shownName(name: string): string {
  const text = visible(name.toWellFormed());
  return text.length <= MAX_NAME ? text : `${cutText(text, MAX_NAME)}…`;
}

/** Characters that cannot be seen, or that change the order of a text, as JSON escapes them. Breaks between values are spaces. */
function visible(text: string): string {
  return text.replace(/[\t\r\n]/g, ' ').replace(/[\p{C}\p{Zl}\p{Zp}]/gu, escaped);
}

function escaped(character: string): string {
  const units = Array.from({ length: character.length }, (_, at) => character.charCodeAt(at));
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('');
}
