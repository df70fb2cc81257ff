// Determines the era of a backend and agrees on a revision: by `initialize`, `server/discover`, or neither. It decides the order of
// attempts and what counts as evidence; the channel carries the messages. Also what all transports do to messages: metadata and
// headers of an era, progress tokens, refusals of requests of the backend.

import {
  acceptsServerRequests,
  CLIENT_CAPABILITIES,
  type ClientProfile,
  type ClientReply,
} from '../domain/client.ts';
import { backendUnavailable, endpointUnavailable, notWritable } from '../domain/error-catalogue.ts';
import { GatewayError } from '../domain/errors.ts';
import { type ExchangeRequest, type FinalEvent, parsedResult } from '../domain/exchange.ts';
import {
  definedFields,
  isFields,
  isJsonObject,
  type JsonFields,
  type JsonObject,
  type JsonText,
  type JsonValue,
} from '../domain/json.ts';
import { type JsonRpcError, METHOD_NOT_FOUND, RPC, requestText } from '../domain/jsonrpc.ts';
import type { Era, Peer, PinnedEra, ServerInfo } from '../domain/mcp.ts';
import { ACCEPTED_LEGACY_VERSIONS, LEGACY_VERSIONS, META, METHODS, MODERN_VERSIONS } from '../domain/mcp.ts';
import { encodeHeader } from '../domain/text.ts';

export interface HandshakeChannel {
  /** Rejects with GatewayError when the connection broke. The request has the metadata of `spoken`. */
  request(request: ExchangeRequest, spoken: Spoken): Promise<HandshakeAnswer>;
  /** Notifies the backend, in the legacy era, that the handshake is complete. */
  initialized(protocolVersion: string): Promise<void> | void;
}

/** `none`: no JSON-RPC came, which refuses the method like an error; `detail` is a sentence without its full stop. */
export type HandshakeAnswer = FinalEvent | RefusalError | NoAnswer;

interface NoAnswer {
  readonly kind: 'none';
  readonly detail: string;
  /** What a server said that refused the request in words, without JSON-RPC. */
  readonly said?: string;
  /** The HTTP status, and the wait that its server asked for, in ms. */
  readonly status?: number;
  readonly waitMs?: number | undefined;
}

type HandshakeRefusal = NoAnswer | RefusalError;

export interface RefusalError {
  readonly kind: 'error';
  readonly error: JsonRpcError;
  /** Its message for callers, without secrets; by default they get its code only. */
  readonly said?: string;
  /** As of NoAnswer; undefined with a success. */
  readonly status?: number;
  readonly waitMs?: number | undefined;
}

export interface HandshakeOptions {
  readonly client: ClientInfo;
  /**
   * The era that is tried first. `modern`: it is tried again after the legacy one was refused, too, unless its refusal was JSON-RPC,
   * because a channel does not wait long for the first answer, and the backend may be starting.
   */
  readonly first: 'legacy' | 'modern';
  /** The client of the conversation. Only `initialize` declares it, so it is the only attempt, whatever `first` says. */
  readonly profile?: ClientProfile | undefined;
  /** The only era that is tried. Default: both. Source: ADR 121. */
  readonly era?: PinnedEra | undefined;
  /** With a profile: a conversation of the modern era is accepted, too. Default false. */
  readonly mayBeModern?: boolean | undefined;
}

type HandshakeAttempt = (
  channel: HandshakeChannel,
  options: HandshakeOptions,
) => Promise<Peer | HandshakeRefusal>;

/**
 * Shakes hands and resolves with the result. Each refusal leads to the next attempt; a backend that refuses both handshakes but
 * answers `ping` or `tools/list` is *bare*. Rejects with BACKEND_UNAVAILABLE when all attempts were refused, or as the channel
 * rejects. It sets no deadline.
 * Sources: MCP 2025-11-25 basic/lifecycle; 2026-07-28 basic/versioning; ADR 10.
 */
