// What every modern request says of itself in `_meta`: revision, capabilities, client, log level, progress token.
// Headers that repeat some of it are mirrored-headers.ts. Source: MCP 2026-07-28 basic/index#meta.

import type { ClientProfile } from '../../domain/client.ts';
import { fieldValue, isFields, isJsonObject, type JsonFields, JsonText } from '../../domain/json.ts';
import { RPC } from '../../domain/jsonrpc.ts';
import { logRankOf } from '../../domain/log-levels.ts';
import { META, MODERN_VERSIONS } from '../../domain/mcp.ts';
import { isProfileTooLarge, MOST_PROFILE_UNITS } from '../client-bounds.ts';
import { RpcFailure } from '../rpc-failure.ts';

/** A request's own account of its client. */
export interface Envelope {
  readonly profile: ClientProfile;
  /** Rank of the least severe level it wants to hear; undefined when it wants no log messages. */
  readonly logRank: number | undefined;
  /** Names the request in messages about its progress; undefined when it wants none. */
  readonly progressToken: string | number | JsonText | undefined;
}

/**
 * Reads it. Throws RpcFailure, 400 with -32602, when a required field is missing or one is malformed. Whether the
 * revision is spoken here is another question (`checkVersion`). `clientInfo` must not be required.
 */
export function readEnvelope(params: JsonFields): Envelope {
  const meta = params._meta;
  if (!isFields(meta)) throw badEnvelope('_meta', meta === undefined ? 'missing' : 'must be an object');
  const protocolVersion = meta[META.protocolVersion];
  const capabilities = fieldValue(meta[META.clientCapabilities]);
  const clientInfo = fieldValue(meta[META.clientInfo]) ?? {};
  const { progressToken, [META.logLevel]: logLevel } = meta;
  if (typeof protocolVersion !== 'string') throw badField(META.protocolVersion, protocolVersion, 'a string');
  if (!isJsonObject(capabilities)) throw badField(META.clientCapabilities, capabilities, 'an object');
  if (!isJsonObject(clientInfo)) throw badField(META.clientInfo, clientInfo, 'an object');
  if (progressToken !== undefined && !isToken(progressToken)) {
    throw badField(META.progressToken, progressToken, 'a string or a number');
  }
  const logRank = logRankOf(logLevel);
  if (logLevel !== undefined && logRank === undefined) throw badField(META.logLevel, logLevel, 'a log level');
  if (isProfileTooLarge(capabilities, clientInfo)) {
    const problem = `has with ${META.clientInfo} more than ${MOST_PROFILE_UNITS} characters`;
    throw badEnvelope(META.clientCapabilities, problem);
  }
  const profile = { protocolVersion, capabilities, clientInfo };
  return { profile, logRank, progressToken };
}

/** Throws RpcFailure, 400 with -32022, for a revision that is not spoken here. */
export function checkVersion(requested: string): void {
  const supported = [...MODERN_VERSIONS];
  if (supported.some((version) => version === requested)) return;
  const message = `Unsupported protocol version: ${requested}`;
  throw new RpcFailure(400, { code: RPC.unsupportedVersion, message, data: { supported, requested } });
}

function isToken(value: unknown): value is string | number | JsonText {
  if (value instanceof JsonText) return typeof value.value === 'number';
  return typeof value === 'string' || typeof value === 'number';
}

/** The refusal of a field that is missing or not what it must be: 400 with -32602. */
export function badField(key: string, value: unknown, expected: string): RpcFailure {
  return badEnvelope(key, value === undefined ? 'missing' : `must be ${expected}`);
}

function badEnvelope(key: string, problem: string): RpcFailure {
  const message = `Invalid params: ${key} of the request: ${problem}`;
  return new RpcFailure(400, { code: RPC.invalidParams, message, data: { envelope: { key, problem } } });
}
