// The arguments that the tools of one modern HTTP backend want mirrored in headers. Declarations are read from
// every list of tools that passes, so that the calls of all callers carry the headers: callers of the HTTP API and
// legacy clients do not know them. domain/mcp/param-headers.ts reads declarations and writes headers.

import type { ExchangeRequest } from '../../domain/calls/exchange.ts';
import { isJsonObject, JsonText, jsonIn, parseExact } from '../../domain/json/json.ts';
import { type JsonRpcError, RPC } from '../../domain/mcp/jsonrpc.ts';
import type { Handshake } from '../../domain/mcp/mcp.ts';
import { DeclaredArguments, declaredBy, headerBytes } from '../../domain/mcp/param-headers.ts';
import { LruMap } from '../../domain/memory/lru-map.ts';
import { cutText } from '../../domain/text.ts';
import type { OpenOptions } from '../open-options.ts';

/** Tools with headers that are remembered; beyond them the least recently used one is forgotten. */
export const MAX_TOOLS = 10_000;

export class ToolHeaders {
  /** Undefined until a tool declares some: thousands of backends have none. */
  #declarations: LruMap<DeclaredArguments> | undefined;
  /** Why tools were reported as left out of lists, by their names. */
  readonly #reported = new Map<string, string>();
  readonly #options: Pick<OpenOptions, 'relistTools' | 'onWithheld'>;

  constructor(options: Pick<OpenOptions, 'relistTools' | 'onWithheld'>) {
    this.#options = options;
  }

  /** The headers to add to a request; undefined when it needs none, or its caller wrote them already. */
  for(request: ExchangeRequest, handshake: Handshake): ExchangeRequest['headers'] {
    if (this.#declarations === undefined || !areOursFor(request, handshake)) return undefined;
    const { name, arguments: args } = request.params ?? {};
    const declarations = typeof name === 'string' ? this.#declarations.get(name) : undefined;
    return declarations?.headersFor(args);
  }

  /**
   * For a call that was refused because a header is missing: whether it would get other headers now than `sent`. If it would not,
   * the tools are listed again first. Never rejects; takes as long as the listing.
   */
  async haveChanged(
    request: ExchangeRequest,
    handshake: Handshake,
    sent: ExchangeRequest['headers'],
  ): Promise<boolean> {
    const haveChanged = (): boolean =>
      Object.entries(this.for(request, handshake) ?? {}).some(([name, value]) => value !== sent?.[name]);
    if (!haveChanged() && areOursFor(request, handshake)) await this.#options.relistTools?.();
    return haveChanged();
  }

  /** Removes tools whose declarations break the rules from a list of tools. Source: MCP 2026-07-28 server/tools#x-mcp-header. */
  checkTools({ method }: ExchangeRequest, { era }: Handshake, result: JsonText): JsonText {
    if (method !== 'tools/list' || era !== 'modern') return result;
    // Nearly all servers declare none, and a page may be large.
    if (this.#declarations === undefined && !result.bytes.includes(DECLARATION)) return result;
    const page = jsonIn(result.text, parseExact); // one that is not JSON is left to the reader of the list
    if (!isJsonObject(page) || !Array.isArray(page.tools)) return result;
    const usable = page.tools.filter((tool) => this.#take(tool));
    return usable.length === page.tools.length ? result : JsonText.ofValue({ ...page, tools: usable });
  }

  /** False for a tool that cannot be called. An entry that is not a tool is left to the reader of the list. */
  #take(tool: unknown): boolean {
    if (!isJsonObject(tool) || typeof tool.name !== 'string') return true;
    const { declarations, fault } = declaredBy(tool.inputSchema);
    this.#declarations?.delete(tool.name);
    if (fault !== undefined) {
      this.#report(tool.name, fault);
      return false;
    }
    if (declarations.length > 0) {
      this.#declarations ??= new LruMap(MAX_TOOLS);
      this.#declarations.set(tool.name, new DeclaredArguments(declarations));
    }
    return true;
  }

  /** Lists are repeated: a fault of a tool is reported once, and again when it changes. */
  #report(name: string, fault: string): void {
    const tool = cutText(name, NAME_UNITS);
    if (this.#reported.get(tool) === fault || this.#reported.size >= MAX_REPORTED) return;
    this.#reported.set(tool, fault);
    this.#options.onWithheld?.({ tool, reason: fault });
  }
}

/** True when the gateway adds the headers of a request, if there are any. */
function areOursFor({ method, headers }: ExchangeRequest, { era }: Handshake): boolean {
  return method === 'tools/call' && headers === undefined && era === 'modern';
}

/** Most bytes of added headers: half of what servers on Node accept in total. */
export const MAX_HEADER_BYTES = 8 * 1024;

/** The answer to a call whose headers are too large. Neither another instance nor a repetition would help. */
export const TOO_LARGE: JsonRpcError = {
  code: RPC.invalidParams,
  message: 'the tool requires arguments in HTTP headers, and they are too large for that',
};

export function areTooLarge(headers: Readonly<Record<string, string>>): boolean {
  return headerBytes(headers) > MAX_HEADER_BYTES;
}

/** Faults that are remembered; others are not reported. Replacing old ones would report all of them with every list. */
export const MAX_REPORTED = 100;
/** Longest name in a report; a longer name is cut. In UTF-16 units. */
const NAME_UNITS = 256;

const DECLARATION = Buffer.from('x-mcp-header');