export async function shakeHands(channel: HandshakeChannel, options: HandshakeOptions): Promise<Peer> {
  const refusals = new Map<HandshakeAttempt, HandshakeRefusal>();
  for (const attempt of attemptsOf(options)) {
    if (refusals.get(attempt)?.kind === 'error') continue; // it would refuse again
    if (refusals.size > 1 && areEqual([...refusals.values()])) break;
    const outcome = await attempt(channel, options);
    if ('era' in outcome) return outcome;
    refusals.set(attempt, outcome); // the last refusal of a repeated attempt counts
  }
  // A new object for each session, because a restart is detected by comparing objects.
  const isTelling = !areEqual([...refusals.values()]);
  const mayBeBare = options.profile === undefined && options.era !== 'modern' && isTelling;
  if (mayBeBare && (await answersPlainMethods(channel)))
    return { ...NO_PEER, serverInfo: serverInfoIn(undefined), capabilities: { tools: {} } };
  throw refusedBy([...refusals.values()]);
}

/** True when every method got one of these statuses, and no JSON-RPC: the address refuses, not the server. Source: ADR 127. */
function areEqual(refusals: readonly HandshakeRefusal[]): boolean {
  const [first] = refusals;
  if (first?.kind !== 'none' || !NO_SERVER.has(first.status ?? 0)) return false;
  return refusals.every((each) => each.kind === 'none' && each.status === first.status);
}

/** Not 400, which bare servers answer, too. */
const NO_SERVER: ReadonlySet<number> = new Set([404, 405, 500, 501, 505]);

/** True for the rejection of `shakeHands` when the backend answered, but refused every attempt. */
export function isRefusal(thrown: unknown): boolean {
  return thrown instanceof GatewayError && thrown.facts.cause instanceof HandshakeRefused;
}

class HandshakeRefused extends Error {}

export const NO_PEER: Peer = {
  era: 'bare',
  protocolVersion: '',
  serverInfo: { name: '', version: '' },
  capabilities: {},
  greeting: {},
};

function attemptsOf({ first, profile, mayBeModern, era }: HandshakeOptions): readonly HandshakeAttempt[] {
  if (era !== undefined) return [era === 'legacy' ? initialize : discover];
  if (profile !== undefined && mayBeModern !== true) return [initialize];
  return first === 'legacy' ? [initialize, discover] : [discover, initialize, discover];
}

/** Params of `initialize`. A client of the modern era may have no name, and its revision cannot be used here. */
function initializeParams({ client, profile }: HandshakeOptions): JsonObject {
  const { protocolVersion = '', capabilities = {}, clientInfo = {} } = profile ?? {};
  return {
    protocolVersion: ACCEPTED_LEGACY_VERSIONS.includes(protocolVersion)
      ? protocolVersion
      : LEGACY_VERSIONS[0],
    capabilities,
    clientInfo: typeof clientInfo.name === 'string' ? clientInfo : { ...client },
  };
}

const initialize: HandshakeAttempt = async (channel, options) => {
  const params = initializeParams(options);
  let answer = await offer(channel, params);
  if (answer.kind !== 'result') {
    for (const protocolVersion of otherRevisions(answer, params.protocolVersion)) {
      answer = await offer(channel, { ...params, protocolVersion });
      if (answer.kind === 'result') break;
    }
  }
  if (answer.kind !== 'result') return answer;
  const result = readResult(answer.result);
  const { protocolVersion } = result;
  if (typeof protocolVersion !== 'string' || !ACCEPTED_LEGACY_VERSIONS.includes(protocolVersion)) {
    throw handshakeRefused('it answered initialize with a revision the gateway does not speak');
  }
  await channel.initialized(protocolVersion);
  return peerOf('legacy', protocolVersion, result, result.serverInfo);
};

function offer(channel: HandshakeChannel, params: JsonObject): Promise<HandshakeAnswer> {
  return channel.request({ method: 'initialize', params }, UNSPOKEN.legacy);
}

/**
 * The revisions to offer after a refusal: those that it names, else, if it is about the revision, the older ones; only the next
 * older one if the params are refused without a word about the revision, which may be the cause. The specification wants servers
 * to answer with a revision of their own, but some refuse.
 */
