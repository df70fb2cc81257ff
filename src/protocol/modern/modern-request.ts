// One request of a modern client, read and checked, with its `_meta`, and the keys that bind encrypted texts to it.
// modern-call.ts carries it.

import { hash } from 'node:crypto';
import {
  canonicalText,
  definedFields,
  fieldValue,
  isFields,
  isJsonObject,
  type JsonFields,
  type JsonObject,
  JsonText,
} from '../../domain/json/json.ts';
import { hasMoreValues } from '../../domain/json/json-scanner.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { ClientProfile, Owner } from '../../domain/mcp/client.ts';
import { type JsonRpcId, RPC } from '../../domain/mcp/jsonrpc.ts';
import { isLogLevel, META, MODERN_VERSIONS } from '../../domain/mcp/mcp.ts';
import { cutText } from '../../domain/text.ts';
import {
  declaredFields,
  isProfileTooLarge,
  MAX_PROFILE_UNITS,
  MAX_PROFILE_VALUES,
} from '../client-bounds.ts';
import type { Backends } from '../endpoint-backends.ts';
import { RpcFailure } from '../rpc.ts';

/** A request, its owner, and the backends of its path. */
export interface ModernRequest {
  readonly id: JsonRpcId;
  readonly method: string;
  readonly params: JsonFields;
  readonly envelope: Envelope;
  readonly owner: Owner;
  readonly pathName: string | undefined;
  readonly backends: Backends;
}

/** Arguments with more values than this are compared as text. */
const MAX_CANONICAL_VALUES = 10_000;

/** A key for what one caller has at one path, such as a state or a cursor; `purpose` says what. */
export function pathKey(
  purpose: string,
  { owner, pathName }: Pick<ModernRequest, 'owner' | 'pathName'>,
): string {
  return JSON.stringify([purpose, pathName ?? null, owner.id]);
}

/**
 * A key that a call shares with its retries: it covers the arguments, but not `_meta`, state and responses.
 * Not for the hot path.
 */
export function callKey(request: ModernRequest): string {
  const { method, params } = request;
  const { name = null, uri = null, arguments: args = {} } = params;
  const target = JSON.stringify([name, uri].map(fieldValue));
  const text = args instanceof JsonText ? comparedText(args) : canonicalText(args);
  return `${pathKey(method, request)}${hash('sha256', target + text, 'base64url')}`;
}

/**
 * The text by which arguments are compared: without regard to the order of keys, if the parsed value
 * represents the whole text. That is not so with a repeated key, of which a parser drops one value; such a text is
 * compared as it is. Source: ADR 241.
 */
function comparedText(args: JsonText): string {
  const { text } = args;
  if (hasMoreValues(args.bytes, MAX_CANONICAL_VALUES)) return text;
  const value = fieldValue(args);
  return JSON.stringify(value) === text ? canonicalText(value) : text;
}

/** The refusal of `params`, as an answer like those of backends, hence with status 200. */
export function invalidParams(message: string, data?: JsonObject): RpcFailure {
  return new RpcFailure(200, { code: RPC.invalidParams, message, ...definedFields({ data }) });
}

// The `_meta` of every modern request. headers.ts compares the headers that repeat some of it. Source: MCP 2026-07-28
// basic/index#meta.

interface Envelope {
  readonly profile: ClientProfile;
  /** The least severe level of log messages that the client wants; undefined for none. */
  readonly logLevel: string | undefined;
  /** Identifies the request in progress notifications; undefined when the client wants no progress. */
  readonly progressToken: string | number | JsonText | undefined;
}

/**
 * Reads the envelopes of requests. As a client repeats its profile in each request, a profile with the same texts as
 * in the request before is not parsed again.
 */
export class EnvelopeReader {
  #latest: { readonly profile: ClientProfile; readonly texts: readonly (string | undefined)[] } | undefined;

  /**
   * Reads `_meta`. Throws RpcFailure (400, -32602) when a required field (not `clientInfo`) is missing, or any is
   * malformed.
   */
  read(params: JsonFields): Envelope {
    const meta = params._meta;
    if (!isFields(meta)) throw badEnvelope('_meta', meta === undefined ? 'missing' : 'must be an object');
    const progressToken = meta[META.progressToken] ?? undefined;
    const logLevel = meta[META.logLevel] ?? undefined;
    const profile = this.#profileIn(meta);
    if (progressToken !== undefined && !isToken(progressToken)) {
      throw badField(META.progressToken, progressToken, 'a string or a number');
    }
    if (logLevel !== undefined && !isLogLevel(logLevel))
      throw badField(META.logLevel, logLevel, 'a log level');
    return { profile, logLevel, progressToken };
  }

  #profileIn(meta: JsonFields): ClientProfile {
    const protocolVersion = meta[META.protocolVersion];
    const [capabilities, info] = [meta[META.clientCapabilities], meta[META.clientInfo]];
    const latest = this.#latest;
    if (
      latest !== undefined &&
      latest.profile.protocolVersion === protocolVersion &&
      hasText(capabilities, latest.texts[0]) &&
      hasText(info, latest.texts[1])
    )
      return latest.profile;
    if (typeof protocolVersion !== 'string')
      throw badField(META.protocolVersion, protocolVersion, 'a string');
    const profile = profileOf(protocolVersion, fieldValue(capabilities), fieldValue(info) ?? {});
    if (isText(capabilities) && (info === undefined || isText(info)))
      this.#latest = { profile, texts: [capabilities.text, info?.text] };
    return profile;
  }
}

function profileOf(protocolVersion: string, capabilities: unknown, clientInfo: unknown): ClientProfile {
  if (!isJsonObject(capabilities)) throw badField(META.clientCapabilities, capabilities, 'an object');
  if (!isJsonObject(clientInfo)) throw badField(META.clientInfo, clientInfo, 'an object');
  if (isProfileTooLarge(capabilities, clientInfo)) {
    const most = `${MAX_PROFILE_VALUES} values or ${MAX_PROFILE_UNITS} characters`;
    const problem = `has, together with ${META.clientInfo}, more than ${most}`;
    throw badEnvelope(META.clientCapabilities, problem);
  }
  return {
    protocolVersion,
    capabilities: declaredFields(capabilities),
    clientInfo: declaredFields(clientInfo),
  };
}

function isText(field: JsonFields[string]): field is JsonText {
  return field instanceof JsonText;
}

/** True for a field that is kept as this text, or for an absent one when `text` is undefined. */
function hasText(field: JsonFields[string], text: string | undefined): boolean {
  return isText(field) ? field.text === text : field === undefined && text === undefined;
}

/** Throws RpcFailure (400, -32022) for an unsupported revision. */
export function checkVersion(requested: string): void {
  const supported = [...MODERN_VERSIONS];
  if (supported.some((version) => version === requested)) return;
  const message = `Unsupported protocol version: ${cutText(requested, LIMITS.locCharacters)}`;
  throw new RpcFailure(400, { code: RPC.unsupportedVersion, message, data: { supported, requested } });
}

function isToken(value: unknown): value is string | number | JsonText {
  if (value instanceof JsonText) return typeof value.value === 'number';
  return typeof value === 'string' || typeof value === 'number';
}

/** The refusal of a missing or invalid field: 400 with -32602. */
export function badField(key: string, value: unknown, expected: string): RpcFailure {
  return badEnvelope(key, value === undefined ? 'missing' : `must be ${expected}`);
}

function badEnvelope(key: string, problem: string): RpcFailure {
  const message = `Invalid params: ${key} of the request: ${problem}`;
  return new RpcFailure(400, { code: RPC.invalidParams, message, data: { envelope: { key, problem } } });
}
