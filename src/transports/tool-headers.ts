// The arguments that the tools of one modern HTTP backend want mirrored in headers.

import type { ExchangeRequest } from '../domain/calls/exchange.ts';
import { JsonText, parseExact } from '../domain/json/json.ts';
import { withItems } from '../domain/json/json-fields.ts';
import { memberBytes, memberText, valuesInBytes } from '../domain/json/json-scanner.ts';
import { LIMITS } from '../domain/limits.ts';
import { type JsonRpcError, RPC } from '../domain/mcp/jsonrpc.ts';
import type { Handshake } from '../domain/mcp/mcp.ts';
import { DeclaredArguments, declaredBy, headerBytes } from '../domain/mcp/param-headers.ts';
import { memoryOf } from '../domain/memory/held-bytes.ts';
import { LruMap } from '../domain/memory/lru-map.ts';
import { cutText } from '../domain/text.ts';
import type { OpenOptions } from './open-options.ts';

/**
 * Tools with headers that are remembered; beyond them the least recently used one is forgotten. One that takes more memory than
 * COUNTED_BYTES counts as several.
 */
const MAX_TOOLS = 10_000;
const COUNTED_BYTES = 2_048;

/**
 * The declarations of the tools of one backend. Declarations are read from every list of tools that passes, so that the
 * calls of all callers carry the headers: callers of the HTTP API and legacy clients do not know them.
 * domain/mcp/param-headers.ts reads declarations and writes headers.
 */
export class ToolHeaders {
  /** The arguments that tools want in headers. Undefined until a tool declares some: thousands of backends have none. */
  #declarations: LruMap<DeclaredArguments> | undefined;
  /** The reasons why tools were reported as left out of lists, by their names. */
  readonly #reported = new Map<string, string>();
  readonly #options: Pick<OpenOptions, 'relistTools' | 'onWithheld'>;

  constructor(options: Pick<OpenOptions, 'relistTools' | 'onWithheld'> = {}) {
    this.#options = options;
  }

  /** The headers to add to a request; undefined when it needs none, or its caller wrote them already. */
  for(
    request: Pick<ExchangeRequest, 'method' | 'params' | 'headers'>,
    handshake: Pick<Handshake, 'era'>,
  ): ExchangeRequest['headers'] {
    if (this.#declarations === undefined || !areOursFor(request, handshake)) return undefined;
    const { name, arguments: args } = request.params ?? {};
    const declarations = typeof name === 'string' ? this.#declarations.get(name) : undefined;
    return declarations?.headersFor(args);
  }

  /**
   * Whether a call that was refused because a header is missing would now get other headers than `sent`. If it would not,
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

  /**
   * Removes tools whose declarations break the rules from a list of tools, and tools whose definitions, with the declared ones
   * before them, are too large to be read in one turn. Source: MCP 2026-07-28 server/tools#x-mcp-header, ADR 322.
   */
  checkTools(
    { method }: Pick<ExchangeRequest, 'method'>,
    { era }: Pick<Handshake, 'era'>,
    result: JsonText,
  ): JsonText {
    if (method !== 'tools/list' || era !== 'modern') return result;
    // Nearly all servers declare none, and a page may be large.
    if (this.#declarations === undefined && !result.bytes.includes(DECLARATION)) return result;
    let values = 0;
    let isWhole = true;
    const usable = withItems(result.bytes, 'tools', (tool) => {
      const name = memberText(tool, 'name');
      if (name === undefined) return tool; // an entry that is not a tool is left to the reader of the list
      this.#declarations?.delete(name);
      if (!tool.includes(DECLARATION)) return tool;
      values += valuesInBytes(tool, LIMITS.parsedAtOnce);
      const fault = values > LIMITS.parsedAtOnce ? TOO_MANY_VALUES : this.#take(name, tool);
      if (fault === undefined) return tool;
      this.#report(name, fault);
      isWhole = false;
      return undefined;
    });
    return isWhole ? result : JsonText.ofBytes(usable);
  }

  /** Reads the headers of a tool. Gives the reason why it cannot be called; undefined when it can. */
  #take(name: string, tool: Buffer): string | undefined {
    const schema = memberBytes(tool, 'inputSchema');
    const { declarations, fault } = declaredBy(schema && parseExact(schema.toString()));
    if (fault === undefined && declarations.length > 0) {
      this.#declarations ??= new LruMap(MAX_TOOLS, undefined, countOf);
      this.#declarations.set(name, new DeclaredArguments(declarations));
    }
    return fault;
  }

  /** Lists are repeated: a fault of a tool is reported once, and again when it changes. */
  #report(name: string, fault: string): void {
    const tool = cutText(name, MAX_NAME_UNITS);
    if (this.#reported.get(tool) === fault || this.#reported.size >= MAX_REPORTED) return;
    this.#reported.set(tool, fault);
    this.#options.onWithheld?.({ tool, reason: fault });
  }
}

/** As how many tools one counts. */
function countOf({ bytes }: DeclaredArguments, name: string): number {
  return Math.ceil((bytes + memoryOf(1, name.length)) / COUNTED_BYTES);
}

/** True when the gateway adds the headers of a request, if there are any. */
function areOursFor(
  { method, headers }: Pick<ExchangeRequest, 'method' | 'headers'>,
  { era }: Pick<Handshake, 'era'>,
): boolean {
  return method === 'tools/call' && headers === undefined && era === 'modern';
}

/** The most bytes of added headers: half of the bytes that servers on Node accept in total. */
export const MAX_HEADER_BYTES = 8 * 1024;

/** The answer to a call whose headers are too large. Neither another instance nor a repetition would help. */
export const HEADERS_TOO_LARGE: JsonRpcError = {
  code: RPC.invalidParams,
  message: 'the tool requires arguments in HTTP headers, and they are too large for that',
};

export function areTooLarge(headers: Readonly<Record<string, string>>): boolean {
  return headerBytes(headers) > MAX_HEADER_BYTES;
}

/** Faults that are remembered; others are not reported. Replacing old ones would report all of them with every list. */
const MAX_REPORTED = 100;
/** The longest name in a report, in UTF-16 units; a longer name is cut. */
const MAX_NAME_UNITS = 256;

const DECLARATION = Buffer.from('x-mcp-header');
const TOO_MANY_VALUES = `the tools of its page that declare headers have more than ${LIMITS.parsedAtOnce} values`;
