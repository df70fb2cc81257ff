// Arguments of a tool that are mirrored in headers because its input schema declares it (`x-mcp-header`): reads
// the declarations and writes the headers. Source: MCP 2026-07-28
// basic/transports/streamable-http#custom-headers-from-tool-parameters.

import { isJsonObject, type JsonFields, JsonText } from '../json/json.ts';
import { memberBytes, membersOf, OPEN_BRACE, OPEN_BRACKET } from '../json/json-scanner.ts';
import { cutText, encodeHeader } from '../text.ts';

export interface Declaration {
  readonly path: readonly string[];
  /** The header, in lower case. */
  readonly header: string;
  /** `string`, `boolean`, `integer`, or `number`, although that breaks the rules. */
  readonly type: string;
}

interface Declared {
  /** None when one of them breaks the rules, except by the type `number`, which is written and checked as in the SDKs. */
  readonly declarations: readonly Declaration[];
  /**
   * The fault of a declaration that breaks the rules, as a clause for operators; undefined when none does. Clients
   * must not use such a tool over HTTP. The clause names paths of the schema, and is bounded.
   */
  readonly fault: string | undefined;
}

export const PARAM_PREFIX = 'mcp-param-';

/** The deepest schema that is read. Deeper declarations are ignored. */
const DEEPEST = 32;
/** Memory of a declaration, or of an argument with declarations in it, besides its texts, about. */
const BYTES_PER_NODE = 256;

export function declaredBy(inputSchema: unknown): Declared {
  const found: Declaration[] = [];
  const fault = collect(inputSchema, [], true, found) ?? repetitionIn(found);
  if (fault !== undefined) return { declarations: [], fault };
  const number = found.find(({ type }) => type === 'number');
  return { declarations: found, fault: number && wrongType(number.path) };
}

/** The declarations of a tool by their paths: the arguments of a call are read once, however many there are. */
export class DeclaredArguments {
  readonly #root: SchemaNode = { below: new Map() };
  /** The bytes that they take in memory, about. */
  readonly bytes: number;

  constructor(declarations: readonly Declaration[]) {
    let bytes = 0;
    for (const declaration of declarations) {
      let node = this.#root;
      for (const key of declaration.path) {
        let next = node.below.get(key);
        if (next === undefined) {
          next = { below: new Map() };
          node.below.set(key, next);
          bytes += BYTES_PER_NODE + 2 * key.length;
        }
        node = next;
      }
      node.declaration = declaration;
      bytes += BYTES_PER_NODE + 2 * declaration.header.length;
    }
    this.bytes = bytes;
  }

  get isEmpty(): boolean {
    return this.#root.below.size === 0;
  }

  /** The headers for a call with these arguments, in lower case; undefined when there are none. */
  headersFor(args: JsonFields[string]): Readonly<Record<string, string>> | undefined {
    let headers: Record<string, string> | undefined;
    for (const [{ header }, value] of this.in(args)) {
      const text = headerTextOf(value);
      if (text === undefined) continue;
      headers ??= {};
      headers[header] = encodeHeader(text);
    }
    return headers;
  }

  /** The declared arguments of a call, with their values. Those that are kept as text are scanned, not parsed. */
  *in(args: JsonFields[string], node = this.#root): Generator<readonly [Declaration, unknown]> {
    for (const [key, value] of membersAt(args, node.below)) {
      const next = node.below.get(key);
      if (next?.declaration !== undefined) yield [next.declaration, plainValue(value)];
      if (next !== undefined && next.below.size > 0) yield* this.in(value, next);
    }
  }
}

interface SchemaNode {
  declaration?: Declaration;
  readonly below: Map<string, SchemaNode>;
}

function membersAt(
  args: JsonFields[string],
  wanted: ReadonlyMap<string, unknown>,
): Iterable<readonly [string, JsonFields[string]]> {
  if (args instanceof JsonText) {
    const members = membersOf(args.bytes, (key) => wanted.has(key));
    return Array.from(members, ([key, bytes]) => [key, JsonText.ofBytes(bytes)] as const);
  }
  return isJsonObject(args) ? Object.entries(args).filter(([key]) => wanted.has(key)) : [];
}

/** The value of one argument. Arguments that are kept as text are scanned, not parsed. */
export function valueAt(args: JsonFields[string], key: string): unknown {
  if (!(args instanceof JsonText))
    return isJsonObject(args) && Object.hasOwn(args, key) ? args[key] : undefined;
  const bytes = memberBytes(args.bytes, key);
  return bytes && plainValue(JsonText.ofBytes(bytes));
}

