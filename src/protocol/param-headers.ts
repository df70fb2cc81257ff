// Arguments of a tool that are repeated in headers, because its input schema asks for it (`x-mcp-header`): finding them,
// writing them, and comparing them with the body. Which requests carry them is decided elsewhere.
// Source: MCP 2026-07-28 basic/transports/streamable-http#custom-headers-from-tool-parameters.

import { isJsonObject, type JsonObject } from '../domain/json.ts';
import type { Tool } from '../domain/mcp.ts';
import { type Headers, headerOf } from './headers.ts';
import { decodeHeader, encodeHeader, headerMismatch } from './mirrored-headers.ts';

/** One argument that is repeated. */
interface Declaration {
  /** Where it stands in the arguments. */
  readonly path: readonly string[];
  /** The header, in lower case. */
  readonly header: string;
  readonly isNumeric: boolean;
}

/** Deepest schema that is looked through. */
const DEEPEST = 32;
const PREFIX = 'mcp-param-';

/**
 * The headers for a call, in lower case; undefined when the tool asks for none. A tool whose declarations are invalid
 * asks for none: clients must not use it over HTTP, so no server can expect any.
 */
export function paramHeaders(
  tool: Tool | undefined,
  args: JsonObject | undefined,
): Readonly<Record<string, string>> | undefined {
  const headers: Record<string, string> = {};
  for (const { header, path } of declarationsOf(tool)) {
    const text = textOf(valueAt(args, path));
    if (text !== undefined) headers[header] = encodeHeader(text);
  }
  return Object.keys(headers).length === 0 ? undefined : headers;
}

/** The headers of this kind among those of a request, to be forwarded untouched; undefined when there are none. */
export function paramHeadersIn(headers: Headers): Readonly<Record<string, string>> | undefined {
  let found: Record<string, string> | undefined;
  for (const name in headers) {
    const value = name.startsWith(PREFIX) ? headers[name] : undefined;
    if (typeof value !== 'string') continue;
    found ??= {};
    found[name] = value;
  }
  return found;
}

/** Remembers what the tools ask for, which is looked up for each call. */
export class ParamHeaders {
  readonly #declarations = new WeakMap<Tool, readonly Declaration[]>();

  /** Throws RpcFailure, 400 with -32020, when a header is missing or says something else than the arguments. */
  check(tool: Tool | undefined, args: unknown, headers: Headers): void {
    if (tool === undefined) return;
    let declarations = this.#declarations.get(tool);
    if (declarations === undefined) {
      declarations = declarationsOf(tool);
      this.#declarations.set(tool, declarations);
    }
    for (const declaration of declarations) checkOne(declaration, args, headers);
  }
}

function checkOne({ header, path, isNumeric }: Declaration, args: unknown, headers: Headers): void {
  const value = valueAt(args, path);
  const text = textOf(value);
  if (text === undefined) return; // without a value in the body no header is expected, and one that is there is ignored
  const sent = headerOf(headers, header);
  if (sent === undefined) throw headerMismatch(header, `is missing, but the body has "${path.join('.')}"`);
  const decoded = decodeHeader(sent);
  if (decoded === undefined) throw headerMismatch(header, 'is not canonical Base64 of UTF-8');
  const isSameNumber = isNumeric && DECIMAL.test(decoded) && Number(decoded) === value;
  if (decoded !== text && !isSameNumber) {
    throw headerMismatch(header, `says something else than "${path.join('.')}" of the body`);
  }
}

/** None when one of them breaks the rules, except for one about a number: that is checked all the same, as SDKs do. */
function declarationsOf(tool: Tool | undefined): readonly Declaration[] {
  const found: Declaration[] = [];
  const isValid = collect(tool?.inputSchema, [], true, found);
  const names = new Set(found.map(({ header }) => header));
  return isValid && names.size === found.length ? found : [];
}

/** Looks through a schema. False when something is declared where, or as, it must not be. */
function collect(
  schema: unknown,
  path: readonly string[],
  isReachable: boolean,
  found: Declaration[],
): boolean {
  if (!isJsonObject(schema)) return true;
  if (path.length > DEEPEST) return false;
  const { 'x-mcp-header': name, properties, type } = schema;
  if (name !== undefined) {
    if (!isReachable || path.length === 0 || typeof name !== 'string' || !TOKEN.test(name)) return false;
    if (typeof type !== 'string' || !PRIMITIVES.has(type)) return false;
    found.push({
      path,
      header: PREFIX + name.toLowerCase(),
      isNumeric: type === 'integer' || type === 'number',
    });
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

function valueAt(args: unknown, path: readonly string[]): unknown {
  let value = args;
  for (const key of path) value = isJsonObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
  return value;
}

/** How a value is written; undefined for what is not repeated: no value, no primitive, no number that is exact. */
function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (typeof value === 'boolean') return String(value);
  if (typeof value !== 'number') return undefined;
  return Number.isInteger(value) && !Number.isSafeInteger(value) ? undefined : String(value);
}

/** Source: RFC 9110 section 5.6.2. */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const DECIMAL = /^-?\d+(?:\.\d+)?$/;
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
