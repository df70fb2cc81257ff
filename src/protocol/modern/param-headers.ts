// Arguments of a tool that a modern client repeats in headers: finds these headers in a request, and compares them with the
// body. domain/param-headers.ts finds the headers that a tool asks for; transports/http/tool-headers.ts writes them to backends.
// Source: MCP 2026-07-28 basic/transports/streamable-http#custom-headers-from-tool-parameters.

import { fieldValue, type JsonFields } from '../../domain/json.ts';
import type { Tool } from '../../domain/mcp.ts';
import {
  type Declaration,
  declaredBy,
  headerTextOf,
  PARAM_PREFIX,
  valueAt,
} from '../../domain/param-headers.ts';
import { decodeHeader } from '../../domain/text.ts';
import { headerMismatch, headerOf, type RequestHeaders } from '../headers.ts';
import type { RpcFailure } from '../rpc.ts';
import type { ModernCall } from './modern-call.ts';

/** The headers of this kind among those of a request, to be forwarded untouched; undefined when there are none. */
export function paramHeadersIn(headers: RequestHeaders): Readonly<Record<string, string>> | undefined {
  let found: Record<string, string> | undefined;
  for (const name in headers) {
    const value = name.startsWith(PARAM_PREFIX) ? headers[name] : undefined;
    if (typeof value !== 'string') continue;
    found ??= {};
    found[name] = value;
  }
  return found;
}

export class ListedHeaders {
  /** The headers that a tool asks for, which are read for each call. */
  readonly #declarations = new WeakMap<Tool, readonly Declaration[]>();

  /** Throws RpcFailure (400, -32020). The client may know a newer list than the gateway, which is renewed then. */
  check({ method, params, owner, backends }: ModernCall, headers: RequestHeaders): void {
    const { name, arguments: args } = params;
    if (method !== 'tools/call' || typeof name !== 'string') return;
    const mismatch = this.#mismatch(backends.tool(name, owner), args, headers);
    if (mismatch === undefined) return;
    backends.relistTool(name, owner);
    throw mismatch;
  }

  /** The refusal of a header that is missing or differs from the arguments. A tool whose declarations break the rules has none. */
  #mismatch(
    tool: Tool | undefined,
    args: JsonFields[string],
    headers: RequestHeaders,
  ): RpcFailure | undefined {
    if (tool === undefined) return undefined;
    let declarations = this.#declarations.get(tool);
    if (declarations === undefined) {
      declarations = declaredBy(tool.inputSchema).declarations;
      this.#declarations.set(tool, declarations);
    }
    const values = declarations.length === 0 ? undefined : fieldValue(args);
    const mismatches = declarations.map((declaration) => mismatchOf(declaration, values, headers));
    return mismatches.find((mismatch) => mismatch !== undefined);
  }
}

function mismatchOf(
  { header, path, type }: Declaration,
  args: unknown,
  headers: RequestHeaders,
): RpcFailure | undefined {
  const value = valueAt(args, path);
  const text = headerTextOf(value);
  // Without a value in the body no header is expected, and one that is there is ignored.
  if (text === undefined) return undefined;
  const sent = headerOf(headers, header);
  if (sent === undefined) return headerMismatch(header, `is missing, but the body has "${path.join('.')}"`);
  const decoded = decodeHeader(sent);
  if (decoded === undefined) return headerMismatch(header, 'is not canonical Base64 of UTF-8');
  const isSameNumber = NUMERIC.has(type) && DECIMAL.test(decoded) && Number(decoded) === value;
  return decoded === text || isSameNumber
    ? undefined
    : headerMismatch(header, `differs from "${path.join('.')}" in the body`);
}

const NUMERIC: ReadonlySet<string> = new Set(['integer', 'number']);
const DECIMAL = /^-?\d+(?:\.\d+)?$/;
