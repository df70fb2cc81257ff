// One conversation in each era, message by message and without tolerance: faults that the transports of the gateway forgive are
// findings here. It opens, lists tools, asks for a method that no server has, and cancels a request that is over; it calls no
// tool.

import { isJsonObject, type JsonObject, jsonIn } from '../../domain/json/json.ts';
import { LEGACY_VERSIONS, META, MODERN_VERSIONS } from '../../domain/mcp/mcp.ts';
import { GATEWAY_INFO } from '../../domain/version.ts';
import type { FaultCode, Finding } from './faults.ts';

/** The messages that came for one request. */
export interface Heard {
  /** The messages as they came; a text that is none, too. */
  readonly texts: readonly string[];
  readonly tookMs: number;
  /** True when the program ended, or nothing could be read. */
  readonly hasEnded: boolean;
}

/** Sends messages as they are. */
export interface Wire {
  /** Sends a request, and gathers the messages until its answer, and a moment longer. Never rejects. */
  ask(message: JsonObject & { readonly id: number; readonly method: string }): Promise<Heard>;
  tell(message: JsonObject): Promise<void>;
}

/** The findings by code: each fault of the wire is named once. */
export class Findings {
  readonly #byCode = new Map<FaultCode, Finding>();

  add(code: FaultCode, message: string): void {
    if (!this.#byCode.has(code)) this.#byCode.set(code, { code, message });
  }

  drop(code: FaultCode): void {
    this.#byCode.delete(code);
  }

  get all(): readonly Finding[] {
    return [...this.#byCode.values()];
  }
}

const SLOW_START_MS = 5_000;
const SLOW_LIST_MS = 3_000;
const ID = 7_001;

/** The result of a request. Undefined when there was none, or an error. */
type Result = JsonObject | undefined;

function opening(protocolVersion: string) {
  const params = { protocolVersion, capabilities: {}, clientInfo: GATEWAY_INFO };
  return { ...request(ID, 'initialize'), params };
}

/** The legacy era. Returns the names of the tools; undefined when it does not get that far. */
export async function converseInLegacy(wire: Wire, found: Findings): Promise<string[] | undefined> {
  const newest = LEGACY_VERSIONS[0];
  const opened = await wire.ask(opening(newest));
  if (opened.tookMs > SLOW_START_MS && opened.texts.length > 0)
    found.add('slow-start', `It answered initialize after ${seconds(opened.tookMs)}.`);
  const { result, error } = read(opened, ID, 'initialize', found);
  if (error !== undefined) found.add('refuses-revision', `It refuses initialize for the revision ${newest}.`);
  if (result === undefined) return undefined;
  await wire.tell({ jsonrpc: '2.0', method: 'notifications/initialized' });
  const unknown = await wire.ask(request(ID + 1, UNKNOWN_METHOD));
  if (unknown.hasEnded) {
    found.add('ends-at-unknown', 'It ended when it was asked for a method that it does not know.');
    return undefined;
  }
  read(unknown, ID + 1, 'an unknown method', found);
  if (!isJsonObject(result.capabilities) || result.capabilities.tools === undefined) return undefined;
  const names = await toolsOf(wire, request(ID + 2, 'tools/list'), found);
  await wire.tell({
    jsonrpc: '2.0',
    method: 'notifications/cancelled',
    params: { requestId: ID + 2, reason: 'no longer needed' },
  });
  const after = await wire.ask(request(ID + 3, 'ping'));
  if (after.hasEnded) found.add('ends-at-cancelled', 'It ended at notifications/cancelled.');
  else read(after, ID + 3, 'ping', found);
  return names;
}

/** The modern era, if the server has it. Returns as `converseInLegacy`. */
export async function converseInModern(wire: Wire, found: Findings): Promise<string[] | undefined> {
  const discovered = await wire.ask(modern(ID + 10, 'server/discover'));
  if (discovered.hasEnded) {
    found.add('ends-at-discover', 'It ended when it was asked server/discover.');
    return undefined;
  }
  if (discovered.texts.length === 0) {
    // The program may still be starting. It ignores unknown methods only if it answers later messages.
    const later = await wire.ask(opening(LEGACY_VERSIONS[0]));
    const ids = later.texts.map((text) => Object(jsonIn(text)).id);
    if (ids.length > 0 && !ids.includes(ID + 10))
      found.add('discover-silent', 'It does not answer server/discover.');
    return undefined;
  }
  const { result } = read(discovered, ID + 10, 'server/discover', found);
  const versions = result?.supportedVersions;
  if (!Array.isArray(versions) || !versions.includes(MODERN_VERSIONS[0])) return undefined;
  found.drop('refuses-revision'); // it has no legacy era to open
  faultsOfFields(result, 'server/discover', found);
  if (!isJsonObject(result?.capabilities) || result.capabilities.tools === undefined) return undefined;
  const listed = await wire.ask(modern(ID + 11, 'tools/list'));
  const list = read(listed, ID + 11, 'tools/list', found).result;
  if (list === undefined)
    found.add('era-announced', 'It answers server/discover, but not tools/list of that era.');
  else faultsOfFields(list, 'tools/list', found);
  return list && namesIn(list);
}

/** Checks that both eras have the same tools. */
export function compareEras(
  legacy: readonly string[] | undefined,
  inModern: readonly string[] | undefined,
  found: Findings,
): void {
  if (legacy === undefined || inModern === undefined) return;
  const both = new Set(legacy.filter((name) => inModern.includes(name)));
  const only = [...legacy, ...inModern].filter((name) => !both.has(name));
  if (only.length > 0)
    found.add('eras-differ', `Only one of its eras lists ${only.slice(0, 5).join(', ').slice(0, 200)}.`);
}

async function toolsOf(wire: Wire, message: Parameters<Wire['ask']>[0], found: Findings) {
  const listed = await wire.ask(message);
  if (listed.tookMs > SLOW_LIST_MS && listed.texts.length > 0)
    found.add('slow-list', `Its first page of tools took ${seconds(listed.tookMs)}.`);
  const { result } = read(listed, message.id, message.method, found);
  if (result === undefined) return undefined;
  const { nextCursor } = result;
  if (nextCursor !== undefined && (typeof nextCursor !== 'string' || nextCursor === ''))
    found.add('odd-cursor', 'The nextCursor of its tools is empty, or not text.');
  // A page is not all of them.
  return typeof nextCursor === 'string' && nextCursor !== '' ? undefined : namesIn(result);
}

/** The answer with this id, or the one that was meant. Adds the faults of the messages to `found`. */
function read(
  { texts }: Heard,
  id: number,
  asked: string,
  found: Findings,
): { readonly result?: Result; readonly error?: unknown } {
  const parsed = texts.map((text) => jsonIn(text));
  if (parsed.some(Array.isArray)) found.add('array-answer', `Its answer to ${asked} is an array.`);
  if (texts.some(hasLargeInteger))
    found.add('large-integer', `Its answer to ${asked} has an integer that JavaScript cannot hold.`);
  const answers = parsed.flat().filter(isAnswer);
  if (answers.filter((answer) => answer.id === id).length > 1)
    found.add('answers-twice', `It answers ${asked} more than once.`);
  const own = answers.find((answer) => answer.id === id);
  const answer = own ?? answers[0];
  if (answer === undefined) return {};
  if (own === undefined) {
    if (answer.id === String(id)) found.add('id-as-text', `It answers the id ${id} with the text "${id}".`);
    else if (answer.error !== undefined && answer.id === null) {
      // The id of a request is not known when it is refused before it is read.
      if (asked !== 'server/discover') found.add('id-null', `Its error for ${asked} has the id null.`);
    } else found.add('wrong-id', `It answers ${asked}, id ${id}, with another id, or without one.`);
  }
  if ('result' in answer && 'error' in answer)
    found.add('null-member', `Its answer to ${asked} has both a result and an error.`);
  const { result, error } = answer;
  return { result: isJsonObject(result) ? result : undefined, error: error ?? undefined };
}

/** True for an answer, not for a request or a notification. */
export function isAnswer(message: unknown): message is JsonObject {
  return isJsonObject(message) && message.method === undefined && ('result' in message || 'error' in message);
}

function faultsOfFields(result: Result, asked: string, found: Findings): void {
  const { resultType, ttlMs, cacheScope } = result ?? {};
  const odd = [
    ...(resultType === 'complete' ? [] : ['resultType']),
    ...(typeof ttlMs === 'number' && ttlMs >= 0 ? [] : ['ttlMs']),
    ...(cacheScope === 'public' || cacheScope === 'private' ? [] : ['cacheScope']),
  ];
  if (odd.length > 0) found.add('modern-fields', `Its result of ${asked} has no usable ${odd.join(', ')}.`);
}

function hasLargeInteger(text: string): boolean {
  const numbers = text.replace(/"(?:[^"\\]|\\.)*"/g, '').matchAll(/(?<![\d.eE+-])-?(\d{16,})(?![\d.eE])/g);
  return [...numbers].some(([, digits = '']) => !Number.isSafeInteger(Number(digits)));
}

function namesIn({ tools }: JsonObject): string[] {
  return Array.isArray(tools)
    ? tools.flatMap((tool) => (isJsonObject(tool) && typeof tool.name === 'string' ? [tool.name] : []))
    : [];
}

const UNKNOWN_METHOD = 'stagedoor/unknown';

function request(id: number, method: string) {
  return { jsonrpc: '2.0', id, method };
}

function modern(id: number, method: string) {
  const _meta = {
    [META.protocolVersion]: MODERN_VERSIONS[0],
    [META.clientInfo]: GATEWAY_INFO,
    [META.clientCapabilities]: {},
  };
  return { ...request(id, method), params: { _meta } };
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
