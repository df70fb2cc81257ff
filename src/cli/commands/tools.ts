// `stagedoor tool list | call`: the tools of a template and their arguments, and a call of one.

import { messageOf } from '../../domain/errors/errors.ts';
import { isJsonObject, jsonIn, parseExact } from '../../domain/json/json.ts';
import { LIMITS } from '../../domain/limits.ts';
import { didYouMean } from '../../domain/nearest.ts';
import { type Command, pairsOf } from '../command.ts';
import { CommandFailure, UsageError } from '../failures.ts';
import { indentedJson, printable, printResult, type TableColumns, table } from '../output.ts';
import { answerFault, answerIn, elementsOf, type Fields, fields, objectsOf } from '../remote/answers.ts';
import { CLIENT_OPTIONS } from '../remote/client-options.ts';
import { requireGateway } from '../remote/find-gateway.ts';
import { GATEWAY_ANSWER_MS, type Remote, type RemoteEvent } from '../remote/remote.ts';
import { ofTemplate } from '../remote/similar-names.ts';
import type { Terminal } from '../terminal.ts';

export const toolList: Command = {
  name: 'tool list',
  positionals: '<template>',
  summary: 'List the tools of a template and their arguments; brackets mark optional ones',
  options: CLIENT_OPTIONS,
  examples: ['tool list everything', 'tool list everything --json'],
  run: async (input, terminal) => {
    const template = input.positional(0);
    const gateway = await requireGateway(input, terminal);
    const path = `/mcp/${encodeURIComponent(template)}/tools/list`;
    const answer = await ofTemplate(gateway, template, () => gateway.request(path));
    return printResult(input, terminal, answer, () => {
      const tools = objectsOf(fields(answer).tools);
      const columns: TableColumns<Fields> = {
        TOOL: 'name',
        ARGUMENTS: argumentsOf,
        DESCRIPTION: 'description',
      };
      return tools.length === 0 ? `${template} has no tools` : table(terminal, columns, tools);
    });
  },
};

/** The arguments of a tool: `a:number [b:string]`. */
function argumentsOf({ parameters }: Fields): string {
  const { properties, required } = fields(parameters);
  return Object.entries(fields(properties))
    .map(([name, schema]) => {
      const { type } = fields(schema);
      const written = `${name}:${Array.isArray(type) ? type.join('|') : type}`;
      return elementsOf(required).includes(name) ? written : `[${written}]`;
    })
    .join(' ');
}

export const toolCall: Command = {
  name: 'tool call',
  positionals: '<template> <tool> [...arguments]',
  summary:
    'Call a tool; its arguments are one JSON object or key=value words; exit code 1 when the tool reports an error',
  options: CLIENT_OPTIONS,
  examples: [
    'tool call everything echo message=hello',
    'tool call everything get-sum \'{"a": 2, "b": 3}\'',
    'tool call everything echo message=hello --json',
  ],
  run: async (input, terminal) => {
    const [template, tool] = [input.positional(0), input.positional(1)];
    const given = readArguments(input.positionals.slice(2));
    const gateway = await requireGateway(input, terminal);
    const path = `/mcp/${encodeURIComponent(template)}/tools`;
    const value = await ofTemplate(
      gateway,
      template,
      async () => {
        const args =
          typeof given === 'string' ? given : await argumentsText(given, gateway, { path, tool }, terminal);
        const text = `{"name":${JSON.stringify(tool)},"arguments":${args}}`;
        return terminal.busy(`calling ${tool} of ${template}`, (progress) =>
          resultOf(gateway, `${path}/call`, text, (event) =>
            progress(`${tool}: ${printable(progressTextOf(event))}`),
          ),
        );
      },
      { tool },
    );
    const hasFailed = value.isError === true;
    if (input.has('json')) terminal.print(indentedJson(value));
    else if (hasFailed) {
      throw new CommandFailure([`${tool} of ${template} reports an error`, ...linesOf(value)].join('\n'));
    } else terminal.print(linesOf(value).join('\n'));
    return hasFailed ? 1 : 0;
  },
};

async function resultOf(
  gateway: Remote,
  path: string,
  text: string,
  onNotification: (event: RemoteEvent) => void,
): Promise<Fields> {
  let result: Fields | undefined;
  await gateway.follow(path, { text, longestMs: LIMITS.callHardBoundMs + GATEWAY_ANSWER_MS }, (event) => {
    if (event.name !== 'result') return onNotification(event);
    const value = answerIn(event.data, parseExact);
    if (value === undefined)
      throw new CommandFailure(`the result from ${gateway.url} ${answerFault(event.data)}`);
    result = fields(value);
  });
  if (result === undefined) throw new CommandFailure(`${gateway.url} ended the call without a result`);
  return result;
}

