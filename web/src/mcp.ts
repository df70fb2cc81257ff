// A client of the MCP endpoint of a template, of revision 2026-07-28: requests are independent, progress and
// log messages come on the stream of the answer, and a server that needs input answers with questions.

import { ApiError, send } from './api.ts';
import { isLongNumber, readJson } from './json.ts';
import { formSchema, labelOf } from './schema.ts';
import { readEvents } from './sse.ts';

export type JsonObject = Readonly<Record<string, unknown>>;

const PREFIX = 'io.modelcontextprotocol/';
const REVISION = '2026-07-28';

/** A question of a server to the user, answered by a form. */
export interface Question {
  readonly key: string;
  readonly message: string;
  readonly schema: JsonObject;
}

/** The answer to one question; `content` belongs to `accept`. */
export interface Reply {
  readonly action: 'accept' | 'decline' | 'cancel';
  readonly content?: unknown;
}

export interface McpAnswer {
  readonly result: JsonObject;
  /** The instance that answered, if the gateway names it. */
  readonly instance: string | undefined;
  /** Questions of the server before its answer: the same request continues with `continued`. */
  readonly questions: readonly Question[];
}

export interface McpRequest {
  readonly template: string;
  readonly method: string;
  readonly params?: JsonObject;
  /** `name` or `uri` of the parameters, which a header repeats. */
  readonly name?: string;
  /** Arguments that headers repeat because the tool requires it; see `repeated`. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly onNotification?: (method: string, params: JsonObject) => void;
  readonly signal?: AbortSignal;
  /** The page may be closed before the answer. */
  readonly isLeaving?: boolean;
}

/** Sends a request and waits for its result. Rejects with ApiError for an error of the server or of the gateway. */
export async function request(asked: McpRequest): Promise<McpAnswer> {
  const {
    template,
    method,
    params = {},
    name,
    headers = {},
    onNotification,
    signal,
    isLeaving = false,
  } = asked;
  const id = crypto.randomUUID();
  const meta = {
    [`${PREFIX}protocolVersion`]: REVISION,
    [`${PREFIX}clientInfo`]: { name: 'stagedoor-console', version: '1' },
    [`${PREFIX}clientCapabilities`]: { elicitation: { form: {} } },
    [`${PREFIX}logLevel`]: 'info',
    progressToken: id,
  };
  const response = await send(
    'POST',
    `mcp/${template}`,
    { jsonrpc: '2.0', id, method, params: { ...params, _meta: meta } },
    {
      headers: {
        Accept: 'application/json, text/event-stream',
        'MCP-Protocol-Version': REVISION,
        'Mcp-Method': method,
        ...(name === undefined ? {} : { 'Mcp-Name': headerText(name) }),
        ...headers,
      },
      signal,
      isLeaving,
    },
  );
  const instance = response.headers.get('x-instance-id') ?? undefined;
  const message = await finalMessage(response, onNotification);
  const { result, error } = message;
  if (error !== undefined) throw new ApiError(String(Object(error).message), 200, String(Object(error).code));
  const answer: JsonObject = Object(result);
  return { result: answer, instance, questions: questionsOf(answer) };
}

/** The parameters of a request that continues after its questions were answered. */
export function continued(
  params: JsonObject,
  { result }: McpAnswer,
  replies: Readonly<Record<string, Reply>>,
): JsonObject {
  return { ...params, inputResponses: replies, requestState: result.requestState };
}

/** The headers for the arguments whose property in the schema has `x-mcp-header`. */
export function repeated(schema: unknown, value: unknown): Record<string, string> {
  const headers: Record<string, string> = {};
  const properties: JsonObject = Object(Object(schema).properties);
  for (const [name, property] of Object.entries(properties)) {
    const part = Object(value)[name];
    const header = Object(property)['x-mcp-header'];
    const isPlain = ['string', 'number', 'boolean'].includes(typeof part) || isLongNumber(part);
    if (typeof header === 'string' && isPlain) headers[`Mcp-Param-${header}`] = headerText(labelOf(part));
    Object.assign(headers, repeated(property, part));
  }
  return headers;
}

async function finalMessage(
  response: Response,
  onNotification: McpRequest['onNotification'],
): Promise<JsonObject> {
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') ?? false;
  if (!isStream || response.body === null) return Object(readJson(await response.text()));
  for await (const { data } of readEvents(response.body)) {
    if (data === '') continue;
    const message: JsonObject = Object(readJson(data));
    if (typeof message.method !== 'string') return message;
    onNotification?.(message.method, Object(message.params));
  }
  throw new ApiError('The connection ended before the answer.', 0);
}

function questionsOf({ resultType, inputRequests }: JsonObject): readonly Question[] {
  if (resultType !== 'input_required') return [];
  return Object.entries(Object(inputRequests)).map(([key, asked]) => {
    const { message = '', requestedSchema = {} } = Object(Object(asked).params);
    return { key, message, schema: formSchema(Object(requestedSchema)) };
  });
}

/** Text for a header, with the encoding of MCP unless it is plain ASCII. */
function headerText(text: string): string {
  if (/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !text.startsWith('=?base64?')) return text;
  const bytes = String.fromCharCode(...new TextEncoder().encode(text));
  return `=?base64?${btoa(bytes)}?=`;
}
