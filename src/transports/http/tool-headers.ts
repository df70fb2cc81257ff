// The parameters that the tools of one modern HTTP backend want repeated in headers. Learned from every list of tools that
// passes, so that the calls of all callers carry the headers: callers of the HTTP API and clients of the legacy era know nothing
// of them. How they are declared and written is in domain/param-headers.ts.

import { hash } from 'node:crypto';
import { concat, defer, type Observable, of, Subject } from 'rxjs';
import type { ExchangeRequest } from '../../domain/exchange.ts';
import { fieldValue, isJsonObject, type JsonObject, JsonText } from '../../domain/json.ts';
import { type JsonRpcError, RPC } from '../../domain/jsonrpc.ts';
import type { Peer } from '../../domain/mcp.ts';
import {
  type Declaration,
  declaredBy,
  headerBytes,
  isUnwritable,
  paramHeaders,
} from '../../domain/param-headers.ts';
import { cutText } from '../../domain/text.ts';
import type { OmittedTool } from '../transport.ts';

/** Tools with headers that are remembered; the oldest go first. */
export const MOST_TOOLS = 10_000;

/** The tools of one backend that ask for headers. */
export class ToolHeaders {
  readonly #declarations = new Map<string, readonly Declaration[]>();
  readonly #omitted: OmittedTools;

  /** `omitted` records every tool that a list comes without, or with. */
  constructor(omitted: OmittedTools = new OmittedTools()) {
    this.#omitted = omitted;
  }

  /** The headers to add to a request; undefined when it needs none, or its caller wrote them already. */
  for(request: ExchangeRequest, peer: Peer): ExchangeRequest['headers'] {
    if (this.#declarations.size === 0 || !this.areOursFor(request, peer)) return undefined;
    const declarations = this.#declarationsFor(request);
    return declarations === undefined
      ? undefined
      : paramHeaders(declarations, fieldValue(request.params?.arguments));
  }

  /** True when the gateway adds the headers of a request, if there are any. */
  areOursFor({ method, headers }: ExchangeRequest, { era }: Peer): boolean {
    return method === 'tools/call' && headers === undefined && era === 'modern';
  }

  /** True when its tool asks for a header that cannot be written for these arguments. */
  areImpossibleFor(request: ExchangeRequest): boolean {
    const declarations = this.#declarationsFor(request);
    return declarations !== undefined && isUnwritable(declarations, fieldValue(request.params?.arguments));
  }

  /**
   * Reads the result of a request and returns it as it is, except a list of tools, which loses the tools whose
   * declarations break the rules, because clients must not use them over HTTP. Source: MCP 2026-07-28
   * server/tools#x-mcp-header.
   */
  checkTools({ method }: ExchangeRequest, { era }: Peer, result: JsonText): JsonText {
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

  /** False for a tool that cannot be called. Its reader refuses an entry that is no tool. */
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

/** A large answer may turn out to be no JSON: its reader fails then. */
function readable(page: JsonText): JsonObject | undefined {
  try {
    const value = page.exactValue;
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

// Calls that a modern HTTP backend refuses for the headers in which arguments are repeated, because it misses one or they are
// too large: whether a repeat of such a call, or the call itself, makes sense.

/** What the calls need of the tools of one backend. */
export interface KnownTools {
  readonly toolHeaders: ToolHeaders;
  /** Lists the tools anew while subscribed, unless that was done just now. */
  readonly toolListing$: Observable<never>;
}

/** A call that was refused. */
interface RefusedCall {
  readonly request: ExchangeRequest;
  readonly peer: Peer;
  /** The headers that were added to it. */
  readonly worn: ExchangeRequest['headers'];
}

/** Most bytes of added headers: half of what servers of Node take in all. */
export const MOST_HEADER_BYTES = 8 * 1024;

/** The answer to a call whose headers are too large. No other instance would take them, and no repeat. */
export const TOO_LARGE: JsonRpcError = {
  code: RPC.invalidParams,
  message: 'the tool wants arguments repeated in HTTP headers, and these are too large for that',
};

/** True when that is the answer instead of a call with these headers. */
export function areTooLarge(headers: Readonly<Record<string, string>>): boolean {
  return headerBytes(headers) > MOST_HEADER_BYTES;
}

/**
 * Emits once whether the call would now get a header that it did not have, and completes. If it would not, its
 * tools are listed first, unless that cannot help. Never errors; takes as long as the listing.
 */
export function wouldWearMore(known: KnownTools, { request, peer, worn }: RefusedCall): Observable<boolean> {
  const { toolHeaders, toolListing$ } = known;
  const hasMore = (): boolean => {
    const headers = toolHeaders.for(request, peer) ?? {};
    return Object.entries(headers).some(([name, value]) => value !== worn?.[name]);
  };
  if (hasMore()) return of(true);
  if (!toolHeaders.areOursFor(request, peer) || toolHeaders.areImpossibleFor(request)) return of(false);
  return concat(
    toolListing$,
    defer(() => of(hasMore())),
  );
}

// Tools that the lists of one backend come without, because they cannot be called: which of them were reported already. A list
// comes again and again; a fault of a tool is reported once, and again when it changes or comes back.

/**
 * Tools of one instance that are reported at a time. The others get no line until some of these are right: forgetting one
 * for another would report all of them with every list.
 */
export const MOST_REPORTED = 100;
/** Longest name in a report; a longer name is cut. In UTF-16 units. */
export const NAME_UNITS = 256;

/** Those of one backend. */
export class OmittedTools {
  /** Why, by the name. */
  readonly #reported: Map<string, string>;
  readonly #omitted = new Subject<OmittedTool>();

  /** `reported` is read and changed: kept from one opening to the next, it prevents repeated reports. */
  constructor(reported: Map<string, string> = new Map()) {
    this.#reported = reported;
  }

  /** Hot, no replay. */
  get omitted$(): Observable<OmittedTool> {
    return this.#omitted;
  }

  /** A list came without the tool. */
  omit(name: string, reason: string): void {
    const key = keyOf(name);
    const before = this.#reported.get(key);
    if (before === reason || (before === undefined && this.#reported.size >= MOST_REPORTED)) return;
    this.#reported.set(key, reason);
    this.#omitted.next({ tool: cutText(name, NAME_UNITS), reason });
  }

  /** A list came with the tool. */
  allow(name: string): void {
    if (this.#reported.size > 0) this.#reported.delete(keyOf(name));
  }
}

/** Two that begin alike are two. */
function keyOf(name: string): string {
  return name.length > NAME_UNITS ? hash('sha256', name) : name;
}