function otherRevisions(refusal: HandshakeRefusal, refused: unknown): readonly string[] {
  const { code, message, data } = refusal.kind === 'error' ? refusal.error : { message: refusal.said ?? '' };
  const text = `${message} ${JSON.stringify(data ?? '')}`.slice(0, MAX_REFUSAL_UNITS);
  const others = LEGACY_VERSIONS.filter((version) => version !== refused);
  const named = others.filter((version) => text.includes(version));
  if (named.length > 0) return named;
  // A server of the modern era alone refuses every one.
  const isModern =
    code === RPC.unsupportedVersion || MODERN_VERSIONS.some((version) => text.includes(version));
  if (isModern) return [];
  const older = others.filter((version) => version < String(refused));
  if (text.includes(String(refused)) || ABOUT_REVISION.test(text)) return older;
  return code === RPC.invalidParams ? older.slice(0, 1) : [];
}

const ABOUT_REVISION =
  /protocol.{0,20}(?:version|support|new|old|match)|version.{0,40}support|support.{0,40}version|revision/i;
const MAX_REFUSAL_UNITS = 10_000;

const discover: HandshakeAttempt = async (channel, { client }) => {
  let protocolVersion: string = MODERN_VERSIONS[0];
  let answer = await askDiscover(channel, client, protocolVersion);
  if (answer.kind === 'none') return answer;
  if (answer.kind === 'error') {
    // Asks again only after a version error that lists one of our revisions.
    const { code, data } = answer.error;
    const isAboutVersion = code === RPC.unsupportedVersion && isJsonObject(data);
    const shared = isAboutVersion ? sharedVersion(data.supported) : undefined;
    if (shared === undefined) return answer;
    protocolVersion = shared;
    answer = await askDiscover(channel, client, protocolVersion);
    if (answer.kind !== 'result') return answer;
  }
  const result = readResult(answer.result);
  const version = sharedVersion(result.supportedVersions);
  if (version === undefined) return NOT_MODERN;
  const meta = isJsonObject(result._meta) ? result._meta : {};
  return peerOf('modern', version, result, meta[META.serverInfo] ?? result.serverInfo);
};

/** Stands for a result of `server/discover` without one of our revisions, perhaps of a server that accepts every method. */
const NOT_MODERN: HandshakeRefusal = {
  kind: 'error',
  error: { code: RPC.unsupportedVersion, message: 'no shared modern revision' },
};

function askDiscover(channel: HandshakeChannel, client: ClientInfo, protocolVersion: string) {
  const spoken = { era: 'modern', protocolVersion } as const;
  return channel.request(withEraMetadata({ method: 'server/discover' }, spoken, client), spoken);
}

function sharedVersion(offered: unknown): string | undefined {
  return Array.isArray(offered) ? MODERN_VERSIONS.find((version) => offered.includes(version)) : undefined;
}

async function answersPlainMethods(channel: HandshakeChannel): Promise<boolean> {
  for (const method of ['ping', 'tools/list']) {
    const answer = await channel.request({ method }, UNSPOKEN.bare);
    if (answer.kind === 'result') return true;
  }
  return false;
}

function peerOf(era: Era, protocolVersion: string, result: JsonObject, serverInfo: unknown): Peer {
  return {
    era,
    protocolVersion,
    serverInfo: serverInfoIn(serverInfo),
    capabilities: isJsonObject(result.capabilities) ? result.capabilities : {},
    greeting: result,
  };
}

function serverInfoIn(value: unknown): ServerInfo {
  const { name, version, ...more } = isJsonObject(value) ? value : {};
  const isNamed = typeof name === 'string' && name !== '';
  return { name: isNamed ? name : 'unnamed', version: typeof version === 'string' ? version : '', ...more };
}

/** It is kept as long as the session with the backend. */
const MAX_GREETING = { bytes: 256 * 1024, values: 2_000 };

