// Arguments of a tool that a modern client repeats in headers: finding them among those of a request, and comparing them
// with the body. What a tool asks for is found in domain/param-headers.ts; transports/tool-headers.ts writes them for others.
// Source: MCP 2026-07-28 basic/transports/streamable-http#custom-headers-from-tool-parameters.

import { decodeHeader } from '../domain/header-text.ts';
import type { Tool } from '../domain/mcp.ts';
import {
  type Declaration,
  declaredBy,
  headerTextOf,
  PARAM_PREFIX,
  valueAt,
} from '../domain/param-headers.ts';
import { type Headers, headerOf } from './headers.ts';
import { headerMismatch } from './mirrored-headers.ts';

/** The headers of this kind among those of a request, to be forwarded untouched; undefined when there are none. */
export function paramHeadersIn(headers: Headers): Readonly<Record<string, string>> | undefined {
  let found: Record<string, string> | undefined;
  for (const name in headers) {
    const value = name.startsWith(PARAM_PREFIX) ? headers[name] : undefined;
    if (typeof value !== 'string') continue;
    found ??= {};
    found[name] = value;
  }
  return found;
}

/** Remembers what the tools ask for, which is looked up for each call. */
export class ParamHeaders {
  readonly #declarations = new WeakMap<Tool, readonly Declaration[]>();

  /**
   * Throws RpcFailure, 400 with -32020, when a header is missing or says something else than the arguments. A tool whose
   * declarations break the rules asks for none.
   */
  check(tool: Tool | undefined, args: unknown, headers: Headers): void {
    if (tool === undefined) return;
    let declarations = this.#declarations.get(tool);
    if (declarations === undefined) {
      declarations = declaredBy(tool.inputSchema).declarations;
      this.#declarations.set(tool, declarations);
    }
    for (const declaration of declarations) checkOne(declaration, args, headers);
  }
}

function checkOne({ header, path, type }: Declaration, args: unknown, headers: Headers): void {
  const value = valueAt(args, path);
  const text = headerTextOf(value);
  if (text === undefined) return; // without a value in the body no header is expected, and one that is there is ignored
  const sent = headerOf(headers, header);
  if (sent === undefined) throw headerMismatch(header, `is missing, but the body has "${path.join('.')}"`);
  const decoded = decodeHeader(sent);
  if (decoded === undefined) throw headerMismatch(header, 'is not canonical Base64 of UTF-8');
  const isSameNumber = NUMERIC.has(type) && DECIMAL.test(decoded) && Number(decoded) === value;
  if (decoded !== text && !isSameNumber) {
    throw headerMismatch(header, `says something else than "${path.join('.')}" of the body`);
  }
}

const NUMERIC: ReadonlySet<string> = new Set(['integer', 'number']);
const DECIMAL = /^-?\d+(?:\.\d+)?$/;
