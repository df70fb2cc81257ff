// Arguments of a tool that are repeated in headers, because its input schema asks for it (`x-mcp-header`): finding them and
// writing them. Source: MCP 2026-07-28 basic/transports/streamable-http#custom-headers-from-tool-parameters.

import { encodeHeader } from './header-text.ts';
import { isJsonObject } from './json.ts';

/** One argument that is repeated. */
export interface Declaration {
  /** Where it stands in the arguments. */
  readonly path: readonly string[];
  /** The header, in lower case. */
  readonly header: string;
  /** `string`, `boolean`, `integer` or, although that is against the rules, `number`. */
  readonly type: string;
}

/** What a tool asks for. */
export interface Declared {
  /** None when one of them breaks the rules, except for one about a number: that is written and checked, as SDKs do. */
  readonly declarations: readonly Declaration[];
  /** False when any breaks the rules: clients must not use the tool over HTTP. */
  readonly isValid: boolean;
}

/** How the headers begin. */
export const PARAM_PREFIX = 'mcp-param-';

/** Deepest schema that is looked through. What is below is taken for a schema that asks for nothing. */
const DEEPEST = 32;

/** Looks through the input schema of a tool. */
export function declaredBy(inputSchema: unknown): Declared {
  const found: Declaration[] = [];
  const isSound = collect(inputSchema, [], true, found);
  const names = new Set(found.map(({ header }) => header));
  if (!isSound || names.size !== found.length) return { declarations: [], isValid: false };
  return { declarations: found, isValid: found.every(({ type }) => type !== 'number') };
}

/** The headers for a call with these arguments, in lower case; undefined when there are none. */
export function paramHeaders(
  declarations: readonly Declaration[],
  args: unknown,
): Readonly<Record<string, string>> | undefined {
  let headers: Record<string, string> | undefined;
  for (const { header, path } of declarations) {
    const text = headerTextOf(valueAt(args, path));
    if (text === undefined) continue;
    headers ??= {};
    headers[header] = encodeHeader(text);
  }
  return headers;
}

/** Whether there is a value to be repeated that has no text: whoever waits for its header waits in vain. */
export function isUnwritable(declarations: readonly Declaration[], args: unknown): boolean {
  return declarations.some(({ path }) => {
    const value = valueAt(args, path);
    return value !== undefined && value !== null && headerTextOf(value) === undefined;
  });
}

/** Bytes that headers take in a request of HTTP/1.1, where they are ASCII. */
export function headerBytes(headers: Readonly<Record<string, string>>): number {
  let bytes = 0;
  for (const [name, value] of Object.entries(headers)) bytes += name.length + value.length + AROUND_BYTES;
  return bytes;
}

/** What stands at a place of the arguments, if anything does. */
export function valueAt(args: unknown, path: readonly string[]): unknown {
  let value = args;
  for (const key of path) value = isJsonObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
  return value;
}

/** How a value is written; undefined for what is not repeated: no value, no primitive, no number that is exact. */
export function headerTextOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (typeof value === 'boolean') return String(value);
  if (typeof value !== 'number') return undefined;
  return Number.isInteger(value) && !Number.isSafeInteger(value) ? undefined : String(value);
}

/** Looks through a schema. False when something is declared where, or as, it must not be. */
function collect(
  schema: unknown,
  path: readonly string[],
  isReachable: boolean,
  found: Declaration[],
): boolean {
  if (!isJsonObject(schema) || path.length > DEEPEST) return true;
  const { 'x-mcp-header': name, properties, type } = schema;
  if (name !== undefined) {
    if (!isReachable || path.length === 0 || typeof name !== 'string' || !TOKEN.test(name)) return false;
    if (typeof type !== 'string' || !PRIMITIVES.has(type)) return false;
    found.push({ path, header: PARAM_PREFIX + name.toLowerCase(), type });
  }
  const isSound = ([key, child]: [string, unknown]) => collect(child, [...path, key], isReachable, found);
  if (isJsonObject(properties) && !Object.entries(properties).every(isSound)) return false;
  return ELSEWHERE.every((keyword) =>
    schemasIn(schema[keyword], keyword).every((child) => collect(child, [...path, keyword], false, found)),
  );
}

function schemasIn(value: unknown, keyword: string): readonly unknown[] {
  if (Array.isArray(value)) return value;
  return BY_NAME.has(keyword) && isJsonObject(value) ? Object.values(value) : [value];
}

/** The colon with its space, and the end of the line. */
const AROUND_BYTES = 4;
/** Source: RFC 9110 section 5.6.2. */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const PRIMITIVES: ReadonlySet<string> = new Set(['string', 'integer', 'boolean', 'number']);
/** Keywords below which nothing may be declared, since nobody can tell where such a value would be. */
const ELSEWHERE = [
  'items',
  'prefixItems',
  'contains',
  'additionalProperties',
  'unevaluatedProperties',
  'unevaluatedItems',
  'propertyNames',
  'patternProperties',
  'dependentSchemas',
  'oneOf',
  'anyOf',
  'allOf',
  'not',
  'if',
  'then',
  'else',
  '$defs',
  'definitions',
] as const;
/** Those of them that hold schemas by name. */
const BY_NAME: ReadonlySet<string> = new Set([
  'patternProperties',
  'dependentSchemas',
  '$defs',
  'definitions',
]);
