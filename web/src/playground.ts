// The calls of the playground: the available items, the running call with its progress and questions, and
// earlier calls. Arguments may be secrets: the history is only in memory, and ends with the page.

import { signal } from '@preact/signals';
import { ApiError, get, messageOf, urlOf } from './api.ts';
import { continued, type JsonObject, type McpAnswer, type Reply, repeated, request } from './mcp.ts';
import { formSchema, labelOf, type Schema } from './schema.ts';

export type ItemKind = 'tools' | 'resources' | 'prompts';

/** A tool to call, a resource to read or a prompt to get. */
export interface Item {
  readonly kind: ItemKind;
  /** Name of a tool or prompt, URI of a resource, URI template of a resource template. */
  readonly id: string;
  readonly title: string;
  readonly description: string;
  /** Schema of its arguments. */
  readonly schema: Schema;
  /** The statements of a tool about its effects, in words. */
  readonly traits?: readonly string[];
  /** Schema of the structured content of a tool. */
  readonly outputSchema?: Schema | undefined;
}

/** A call, from its start to its end. */
export interface Run {
  readonly id: number;
  readonly template: string;
  readonly item: Item;
  readonly values: JsonObject;
  readonly startedAt: number;
  readonly progress:
    | { readonly done: number; readonly total: number | undefined; readonly text: string }
    | undefined;
  /** Log messages of the server, oldest first. */
  readonly messages: readonly string[];
  readonly answer: McpAnswer | undefined;
  readonly error: string | undefined;
  /** Undefined while it runs or waits for answers. */
  readonly durationMs: number | undefined;
  /** Closes the connection of the call, which cancels it at the server. */
  readonly cancellation: AbortController;
}

const KEPT_RUNS = 50;
const KEPT_MESSAGES = 200;
/** The most pages of one list: the list of a server may never end. */
const MAX_PAGES = 100;

/** The runs, newest first. */
export const history = signal<readonly Run[]>([]);
let lastId = 0;

export async function listItems(template: string, kind: ItemKind): Promise<readonly Item[]> {
  if (kind === 'tools') return (await listTools(template)).map(toolItem);
  if (kind === 'prompts') {
    const { prompts } = await get<{ prompts: JsonObject[] }>(`mcp/${template}/prompts/list`);
    return prompts.map(promptItem);
  }
  const [{ resources }, { resourceTemplates }] = await Promise.all([
    get<{ resources: JsonObject[] }>(`mcp/${template}/resources/list`),
    get<{ resourceTemplates: JsonObject[] }>(`mcp/${template}/resources/templates/list`),
  ]);
  return [...resources.map(resourceItem), ...resourceTemplates.map(resourceTemplateItem)];
}

/** Lists the tools through the endpoint of the calls: servers may list more tools to a client that answers questions. */
async function listTools(template: string): Promise<readonly JsonObject[]> {
  const tools: JsonObject[] = [];
  let cursor: unknown;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const { result } = await request({ template, method: 'tools/list', params: { cursor } });
    if (Array.isArray(result.tools))
      tools.push(...result.tools.filter((tool) => firstText(Object(tool).name) !== ''));
    cursor = result.nextCursor;
    if (typeof cursor !== 'string') break;
  }
  return tools;
}

/** Starts a call, which is then the newest of `history`. */
export async function start(template: string, item: Item, values: JsonObject): Promise<void> {
  lastId += 1;
  const run: Run = {
    ...{ id: lastId, template, item, values, startedAt: Date.now() },
    ...{ progress: undefined, messages: [], answer: undefined, error: undefined, durationMs: undefined },
    cancellation: new AbortController(),
  };
  history.value = [run, ...history.value].slice(0, KEPT_RUNS);
  await send(run, paramsOf(item, values));
}

/** Continues a call whose questions are answered. */
export async function reply(
  run: Run,
  replies: Readonly<Record<string, Reply>>,
  isLeaving = false,
): Promise<void> {
  if (run.answer === undefined) return;
  const params = continued(paramsOf(run.item, run.values), run.answer, replies);
  update(run.id, { answer: undefined });
  await send(run, params, isLeaving);
}

/** Cancels the calls whose questions have no answer, and the running ones, because the user has left their page. */
export function abandonRuns(): void {
  for (const run of history.peek()) {
    if (run.durationMs !== undefined) continue;
    const { answer } = run;
    if (answer === undefined) {
      run.cancellation.abort();
      continue;
    }
    const replies = answer.questions.map(({ key }): [string, Reply] => [key, { action: 'cancel' }]);
    void reply(run, Object.fromEntries(replies), true);
  }
}

/** The same call for a shell, on the plain HTTP API. */
export function curlOf(template: string, item: Item, values: JsonObject): string {
  const body = JSON.stringify(paramsOf(item, values));
  return [
    `curl -X POST '${urlOf(`mcp/${template}/${METHODS[item.kind]}`)}'`,
    "-H 'Content-Type: application/json'",
    '-H "X-API-Key: $STAGEDOOR_API_KEY"',
    `--data '${body.replaceAll("'", "'\\''")}'`,
  ].join(' \\\n  ');
}

const METHODS = { tools: 'tools/call', resources: 'resources/read', prompts: 'prompts/get' } as const;

