// Finds the era of a backend and agrees on a revision: by `initialize`, by `server/discover`, or by neither. It decides the order
// of attempts and the answers that count as evidence; the channel carries the messages. Later requests: era-metadata.ts,
// caller-messages.ts.

import type { ExchangeRequest } from '../domain/calls/exchange.ts';
import { type FinalEvent, isObjectText } from '../domain/calls/exchange-event.ts';
import { parsedResult } from '../domain/calls/parsed-result.ts';
import { backendUnavailable, endpointUnavailable } from '../domain/errors/backend-errors.ts';
import { GatewayError } from '../domain/errors/errors.ts';
import { isJsonObject, type JsonObject, type JsonText } from '../domain/json/json.ts';
import type { ClientProfile } from '../domain/mcp/client.ts';
import { type JsonRpcError, RPC } from '../domain/mcp/jsonrpc.ts';
import type { Era, Handshake, PinnedEra, ServerInfo } from '../domain/mcp/mcp.ts';
import { ACCEPTED_LEGACY_VERSIONS, LEGACY_VERSIONS, META, MODERN_VERSIONS } from '../domain/mcp/mcp.ts';
import { plainLine } from '../domain/text.ts';
import { type ClientInfo, type Spoken, withEraMetadata } from './era-metadata.ts';

export interface HandshakeChannel {
  /** Sends one request with the metadata of `spoken`. Throws GatewayError when the connection breaks. */
  request(request: ExchangeRequest, spoken: Spoken): Promise<HandshakeAnswer>;
  /** Reports the end of the handshake to the backend, in the legacy era. */
  initialized(protocolVersion: string): Promise<void> | void;
}

/**
 * The answer to one request of a handshake. `none`: no JSON-RPC came, which counts as a refusal like an error;
 * `detail` is a sentence without its full stop.
 */
export type HandshakeAnswer = FinalEvent | HandshakeErrorAnswer | NoAnswer;

interface NoAnswer {
  readonly kind: 'none';
  readonly detail: string;
  /** The text by which a server refused the request, without JSON-RPC. */
  readonly said?: string;
  /** The HTTP status, and the wait in ms that the server asked for. */
  readonly status?: number;
  readonly waitMs?: number | undefined;
}

type HandshakeRefusal = NoAnswer | HandshakeErrorAnswer;

export interface HandshakeErrorAnswer {
  readonly kind: 'error';
  readonly error: JsonRpcError;
  /** The message for callers, without secrets. Default: callers get only the code. */
  readonly said?: string;
  /** The status as in NoAnswer; undefined for a successful one. */
  readonly status?: number;
  readonly waitMs?: number | undefined;
}

export interface HandshakeOptions {
  readonly client: ClientInfo;
  /**
   * The era that is tried first. `modern` is tried again after the legacy era was refused, unless its own refusal was
   * JSON-RPC: a channel does not wait long for the first answer, and the backend may still be starting.
   */
  readonly first: 'legacy' | 'modern';
  /**
   * The client of the conversation. Only `initialize` declares it, so it is the only attempt, whatever `first` says,
   * unless `mayBeModern` or `era` allows another.
   */
  readonly profile?: ClientProfile | undefined;
  /** The only era that is tried. Default: both. Source: ADR 10. */
  readonly era?: PinnedEra | undefined;
  /** True when a conversation of the modern era is accepted, too, for a profile. Default: false. */
  readonly mayBeModern?: boolean | undefined;
}

type HandshakeAttempt = (
  channel: HandshakeChannel,
  options: HandshakeOptions,
) => Promise<Handshake | HandshakeRefusal>;

/**
 * Shakes hands and resolves with the result. Each refusal leads to the next attempt; a backend that refuses both handshakes but
 * answers `ping` or `tools/list` is *bare*. Throws BACKEND_UNAVAILABLE when all attempts were refused, or as the channel
 * rejects. It sets no deadline.
 * Sources: MCP 2025-11-25 basic/lifecycle; 2026-07-28 basic/versioning; ADR 10.
 */
export async function shakeHands(channel: HandshakeChannel, options: HandshakeOptions): Promise<Handshake> {
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
    return { ...NO_HANDSHAKE, serverInfo: serverInfoIn(undefined), capabilities: { tools: {} } };
  throw refusedBy([...refusals.values()]);
}

/**
 * True when all methods got one of these statuses and no JSON-RPC: the address refuses, not an MCP server.
 * Source: ADR 109.
 */
function areEqual(refusals: readonly HandshakeRefusal[]): boolean {
  const [first] = refusals;
  if (first?.kind !== 'none' || !NO_SERVER.has(first.status ?? 0)) return false;
  return refusals.every((each) => each.kind === 'none' && each.status === first.status);
}

/** The statuses of an address without a server. Not 400, which bare servers answer, too. */
const NO_SERVER: ReadonlySet<number> = new Set([404, 405, 500, 501, 505]);

/** True for a rejection of `shakeHands` where the backend answered, but refused every attempt. */
export function isRefusal(thrown: unknown): boolean {
  return thrown instanceof GatewayError && thrown.facts.cause instanceof HandshakeRefused;
}

class HandshakeRefused extends Error {}

export const NO_HANDSHAKE: Handshake = {
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

/**
 * The params of `initialize`. A client of the modern era may have no name, and its revision cannot be used
 * here.
 */
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

/** The most characters of an unknown revision that are shown. */
const MAX_SHOWN_REVISION = 32;

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
  if (typeof protocolVersion !== 'string')
    throw handshakeRefused('it answered initialize without a revision');
  if (!ACCEPTED_LEGACY_VERSIONS.includes(protocolVersion)) {
    const named = plainLine(protocolVersion.slice(0, MAX_SHOWN_REVISION));
    throw handshakeRefused(`it answered initialize with "${named}", a revision the gateway does not speak`);
  }
  await channel.initialized(protocolVersion);
  return handshakeOf('legacy', protocolVersion, result, result.serverInfo);
};

function offer(channel: HandshakeChannel, params: JsonObject): Promise<HandshakeAnswer> {
  return channel.request({ method: 'initialize', params }, UNSPOKEN.legacy);
}

/**
 * The revisions to offer after a refusal: the revisions that it names; otherwise the older ones if it is about the
 * revision; only the next older one if it refuses the params without a word about the revision, which may be the
 * cause. The specification wants servers to answer with a revision of their own, but some refuse.
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
  if (!isObjectText(answer.result)) return NOT_MODERN;
  const result = readResult(answer.result);
  const version = sharedVersion(result.supportedVersions);
  if (version === undefined) return NOT_MODERN;
  const meta = isJsonObject(result._meta) ? result._meta : {};
  return handshakeOf('modern', version, result, meta[META.serverInfo] ?? result.serverInfo);
};

/** Stands for a result of `server/discover` without a shared revision, perhaps of a server that accepts every method. */
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

function handshakeOf(era: Era, protocolVersion: string, result: JsonObject, serverInfo: unknown): Handshake {
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

/** The bounds of a backend's handshake result, which is kept as long as the session with the backend. */
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

/**
 * The error after all attempts were refused. Error codes show that there is an MCP server, and why it
 * refused; without a code, the reason describes the answer.
 */
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
    health: 'suspicious',
    cause: new HandshakeRefused(reason),
    ...(status === undefined ? {} : { refusal: { status, waitMs } }),
  });
}

/** The state before a revision is agreed on. */
const UNSPOKEN = {
  legacy: { era: 'legacy', protocolVersion: '' },
  bare: { era: 'bare', protocolVersion: '' },
} as const;
