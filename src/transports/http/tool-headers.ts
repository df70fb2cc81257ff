// What the tools of one HTTP backend of the modern era want repeated in headers. It is learned from every list of tools that
// passes, so calls carry the headers whoever makes them: callers of the HTTP API and clients of the legacy era know nothing
// of them. How they are declared and written is in domain/param-headers.ts.

import type { ExchangeRequest } from '../../domain/exchange.ts';
import { fieldValue, isJsonObject, type JsonObject, JsonText } from '../../domain/json.ts';
import type { Peer } from '../../domain/mcp.ts';
import { type Declaration, declaredBy, isUnwritable, paramHeaders } from '../../domain/param-headers.ts';
import { OmittedTools } from './omitted-tools.ts';

/** Tools with headers that are remembered; the oldest go first. */
export const MOST_TOOLS = 10_000;

/** The tools of one backend that ask for headers. */
export class ToolHeaders {
  readonly #declarations = new Map<string, readonly Declaration[]>();
  readonly #omitted: OmittedTools;

  /** `omitted` hears of every tool that a list comes without, or with. */
  constructor(omitted: OmittedTools = new OmittedTools()) {
    this.#omitted = omitted;
  }

  /** The headers to add to a request; undefined when it needs none, or its caller knows of them and wrote them himself. */
  for(request: ExchangeRequest, peer: Peer): ExchangeRequest['headers'] {
    if (this.#declarations.size === 0 || !this.areOursFor(request, peer)) return undefined;
    const declarations = this.#declarationsFor(request);
    return declarations === undefined
      ? undefined
      : paramHeaders(declarations, fieldValue(request.params?.arguments));
  }

  /** Whether the headers of a request are for us to add, if there are any. */
  areOursFor({ method, headers }: ExchangeRequest, { era }: Peer): boolean {
    return method === 'tools/call' && headers === undefined && era === 'modern';
  }

  /** Whether its tool asks for a header that cannot be written for these arguments. */
  areImpossibleFor(request: ExchangeRequest): boolean {
    const declarations = this.#declarationsFor(request);
    return declarations !== undefined && isUnwritable(declarations, fieldValue(request.params?.arguments));
  }

  /**
   * Reads the result of a request, which is given back as it is, but for a list of tools: that comes without those whose
   * declarations break the rules, because clients must not use them over HTTP. Source: MCP 2026-07-28
   * server/tools#x-mcp-header.
   */
  hear({ method }: ExchangeRequest, { era }: Peer, result: JsonText): JsonText {
    return method === 'tools/list' && era === 'modern' ? this.#learn(result) : result;
  }

  #declarationsFor({ params }: ExchangeRequest): readonly Declaration[] | undefined {
    return typeof params?.name === 'string' ? this.#declarations.get(params.name) : undefined;
  }

  #learn(page: JsonText): JsonText {
    const result = readable(page);
    const tools = result?.tools;
    if (!Array.isArray(tools)) return page;
    const usable = tools.filter((tool) => this.#take(tool));
    return usable.length === tools.length ? page : JsonText.ofValue({ ...result, tools: usable });
  }

  /** False for a tool that nobody may use. What is no tool is its reader's to refuse. */
  #take(tool: unknown): boolean {
    if (!isJsonObject(tool) || typeof tool.name !== 'string') return true;
    const { declarations, fault } = declaredBy(tool.inputSchema);
    this.#declarations.delete(tool.name);
    if (fault !== undefined) {
      this.#omitted.omit(tool.name, fault);
      return false;
    }
    this.#omitted.allow(tool.name);
    if (declarations.length > 0) this.#remember(tool.name, declarations);
    return true;
  }

  #remember(name: string, declarations: readonly Declaration[]): void {
    this.#declarations.set(name, declarations);
    const [oldest] = this.#declarations.keys();
    if (this.#declarations.size > MOST_TOOLS && oldest !== undefined) this.#declarations.delete(oldest);
  }
}

/** A large answer may turn out to be no JSON: whoever wants it is told when he reads it. */
function readable(page: JsonText): JsonObject | undefined {
  try {
    const value = page.exactValue;
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