async function send(run: Run, params: JsonObject, isLeaving = false): Promise<void> {
  const { id, template, item, values, startedAt, cancellation } = run;
  try {
    const answer = await request({
      template,
      method: METHODS[item.kind],
      params,
      name: String(params.name ?? params.uri),
      headers: item.kind === 'tools' ? repeated(item.schema, values) : {},
      signal: cancellation.signal,
      isLeaving,
      onNotification: (method, notified) => note(id, method, notified),
    });
    const isOver = answer.questions.length === 0;
    update(id, { answer, durationMs: isOver ? Date.now() - startedAt : undefined });
  } catch (thrown) {
    const error = cancellation.signal.aborted ? 'You cancelled the call.' : textOf(thrown);
    update(id, { error, durationMs: Date.now() - startedAt });
  }
}

function textOf(thrown: unknown): string {
  const code = thrown instanceof ApiError && thrown.code !== '' ? ` (${thrown.code})` : '';
  return `${messageOf(thrown)}${code}`;
}

function note(id: number, method: string, params: JsonObject): void {
  const run = history.value.find((each) => each.id === id);
  if (run === undefined) return;
  if (method === 'notifications/progress') {
    const { progress, total, message = '' } = params;
    const all = typeof total === 'number' ? total : undefined;
    update(id, {
      progress: { done: typeof progress === 'number' ? progress : 0, total: all, text: firstText(message) },
    });
  } else if (method === 'notifications/message') {
    const { data, level = 'info' } = params;
    const text = `${level}: ${typeof data === 'string' ? data : JSON.stringify(data)}`;
    update(id, { messages: [...run.messages, text].slice(-KEPT_MESSAGES) });
  }
}

function update(id: number, changes: Partial<Run>): void {
  history.value = history.value.map((run) => (run.id === id ? { ...run, ...changes } : run));
}

function paramsOf({ kind, id }: Item, values: JsonObject): JsonObject {
  if (kind === 'resources') return { uri: expanded(id, values) };
  return { name: id, arguments: values };
}

/** A URI template of level 1, and the other operators with one value each. Source: RFC 6570. */
function expanded(uri: string, values: JsonObject): string {
  return uri.replace(VARIABLE, (_, operator: string, name: string) => {
    const value = values[name];
    if (value === undefined || value === '') return '';
    const text =
      operator === '+' || operator === '#' ? encodeURI(labelOf(value)) : encodeURIComponent(labelOf(value));
    if (operator === '?' || operator === '&') return `${operator}${name}=${text}`;
    return `${operator === '+' ? '' : operator}${text}`;
  });
}

const VARIABLE = /\{([+#./?&]?)([\w%.]+)[^}]*\}/g;

/** The first text of these values of a server, which may be anything. */
function firstText(...values: readonly unknown[]): string {
  return String(values.find((value) => typeof value === 'string') ?? '');
}

function toolItem(tool: JsonObject): Item {
  const { name, title, description, inputSchema, outputSchema, annotations } = tool;
  return {
    kind: 'tools',
    id: firstText(name),
    title: firstText(title, Object(annotations).title, name),
    description: firstText(description),
    schema: formSchema(Object(inputSchema)),
    traits: traitsOf(Object(annotations)),
    outputSchema: outputSchema === undefined ? undefined : Object(outputSchema),
  };
}

/** The hints of a tool that are stated. Source: MCP 2026-07-28, ToolAnnotations. */
function traitsOf(annotations: JsonObject): readonly string[] {
  return Object.entries(HINTS).flatMap(([hint, [yes, no]]) => {
    const value = annotations[hint];
    return typeof value === 'boolean' ? [value ? yes : no] : [];
  });
}

const HINTS = {
  readOnlyHint: ['read-only', 'changes things'],
  destructiveHint: ['may destroy data', 'only adds'],
  idempotentHint: ['safe to repeat', 'not safe to repeat'],
  openWorldHint: ['reaches other systems', 'closed system'],
} as const;

function promptItem({ name, title, description, arguments: args }: JsonObject): Item {
  const entries: JsonObject[] = Array.isArray(args) ? args.map(Object) : [];
  return {
    kind: 'prompts',
    id: firstText(name),
    title: firstText(title, name),
    description: firstText(description),
    schema: {
      type: 'object',
      properties: Object.fromEntries(
        entries.map((each) => [firstText(each.name), { type: 'string', description: each.description }]),
      ),
      required: entries.filter(({ required }) => required === true).map((each) => firstText(each.name)),
    },
  };
}

function resourceItem({ uri, name, title, description, mimeType }: JsonObject): Item {
  return {
    kind: 'resources',
    id: firstText(uri),
    title: firstText(title, name, uri),
    description: firstText(description, mimeType),
    schema: {},
  };
}

function resourceTemplateItem({ uriTemplate, name, title, description }: JsonObject): Item {
  const names = [...firstText(uriTemplate).matchAll(VARIABLE)].map(([, , variable = '']) => variable);
  return {
    kind: 'resources',
    id: firstText(uriTemplate),
    title: firstText(title, name, uriTemplate),
    description: firstText(description),
    schema: {
      type: 'object',
      properties: Object.fromEntries(names.map((variable) => [variable, { type: 'string' }])),
      required: names,
    },
  };
}