/** `2 of 3 step 2` for progress; the text of a log message; else the name of the notification. */
function progressTextOf({ name, data }: RemoteEvent): string {
  const { method, params } = fields(answerIn(data));
  const { progress, total, message, data: words } = fields(params);
  if (name === 'log') return typeof words === 'string' ? words : JSON.stringify(words);
  if (name !== 'progress') return String(method);
  const share = total === undefined ? String(progress) : `${progress} of ${total}`;
  return message === undefined ? share : `${share} ${message}`;
}

function linesOf({ content, structuredContent }: Fields): string[] {
  const parts = objectsOf(content).map(partText);
  if (parts.length > 0 || structuredContent === undefined) return parts;
  return [JSON.stringify(structuredContent, null, 2)];
}

function partText(part: Fields): string {
  const { type, text, data, mimeType } = part;
  switch (type) {
    case 'text':
      return String(text);
    case 'image':
    case 'audio':
      return `[${type} ${mimeType}, ${bytesText(data)}]`;
    case 'resource': {
      const { uri, text: words, blob, mimeType: kind = 'data' } = fields(part.resource);
      return typeof words === 'string' ? words : `[${kind}, ${bytesText(blob)}: ${uri}]`;
    }
    case 'resource_link':
      return `[link ${part.name}: ${part.uri}]`;
    default:
      return JSON.stringify(part);
  }
}

function bytesText(base64: unknown): string {
  return `${typeof base64 === 'string' ? Buffer.byteLength(base64, 'base64') : 0} bytes`;
}

// --- arguments: one JSON object, or key=value words whose values are JSON where the schema of the tool allows it

/** Reads the words after the tool's name: JSON text, or `key=value` words. Throws UsageError. */
function readArguments(words: readonly string[]): string | ReadonlyMap<string, string> {
  const [first = '{}', second] = words;
  // A single word that begins like an object is never read as a pair: it may be JSON with an error.
  if (second === undefined && (/^\s*[{"]/.test(first) || jsonIn(first) !== undefined))
    return checkedObject(first);
  return pairsOf('argument', words, { form: 'one JSON object or key=value' });
}

/** JSON text of the pairs by the schema of the tool; numbers stay as written. */
async function argumentsText(
  pairs: ReadonlyMap<string, string>,
  gateway: Remote,
  { path, tool }: { readonly path: string; readonly tool: string },
  terminal: Pick<Terminal, 'complain'>,
): Promise<string> {
  const tools = objectsOf(fields(await gateway.request(`${path}/list`)).tools);
  // The gateway refuses the call of an unknown tool.
  const { parameters } = tools.find(({ name }) => name === tool) ?? {};
  const properties = fields(fields(parameters).properties);
  const members = [...pairs].map(([key, value]) => {
    const advice = Object.hasOwn(properties, key) ? undefined : didYouMean(key, Object.keys(properties));
    if (advice !== undefined) terminal.complain(printable(`${tool} has no argument "${key}"; ${advice}`));
    const types = Object.hasOwn(properties, key) ? typesOf(properties[key], fields(parameters)) : [];
    const type = jsonTypeOf(value);
    const isJson = types.includes(type) || (types.includes('number') && type === 'integer');
    return `${JSON.stringify(key)}:${isJson ? value : JSON.stringify(value)}`;
  });
  return `{${members.join(',')}}`;
}

function checkedObject(text: string): string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new UsageError(`the arguments must be one JSON object: ${messageOf(error)}`, { cause: error });
  }
  if (isJsonObject(value)) return text;
  throw new UsageError('the arguments must be one JSON object such as {"key": "value"}');
}

/** Every type that a schema in `whole` allows, including alternatives, except `string`: text needs no conversion. */
function typesOf(schema: unknown, whole: Fields, seen = new Set<unknown>()): readonly string[] {
  if (seen.has(schema)) return []; // a definition may refer to itself
  seen.add(schema);
  const { type, anyOf, oneOf, allOf, enum: values, $ref } = fields(schema);
  const [, section = '', name = ''] = /^#\/(\$defs|definitions)\/(.+)$/.exec(String($ref)) ?? [];
  const others = [fields(whole[section])[name], ...[anyOf, oneOf, allOf].flatMap(elementsOf)];
  return [
    ...[type].flat().map(String),
    ...elementsOf(values).map((value) => jsonTypeOf(JSON.stringify(value) ?? '')),
    ...others.flatMap((other) => typesOf(other, whole, seen)),
  ].filter((each) => each !== 'string');
}

/** The JSON Schema type of the value; empty when the text is not JSON. */
function jsonTypeOf(text: string): string {
  const value = jsonIn(text);
  if (value === undefined) return '';
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number';
  return typeof value;
}
