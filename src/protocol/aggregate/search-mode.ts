// Search mode: the list has three tools of the gateway, with which a model finds, reads and calls all others, and the
// tools that are always listed.

import { type Observable, of } from 'rxjs';
import { compileGlobs, type GlobMatcher, groupsToMatch } from '../../domain/accounts/globs.ts';
import type { ExchangeRequest, SourcedEvent } from '../../domain/calls/exchange.ts';
import { isJsonObject, type JsonFields, type JsonObject, JsonText } from '../../domain/json/json.ts';
import { memberBytes, OPEN_BRACE } from '../../domain/json/json-scanner.ts';
import type { Client, Owner } from '../../domain/mcp/client.ts';
import { valueAt } from '../../domain/mcp/param-headers.ts';
import type { TaskScheduler } from '../../domain/time/task-scheduler.ts';
import { ownAnswer } from '../own-answers.ts';
import { type Listing, MAX_HINTS } from './lists/directory.ts';
import type { FindableTools, FindableToolsDeps } from './lists/findable-tools.ts';
import { isForPagesOnly, showsPages } from './uris/mcp-apps.ts';

/** Tools that one search returns. */
const DEFAULT_FOUND = 5;
const MAX_FOUND = 20;
/** Characters of the definitions in one answer: tools after that are named only. */
const MAX_FOUND_UNITS = 128 * 1024;
/** Characters of the description of `find_tools`: 300 tokens. */
const MAX_DESCRIPTION_UNITS = 1_000;
/** Characters of a name that an error repeats. */
const MAX_NAME_UNITS = 128;

const FIND = 'find_tools';
const DESCRIBE = 'describe_tool';
const CALL = 'call_tool';

/** The text about search for the instructions of the server. */
export const SEARCH_INSTRUCTIONS =
  `The list of tools is partial: this server has more than it lists. Find them with \`${FIND}\`, by what they do, before you ` +
  `conclude that there is none. Call a found tool by its name, or with \`${CALL}\`.`;

interface SearchModeOptions {
  readonly tools: FindableTools;
  readonly directory: FindableToolsDeps['directory'];
  /** Globs on listed names: tools that are listed, too. */
  readonly always: readonly string[];
  readonly scheduler: TaskScheduler;
}

/**
 * Makes the list of tools, and finds the real tool of a call. A found tool is also called by its own name; either way
 * the call is one of the real tool. Source: ADR 237.
 */
export class SearchMode {
  readonly #tools: FindableTools;
  readonly #directory: SearchModeOptions['directory'];
  readonly #isAlways: GlobMatcher;
  readonly #scheduler: SearchModeOptions['scheduler'];
  /** The listed tools, by the tools that are not listed: for hosts that show pages, and for others. */
  readonly #kept = {
    withPages: new WeakMap<readonly JsonObject[], Promise<readonly JsonObject[]>>(),
    withoutPages: new WeakMap<readonly JsonObject[], Promise<readonly JsonObject[]>>(),
  };

  constructor(options: SearchModeOptions) {
    this.#tools = options.tools;
    this.#directory = options.directory;
    this.#scheduler = options.scheduler;
    this.#isAlways = options.always.length === 0 ? () => false : compileGlobs(options.always);
  }

  /**
   * The listing in the place of all tools. Hosts that show pages keep tools for pages from models, and let pages call listed
   * tools.
   */
  async listed(listing: Listing, { owner, profile }: Client): Promise<Listing> {
    const showsAll = showsPages(profile);
    const kept = this.#kept[showsAll ? 'withPages' : 'withoutPages'];
    const items = kept.get(listing.items) ?? this.#itemsOf(listing.items, owner, showsAll);
    kept.set(listing.items, items);
    return { ...listing, result: undefined, items: await items };
  }

  async #itemsOf(
    tools: readonly JsonObject[],
    owner: Owner,
    showsAll: boolean,
  ): Promise<readonly JsonObject[]> {
    const always: JsonObject[] = [];
    /** Numbers of tools by template, in the order of the list. */
    const counts = new Map<string, number>();
    await this.#scheduler.each(
      groupsToMatch(tools, ({ name }) => String(name)),
      (group) => {
        for (const tool of group) {
          const name = String(tool.name);
          const isForPages = isForPagesOnly(tool);
          if ((isForPages && showsAll) || this.#isAlways(name)) always.push(tool);
          if (isForPages) continue;
          const template = this.#directory.knownTarget(name, owner)?.template ?? 'other servers';
          counts.set(template, (counts.get(template) ?? 0) + 1);
        }
      },
    );
    const own = [findTools(counts), DESCRIBE_TOOL, CALL_TOOL];
    const names = new Set(own.map(({ name }) => name));
    return [...own, ...always.filter(({ name }) => !names.has(String(name)))];
  }

  /**
   * The answer to a call of a tool of the gateway; or the call to carry out, with its arguments byte by byte. `signal`: aborted
   * when the client has left.
   */
  async resolved(
    request: ExchangeRequest,
    client: Client,
    signal: AbortSignal | undefined,
  ): Promise<Observable<SourcedEvent> | ExchangeRequest> {
    const { name, arguments: args } = request.params ?? {};
    switch (name) {
      case FIND:
        return this.#find(args, client, signal);
      case DESCRIBE:
        return this.#describe(args, client, signal);
      case CALL:
        return calledTool(request);
      default:
        return request;
    }
  }

  async #find(
    args: JsonFields[string],
    client: Client,
    signal: AbortSignal | undefined,
  ): Promise<Observable<SourcedEvent>> {
    const query = valueAt(args, 'query');
    const limit = valueAt(args, 'limit') ?? DEFAULT_FOUND;
    if (typeof query !== 'string' || query.trim() === '')
      return toolError(`${FIND} needs \`query\`: a few words that say what the tool should do.`);
    if (typeof limit !== 'number' || !Number.isInteger(limit) || limit < 1 || limit > MAX_FOUND)
      return toolError(`\`limit\` must be a whole number from 1 to ${MAX_FOUND}.`);
    const { index, texts, missing } = await this.#tools.of(client);
    const definitions: string[] = [];
    let units = 0;
    for (const name of await index.find(query, limit, { ownerId: client.owner.id, signal })) {
      const text = texts.get(name) ?? '{}';
      units += text.length;
      definitions.push(
        units <= MAX_FOUND_UNITS ? text : JSON.stringify({ name, definition: `see ${DESCRIBE}` }),
      );
    }
    const hint = definitions.length === 0 && { hint: 'No tool matches. Use other words, or fewer.' };
    const rest = JSON.stringify({ searched: texts.size, ...hint, ...(missing.length > 0 && { missing }) });
    return toolResult(`{"tools":[${definitions.join()}],${rest.slice(1)}`);
  }

  async #describe(
    args: JsonFields[string],
    client: Client,
    signal: AbortSignal | undefined,
  ): Promise<Observable<SourcedEvent>> {
    const name = valueAt(args, 'name');
    if (typeof name !== 'string') return toolError(`${DESCRIBE} needs \`name\`: the name of a tool.`);
    const { index, texts } = await this.#tools.of(client);
    const text = texts.get(name);
    if (text !== undefined) return toolResult(text);
    const near = (await index.find(name, MAX_HINTS, { ownerId: client.owner.id, signal })).join(', ');
    const shown = JSON.stringify(name.slice(0, MAX_NAME_UNITS).toWellFormed());
    return toolError(`There is no tool ${shown}.${near === '' ? '' : ` Similar ones: ${near}.`}`);
  }
}

