// The arguments of a tool as they are written on the command line: one JSON object, or `key=value` words whose values
// are JSON where the tool's schema says so.

import { nearMiss } from '../config/nearest.ts';
import { ownCommand } from '../domain/own-command.ts';
import { type Fields, fields } from './answers.ts';
import { CommandFailure, UsageError } from './failures.ts';

/** What was written: JSON text of an object, or pairs that the schema has to explain. */
export type WrittenArguments =
  | { readonly kind: 'json'; readonly text: string }
  | { readonly kind: 'pairs'; readonly pairs: ReadonlyMap<string, string> };

/** Reads the words after the tool's name; `readAll` is for `-`. Throws UsageError. */
export async function readArguments(
  words: readonly string[],
  readAll: () => Promise<string | undefined>,
): Promise<WrittenArguments> {
  // Without a word there is nothing that a schema would explain.
  const [first = '{}'] = words;
  if (words.length < 2 && first === '-') {
    const text = await readAll();
    if (text === undefined) throw new UsageError('standard input is too long, or not UTF-8');
    return { kind: 'json', text: checkedObject(text, 'standard input') };
  }
  // A key may begin with a bracket, but then a `=` would have to follow in JSON that is none.
  if (words.length < 2 && /^\s*[{["]/.test(first)) {
    return { kind: 'json', text: checkedObject(first, 'the arguments') };
  }
  const pairs = new Map<string, string>();
  for (const word of words) {
    const [, key, value] = /^([^=]+)=(.*)$/s.exec(word) ?? [];
    if (key === undefined || value === undefined) {
      throw new UsageError(
        `arguments are one JSON object, - for standard input, or key=value, not "${word}"`,
      );
    }
    if (pairs.has(key)) throw new UsageError(`the argument ${key} is given twice`);
    pairs.set(key, value);
  }
  return { kind: 'pairs', pairs };
}

/** JSON text of the pairs, for this tool: numbers stay as they were written. */
export function argumentsText(pairs: ReadonlyMap<string, string>, tool: Fields): string {
  const properties = fields(fields(tool.parameters).properties);
  const members = [...pairs].map(([key, value]) => {
    const types = Object.hasOwn(properties, key) ? typesOf(properties[key]) : [];
    const isJson = types.includes(jsonTypeOf(value)) || (types.includes('number') && isInteger(value));
    return `${JSON.stringify(key)}:${isJson ? value : JSON.stringify(value)}`;
  });
  return `{${members.join(',')}}`;
}

/** The tool of that name in the answer of tools/list. Throws CommandFailure with the nearest name. */
export function findTool(answer: unknown, template: string, name: string): Fields {
  const tools = toolsOf(answer);
  const tool = tools.find((each) => each.name === name);
  if (tool !== undefined) return tool;
  const meant = nearMiss(
    name,
    tools.map((each) => String(each.name)),
  );
  const advice =
    meant === undefined ? `see ${ownCommand(`gateway tools ${template}`)}` : `did you mean "${meant}"?`;
  throw new CommandFailure(`${template} has no tool "${name}"; ${advice}`);
}

/** The tools of an answer of tools/list. */
export function toolsOf(answer: unknown): readonly Fields[] {
  const { tools } = fields(answer);
  return Array.isArray(tools) ? tools.map(fields) : [];
}

function checkedObject(text: string, what: string): string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new UsageError(
      `${what} must be one JSON object: ${error instanceof Error ? error.message : error}`,
      {
        cause: error,
      },
    );
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return text;
  throw new UsageError(`${what} must be one JSON object such as {"key": "value"}`);
}

/** Every type a schema allows, also by its alternatives. Text is always text, so `string` is not asked for. */
function typesOf(schema: unknown): readonly string[] {
  const { type, anyOf, oneOf, enum: values } = fields(schema);
  return [
    ...(Array.isArray(type) ? type.map(String) : [String(type)]),
    ...(Array.isArray(values) ? values.map((value) => jsonTypeOf(JSON.stringify(value) ?? '')) : []),
    ...[anyOf, oneOf].flatMap((branches) => (Array.isArray(branches) ? branches.flatMap(typesOf) : [])),
  ].filter((each) => each !== 'string');
}

/** What JSON Schema calls the value that the text is; empty when it is no JSON. */
function jsonTypeOf(text: string): string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return '';
  }
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number';
  return typeof value;
}

function isInteger(text: string): boolean {
  return jsonTypeOf(text) === 'integer';
}