/** The value; undefined for an array or an object that is kept as text. */
function plainValue(value: JsonFields[string]): unknown {
  if (!(value instanceof JsonText)) return value;
  const [first] = value.bytes;
  return first === OPEN_BRACE || first === OPEN_BRACKET ? undefined : value.exactValue;
}

/** The text of a value; undefined for a value that is not mirrored: missing, not primitive, or an inexact number. */
export function headerTextOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (typeof value === 'boolean') return String(value);
  if (typeof value !== 'number') return undefined;
  return Number.isInteger(value) && !Number.isSafeInteger(value) ? undefined : String(value);
}

/** Bytes of ASCII headers in a request of HTTP/1.1. */
export function headerBytes(headers: Readonly<Record<string, string>>): number {
  let bytes = 0;
  for (const [name, value] of Object.entries(headers)) bytes += name.length + value.length + AROUND_BYTES;
  return bytes;
}

/**
 * Adds the declarations of a schema to `found`. Returns the first fault, which ends the search. `path` is as
 * before afterwards.
 */
function collect(
  schema: unknown,
  path: string[],
  isReachable: boolean,
  found: Declaration[],
): string | undefined {
  if (!isJsonObject(schema) || path.length > DEEPEST) return undefined;
  const { 'x-mcp-header': name, properties, type } = schema;
  if (name !== undefined) {
    if (!isReachable || path.length === 0)
      return `a header is declared at ${pathText(path)}, which is not a single argument`;
    if (typeof name !== 'string' || !TOKEN.test(name))
      return `the header for ${pathText(path)} has an invalid name`;
    if (typeof type !== 'string' || !PRIMITIVES.has(type)) return wrongType(path);
    found.push({ path: [...path], header: PARAM_PREFIX + name.toLowerCase(), type });
  }
  if (isJsonObject(properties)) {
    const fault = collectIn(properties, path, isReachable, found);
    if (fault !== undefined) return fault;
  }
  // Its own keys: a schema has few, and a list may have half a million schemas.
  for (const keyword in schema) {
    if (!ELSEWHERE.has(keyword)) continue;
    for (const child of schemasIn(schema[keyword], keyword)) {
      path.push(keyword);
      const fault = collect(child, path, false, found);
      path.pop();
      if (fault !== undefined) return fault;
    }
  }
  return undefined;
}

/** Collects from each of the schemas by name, like `collect`. */
function collectIn(
  schemas: JsonFields,
  path: string[],
  isReachable: boolean,
  found: Declaration[],
): string | undefined {
  for (const key in schemas) {
    path.push(key);
    const fault = collect(schemas[key], path, isReachable, found);
    path.pop();
    if (fault !== undefined) return fault;
  }
  return undefined;
}

function repetitionIn(found: readonly Declaration[]): string | undefined {
  const headers = new Set<string>();
  for (const { header } of found) {
    if (headers.has(header)) return `two arguments declare the header ${cutText(header, MAX_NAMED_UNITS)}`;
    headers.add(header);
  }
  return undefined;
}

function wrongType(path: readonly string[]): string {
  return `a header is declared for ${pathText(path)}, which is not a string, integer or boolean`;
}

function pathText(path: readonly string[]): string {
  return path.length === 0 ? 'the schema itself' : `"${cutText(path.join('.'), MAX_NAMED_UNITS)}"`;
}

function schemasIn(value: unknown, keyword: string): readonly unknown[] {
  if (Array.isArray(value)) return value;
  return BY_NAME.includes(keyword) && isJsonObject(value) ? Object.values(value) : [value];
}

/** The longest name of a server in a text for operators. */
const MAX_NAMED_UNITS = 100;
/** `: ` and the line end. */
const AROUND_BYTES = 4;
/** Source: RFC 9110 section 5.6.2. */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const PRIMITIVES: ReadonlySet<string> = new Set(['string', 'integer', 'boolean', 'number']);
/**
 * Keywords below which nothing may be declared, because the path of such a value is not fixed; the first hold
 * schemas by name.
 */
const BY_NAME = ['patternProperties', 'dependentSchemas', '$defs', 'definitions'];
const ELSEWHERE: ReadonlySet<string> = new Set([
  ...BY_NAME,
  ...['items', 'prefixItems', 'contains', 'unevaluatedItems'],
  ...['additionalProperties', 'unevaluatedProperties', 'propertyNames'],
  ...['oneOf', 'anyOf', 'allOf', 'not', 'if', 'then', 'else'],
]);