/** The call that a call of `call_tool` stands for. */
function calledTool(request: ExchangeRequest): Observable<SourcedEvent> | ExchangeRequest {
  const { arguments: args } = request.params ?? {};
  const name = valueAt(args, 'name');
  if (typeof name !== 'string') return toolError(`${CALL} needs \`name\`: the name of a tool.`);
  const own = argumentsIn(args);
  if (own === 'invalid') return toolError('`arguments` must be an object: the arguments of the tool.');
  const { report, headers: _, ...rest } = request; // its headers mirror other arguments
  if (report !== undefined) {
    report.tool = name;
    report.arguments = own;
  }
  const { arguments: __, ...params } = request.params ?? {};
  return {
    ...rest,
    ...(report && { report }),
    params: { ...params, name, ...(own && { arguments: own }) },
  };
}

function argumentsIn(args: JsonFields[string]): JsonText | JsonObject | undefined | 'invalid' {
  if (args instanceof JsonText) {
    const bytes = memberBytes(args.bytes, 'arguments');
    if (bytes === undefined || bytes.equals(NULL)) return undefined;
    return bytes[0] === OPEN_BRACE ? JsonText.ofBytes(bytes) : 'invalid';
  }
  const own = isJsonObject(args) ? args.arguments : undefined;
  if (own === undefined || own === null) return undefined;
  return isJsonObject(own) ? own : 'invalid';
}

const NULL = Buffer.from('null');

/** A result of a tool of the gateway. `text`: JSON of an object. */
function toolResult(text: string): Observable<SourcedEvent> {
  const content = `[{"type":"text","text":${JSON.stringify(text)}}]`;
  return answer(JsonText.ofText(`{"content":${content},"structuredContent":${text}}`));
}

/** An error result that the model reads, so that it can correct its call. */
function toolError(text: string): Observable<SourcedEvent> {
  return answer(JsonText.ofValue({ content: [{ type: 'text', text }], isError: true }));
}

function answer(result: JsonText): Observable<SourcedEvent> {
  return of(ownAnswer({ kind: 'result', result }));
}

function findTools(counts: ReadonlyMap<string, number>): JsonObject {
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
  let description =
    `Searches the ${total} tools of this server, most of which are not listed, and returns the best matches with their complete ` +
    `schemas. Call a found tool by its name, or with ${CALL}. Tools by server: `;
  let left = counts.size;
  for (const [template, count] of counts) {
    const next = `${left === counts.size ? '' : ', '}${template} (${count})`;
    if (description.length + next.length > MAX_DESCRIPTION_UNITS) break;
    description += next;
    left -= 1;
  }
  description += left > 0 ? `, and ${left} more servers.` : '.';
  return {
    name: FIND,
    title: 'Find tools',
    description,
    inputSchema: {
      type: 'object',
      properties: {
        query: { type: 'string', description: 'What the tool should do, in a few words' },
        limit: { type: 'integer', minimum: 1, maximum: MAX_FOUND, description: `Default ${DEFAULT_FOUND}` },
      },
      required: ['query'],
    },
    annotations: { readOnlyHint: true, openWorldHint: false },
  };
}

const DESCRIBE_TOOL: JsonObject = {
  name: DESCRIBE,
  title: 'Describe a tool',
  description: `The complete definition of one tool that ${FIND} found.`,
  inputSchema: {
    type: 'object',
    properties: { name: { type: 'string', description: 'Name of the tool' } },
    required: ['name'],
  },
  annotations: { readOnlyHint: true, openWorldHint: false },
};

const CALL_TOOL: JsonObject = {
  name: CALL,
  title: 'Call a tool',
  description: `Calls a tool that ${FIND} found, for clients that call only listed tools.`,
  inputSchema: {
    type: 'object',
    properties: {
      name: { type: 'string', description: 'Name of the tool' },
      arguments: { type: 'object', description: 'Its arguments, as its schema says' },
    },
    required: ['name'],
  },
};