function readResult(text: JsonText): JsonObject {
  try {
    const value = parsedResult(text, 'exactValue', MAX_GREETING);
    if (isJsonObject(value)) return value;
  } catch {
    // not JSON, or too large
  }
  const reason = 'it answered the handshake with something that is not a JSON object, or too large';
  throw backendUnavailable(reason, { delivered: 'no' });
}

/** Error codes say that there is an MCP server, and why it refused; without a code the reason is what came instead. */
function refusedBy(refusals: readonly HandshakeRefusal[]): GatewayError {
  const errors = refusals.filter((refusal) => refusal.kind === 'error');
  const none = refusals.findLast((refusal) => refusal.kind === 'none');
  const { detail = '' } = none ?? {};
  if (errors.length === 0) return handshakeRefused(`${detail}: not an MCP server`, none);
  const codes = errors.map(({ error }) => error.code).join(' and ');
  const said = [...new Set(errors.flatMap(({ said = '' }) => (said === '' ? [] : [`"${said}"`])))].join(', ');
  const refusal = `it refused the handshake (codes ${codes}${said === '' ? '' : `: ${said}`})`;
  return handshakeRefused(detail === '' ? refusal : `${refusal}; ${detail}`, refusals.at(-1));
}

function handshakeRefused(
  reason: string,
  { status, waitMs }: Pick<NoAnswer, 'status' | 'waitMs'> = {},
): GatewayError {
  return endpointUnavailable(reason, {
    delivered: 'no',
    suspicious: true,
    cause: new HandshakeRefused(reason),
    ...definedFields({ backendStatus: status, backendWaitMs: waitMs }),
  });
}

// Progress tokens: every client counts from 0, so tokens of two callers collide. The backend gets a token of the gateway, and the
// caller gets its own token back.

export function callerTokenOf(request: ExchangeRequest): JsonValue | undefined {
  const meta = request.params?._meta;
  return isJsonObject(meta) ? (meta[META.progressToken] ?? undefined) : undefined;
}

/** The message of a request, with its id as the progress token. Throws VALIDATION_ERROR when it cannot be serialized. */
export function textWithToken(request: ExchangeRequest, id: number): string {
  const { method, params } = request;
  try {
    if (!reportsProgress(request)) return requestText(id, method, params);
    const meta = isJsonObject(params?._meta) ? params._meta : undefined;
    return requestText(id, method, { ...params, _meta: { ...meta, [META.progressToken]: id } });
  } catch (thrown) {
    throw notWritable(thrown);
  }
}

/** True when the backend gets a progress token. Progress of other requests has no receiver and is dropped. Source: ADR 112. */
export function reportsProgress(request: ExchangeRequest): boolean {
  return request.wantsProgress === true || callerTokenOf(request) !== undefined;
}

/** Params of a progress notification for the caller: with its token, or without one if it gave none. */
export function paramsForCaller(params: JsonObject, callerToken: JsonValue | undefined): JsonObject {
  const { progressToken: _, ...rest } = params;
  return callerToken === undefined ? rest : { progressToken: callerToken, ...rest };
}

/**
 * The answer to a request of a legacy backend, or 'ask': then the client answers. The gateway answers `ping`, and refuses
 * requests for undeclared capabilities, and all others in a conversation without a client. Other methods are passed to clients with
 * any of these capabilities.
 * Source: MCP 2025-11-25 basic/lifecycle#operation: only capabilities that were negotiated.
 */
export function gatewayReplyTo(
  method: string,
  profile: Pick<ClientProfile, 'capabilities'> | undefined,
): ClientReply | 'ask' {
  if (method === 'ping') return { result: {} };
  if (profile === undefined) return REFUSED;
  const capability = CLIENT_CAPABILITIES[method];
  const isDeclared =
    capability === undefined
      ? acceptsServerRequests(profile)
      : profile.capabilities[capability] !== undefined;
  return isDeclared ? 'ask' : REFUSED;
}

export const REFUSED: ClientReply = { error: METHOD_NOT_FOUND };

/** For this time after the first call of another caller, a message may still belong to an earlier call. */
const MIXED_MS = 60_000;

