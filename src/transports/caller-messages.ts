// The messages between a backend and the callers of a conversation. Every client counts its progress tokens from 0, so
// that those of two callers would collide: the backend gets a token of the gateway, and the caller gets its own token
// back. Also decides which requests of the backend the gateway answers itself.

import type { ExchangeRequest } from '../domain/calls/exchange.ts';
import { notWritable } from '../domain/errors/request-errors.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../domain/json/json.ts';
import {
  acceptsServerRequests,
  CLIENT_CAPABILITIES,
  type ClientAnswer,
  type ClientProfile,
  QUESTION_REFUSALS,
} from '../domain/mcp/client.ts';
import { requestText } from '../domain/mcp/jsonrpc.ts';
import { META } from '../domain/mcp/mcp.ts';

/** The progress token that the caller gave; undefined without one. */
export function callerTokenOf(request: ExchangeRequest): JsonValue | undefined {
  const meta = request.params?._meta;
  return isJsonObject(meta) ? (meta[META.progressToken] ?? undefined) : undefined;
}

/**
 * The message of a request, with its id as the progress token. Throws VALIDATION_ERROR when it cannot be
 * serialized.
 */
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

/**
 * True when the backend gets a progress token. Progress of other requests would have no receiver. Source: ADR
 * 40.
 */
export function reportsProgress(request: ExchangeRequest): boolean {
  return request.wantsProgress === true || callerTokenOf(request) !== undefined;
}

/**
 * The params of a progress notification for the caller: with the caller's token, or without one if it gave
 * none.
 */
export function paramsForCaller(params: JsonObject, callerToken: JsonValue | undefined): JsonObject {
  const { progressToken: _, ...rest } = params;
  return callerToken === undefined ? rest : { progressToken: callerToken, ...rest };
}

/**
 * The gateway's answer to a request of a legacy backend, or 'ask' when the client has to answer. The gateway
 * answers `ping`; it refuses requests for undeclared capabilities, and all others in a conversation without a client.
 * Unknown methods are passed to clients that declare any of these capabilities. Source: MCP 2025-11-25
 * basic/lifecycle#operation: only capabilities that were negotiated.
 */
export function gatewayAnswerTo(
  method: string,
  profile: Pick<ClientProfile, 'capabilities'> | undefined,
): ClientAnswer | 'ask' {
  if (method === 'ping') return { result: {} };
  if (profile === undefined) return QUESTION_REFUSALS.undeclared;
  const capability = CLIENT_CAPABILITIES[method];
  const isDeclared =
    capability === undefined
      ? acceptsServerRequests(profile)
      : profile.capabilities[capability] !== undefined;
  return isDeclared ? 'ask' : QUESTION_REFUSALS.undeclared;
}

/** The time after the first call of another caller, in ms, in which a message may still belong to an earlier call. */
const MIXED_MS = 60_000;

/**
 * Remembers the latest caller of a shared backend. A message that names no call may belong to a call that has ended:
 * it is passed to a caller only while no other caller has called for a while.
 */
export class RecentCallers {
  readonly #now: () => number;
  #callerId: string | undefined;
  #mixedUntilMs = Number.NEGATIVE_INFINITY;

  /** `now`: a monotonic clock in ms. */
  constructor(now: () => number) {
    this.#now = now;
  }

  get isSingle(): boolean {
    return this.#now() >= this.#mixedUntilMs;
  }

  /** Called when a call begins. A call without a caller, such as a probe, does not count as another caller. */
  note(callerId: string | undefined): void {
    if (callerId === undefined || callerId === this.#callerId) return;
    if (this.#callerId !== undefined) this.#mixedUntilMs = this.#now() + MIXED_MS;
    this.#callerId = callerId;
  }
}
