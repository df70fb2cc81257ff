// Arguments of a tool that a modern client repeats in headers: finds these headers in a request, and compares them
// with the body. domain/mcp/param-headers.ts finds the headers that a tool asks for;
// transports/tool-headers.ts writes them to backends. Source: MCP 2026-07-28
// basic/transports/streamable-http#custom-headers-from-tool-parameters.

import type { Tool } from '../../domain/mcp/mcp.ts';
import {
  type Declaration,
  DeclaredArguments,
  declaredBy,
  headerTextOf,
  PARAM_PREFIX,
} from '../../domain/mcp/param-headers.ts';
import { decodeHeader, type HttpHeaders } from '../../domain/text.ts';
import { headerMismatch, headerOf } from '../headers.ts';
import type { ModernRequest } from './modern-request.ts';

/** The headers of this kind, to be forwarded unchanged; undefined when there are none. */
export function paramHeadersIn(headers: HttpHeaders): Readonly<Record<string, string>> | undefined {
  let found: Record<string, string> | undefined;
  for (const name in headers) {
    const value = name.startsWith(PARAM_PREFIX) ? headers[name] : undefined;
    if (typeof value !== 'string') continue;
    found ??= {};
    found[name] = value;
  }
  return found;
}

/** Checks the headers of calls. The headers that a tool asks for are read with its first call. */
export class ListedHeaders {
  /** The headers that each tool asks for, which are needed for each call. */
  readonly #declarations = new WeakMap<Tool, DeclaredArguments>();

  /**
   * Compares the headers with the arguments. When one is missing or differs, throws RpcFailure (400, -32020), and lets
   * the instance list its tools again, because the client may know a newer list than the gateway.
   */
  check(
    { method, params, owner, backends }: Pick<ModernRequest, 'method' | 'params' | 'owner' | 'backends'>,
    headers: HttpHeaders,
  ): void {
    const { name, arguments: args } = params;
    if (method !== 'tools/call' || typeof name !== 'string') return;
    const tool = backends.tool(name, owner);
    if (tool === undefined) return;
    let declarations = this.#declarations.get(tool);
    if (declarations === undefined) {
      declarations = new DeclaredArguments(declaredBy(tool.inputSchema).declarations); // none, if they break the rules
      this.#declarations.set(tool, declarations);
    }
    if (declarations.isEmpty) return; // nearly always
    for (const [declaration, value] of declarations.in(args)) {
      const problem = problemOf(declaration, value, headers);
      if (problem === undefined) continue;
      backends.relistTool(name, owner);
      throw headerMismatch(declaration.header, problem);
    }
  }
}

/** The reason, as a clause, to refuse a header that is missing or differs from the arguments; undefined when it fits. */
function problemOf(
  { header, path, type }: Declaration,
  value: unknown,
  headers: HttpHeaders,
): string | undefined {
  const text = headerTextOf(value);
  // When the body has no value, no header is expected, and a present one is ignored.
  if (text === undefined) return undefined;
  const sent = headerOf(headers, header);
  if (sent === undefined) return `is missing, but the body has "${path.join('.')}"`;
  const decoded = decodeHeader(sent);
  if (decoded === undefined) return 'is not canonical Base64 of UTF-8';
  const isSameNumber = NUMERIC.has(type) && DECIMAL.test(decoded) && Number(decoded) === value;
  return decoded === text || isSameNumber ? undefined : `differs from "${path.join('.')}" in the body`;
}

const NUMERIC: ReadonlySet<string> = new Set(['integer', 'number']);
const DECIMAL = /^-?\d+(?:\.\d+)?$/;