/**
 * The latest caller of a shared backend. A message that names no call may belong to a call that has ended, so it goes to a caller
 * only while no other caller has called for a while.
 */
export class RecentCallers {
  readonly #now: () => number;
  #caller: string | undefined;
  #mixedUntilMs = Number.NEGATIVE_INFINITY;

  /** `now` is a monotonic clock in ms. */
  constructor(now: () => number) {
    this.#now = now;
  }

  get isSingle(): boolean {
    return this.#now() >= this.#mixedUntilMs;
  }

  /** A call begins. A call without a caller, such as a probe, does not count as another caller. */
  note(caller: string | undefined): void {
    if (caller === undefined || caller === this.#caller) return;
    if (this.#caller !== undefined) this.#mixedUntilMs = this.#now() + MIXED_MS;
    this.#caller = caller;
  }
}

export interface ClientInfo {
  readonly name: string;
  readonly version: string;
}

export type Spoken = Pick<Peer, 'era' | 'protocolVersion'>;

/** No revision is agreed on. */
const UNSPOKEN = {
  legacy: { era: 'legacy', protocolVersion: '' },
  bare: { era: 'bare', protocolVersion: '' },
} as const;

/**
 * Adds the metadata of an era to a request. Modern: `_meta` names the revision, the client and its capabilities; client and
 * capabilities that the caller gave are kept, because the backend may only ask for what that client supports. Legacy: the fields
 * of its trace, if any. Bare: nothing. Source: MCP 2026-07-28 basic/index#meta.
 */
export function withEraMetadata(request: ExchangeRequest, peer: Spoken, client: ClientInfo): ExchangeRequest {
  const { trace, params } = request;
  trace?.speaks(peer.protocolVersion);
  if (peer.era === 'bare' || (peer.era === 'legacy' && trace === undefined)) return request;
  const own = isFields(params?._meta) ? params._meta : {};
  // Legacy servers ignore the fields of a trace. Source: SEP-414; ADR 76.
  if (peer.era === 'legacy')
    return { ...request, params: { ...params, _meta: { ...own, ...trace?.fields } } };
  if (trace === undefined && isComplete(own, peer)) return request; // that of a modern client, nearly always
  const meta = {
    [META.clientCapabilities]: {},
    [META.clientInfo]: { name: client.name, version: client.version },
    ...own,
    [META.protocolVersion]: peer.protocolVersion,
    ...trace?.fields,
  };
  return { ...request, params: { ...params, _meta: meta } };
}

function isComplete(meta: JsonFields, { protocolVersion }: Spoken): boolean {
  return (
    meta[META.protocolVersion] === protocolVersion &&
    meta[META.clientCapabilities] !== undefined &&
    meta[META.clientInfo] !== undefined
  );
}

/**
 * Headers of one HTTP request. Modern: revision, method, the name or URI for methods that have one, and the `mcp-param-*` headers
 * of the caller, but none of its other headers.
 * Legacy: the negotiated revision, none before the handshake. Bare: none.
 * Sources: MCP 2026-07-28 basic/transports/streamable-http#request-metadata; 2025-11-25 #protocol-version-header.
 */
export function eraHeaders(request: ExchangeRequest, peer: Spoken): Record<string, string> {
  if (peer.era === 'bare' || peer.protocolVersion === '') return {};
  if (peer.era === 'legacy') return { 'mcp-protocol-version': peer.protocolVersion };
  const headers: Record<string, string> = {
    'mcp-protocol-version': peer.protocolVersion,
    'mcp-method': request.method,
  };
  const field = METHODS[request.method]?.nameField;
  const name = field === undefined ? undefined : request.params?.[field];
  if (typeof name === 'string') headers['mcp-name'] = encodeHeader(name);
  for (const [given, value] of Object.entries(request.headers ?? {})) {
    if (MIRRORED.test(given)) headers[given] = value;
  }
  return headers;
}

/** Headers that mirror arguments of a tool. Source: MCP 2026-07-28, custom headers from tool parameters. */
const MIRRORED = /^mcp-param-/i;
