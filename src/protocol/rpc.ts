// JSON-RPC messages for clients as text, and failures of the MCP endpoint (JSON-RPC errors with an HTTP status). The
// bytes of a result are copied from the answer of the backend and never parsed. Errors of the gateway are converted
// here; error answers of backends are not failures, and pass unchanged.

import { asGatewayError, type ErrorCode, GatewayError, rpcCodeOf } from '../domain/errors/errors.ts';
import { type JsonFields, type JsonObject, type JsonText, parseExact } from '../domain/json/json.ts';
import { idValue, type JsonRpcError, type JsonRpcId, RPC, readId } from '../domain/mcp/jsonrpc.ts';

/** A refusal: thrown before the answer has begun, or written in place of an awaited answer. */
export class RpcFailure extends Error {
  /** The HTTP status, if the answer has not begun yet. */
  readonly status: number;
  readonly error: JsonRpcError;
  /** The id of the request that it answers; null when it answers none, or must not be taken for an answer. */
  readonly id: JsonRpcId | null;
  /** Headers as names and values, alternating. */
  readonly headers: readonly string[];

  constructor(
    status: number,
    error: JsonRpcError,
    options: {
      readonly id?: JsonRpcId | null;
      readonly headers?: readonly string[];
      readonly cause?: unknown;
    } = {},
  ) {
    const { id = null, headers = [], cause } = options;
    super(error.message, cause === undefined ? undefined : { cause });
    this.name = 'RpcFailure';
    this.status = status;
    this.error = error;
    this.id = id;
    this.headers = headers;
  }

  /** The error code of the gateway; undefined for a failure that only JSON-RPC defines. */
  get errorCode(): ErrorCode | undefined {
    return this.cause instanceof GatewayError ? this.cause.code : undefined;
  }

  get body(): string {
    return errorMessage(this.id, this.error);
  }
}

/**
 * Converts anything thrown into a failure; a failure itself only gets a missing id. The code is the one of JSON-RPC
 * if there is one, otherwise the HTTP status, so that no error of the gateway is in the range -32768..-32000, which
 * others use. `data` has `error_code`, and where known `status` (of the backend), `instance_id`,
 * `retry_after_seconds` and `delivered` (`unknown`: the call may have happened). It does not show how instances are
 * run. Source: MCP 2026-07-28 basic/index#error-codes; ADR 5.
 */
export function rpcFailureOf(thrown: unknown, id: JsonRpcId | null = null): RpcFailure {
  if (thrown instanceof RpcFailure) {
    if (id === null || thrown.id !== null) return thrown;
    return new RpcFailure(thrown.status, thrown.error, { id, headers: thrown.headers, cause: thrown.cause });
  }
  const error = asGatewayError(thrown);
  const { retryAfterSeconds } = error.facts;
  const headers = retryAfterSeconds === undefined ? [] : ['Retry-After', String(retryAfterSeconds)];
  return new RpcFailure(error.status, jsonRpcErrorOf(error), { id, headers, cause: error });
}

/** The internal error behind a failure, which the answer does not show; undefined for any other failure. */
export function internalFaultOf({ cause }: RpcFailure): GatewayError | undefined {
  return cause instanceof GatewayError && cause.code === 'INTERNAL_ERROR' ? cause : undefined;
}

/** The refusal of a request, with the message of the SDKs. Default code: -32000. */
export function refused(status: number, message: string, code: number = RPC.badRequest): RpcFailure {
  return new RpcFailure(status, { code, message });
}

/**
 * The refusal (400, -32600) of a text that is not a message, or not allowed here. It has no id, which may belong
 * to a request under way.
 */
export function invalidRequest(problem: string): RpcFailure {
  return refused(400, `Invalid Request: ${problem}`, RPC.invalidRequest);
}

function jsonRpcErrorOf(error: GatewayError): JsonRpcError {
  const { backendError, refusal, instanceId, retryAfterSeconds } = error.facts;
  if (backendError !== undefined) return backendError;
  const data: JsonObject = { error_code: error.code };
  if (refusal !== undefined) data.status = refusal.status;
  if (instanceId !== undefined) data.instance_id = instanceId;
  if (retryAfterSeconds !== undefined) data.retry_after_seconds = retryAfterSeconds;
  if (error.delivered === 'unknown') data.delivered = 'unknown';
  return { code: rpcCodeOf(error), message: clientTextOf(error), data };
}

/** The message of an error for clients, see clientTextOf. An unknown error gets no details. */
export function clientMessageOf(thrown: unknown): string {
  return clientTextOf(asGatewayError(thrown));
}

/** The message of an error without details of instances, but with the validation issues of the input. */
function clientTextOf({ message, facts: { plainMessage, items } }: GatewayError): string {
  const text = plainMessage ?? message;
  return items === undefined ? text : [text, ...items.map((item) => item.msg)].join(' ');
}

const MESSAGE_END = Buffer.from('}');

/**
 * The answer to request `id` in UTF-8: `{"jsonrpc":"2.0","id":…,"result":…}`. Copies the result once, and
 * does not parse it.
 */
export function resultMessage(id: JsonRpcId, result: JsonText): Buffer {
  const { bytes } = result;
  const head = `{"jsonrpc":"2.0","id":${JSON.stringify(idValue(id))},"result":`;
  const headBytes = Buffer.byteLength(head);
  const message = Buffer.allocUnsafe(headBytes + bytes.length + 1);
  message.write(head);
  message.set(bytes, headBytes);
  message.set(MESSAGE_END, headBytes + bytes.length);
  return message;
}

const ANSWER_HEAD = /^\{"jsonrpc":"2\.0","id":("(?:[^"\\]|\\.)*"|[^",]+),/;
/** An id that is longer is not found. */
const MAX_HEAD_BYTES = 4_096;

/** The id of a message that `resultMessage` or `errorMessage` made; null for any other. */
export function idOfAnswer(message: Uint8Array | string): JsonRpcId | null {
  const head =
    typeof message === 'string' ? message : Buffer.from(message.subarray(0, MAX_HEAD_BYTES)).toString();
  const [, id] = ANSWER_HEAD.exec(head.slice(0, MAX_HEAD_BYTES)) ?? [];
  return id === undefined ? null : (readId(parseExact(id)) ?? null);
}

/** The error answer to request `id`; null when no id could be read. Source: JSON-RPC 2.0 section 5. */
export function errorMessage(id: JsonRpcId | null, error: JsonRpcError): string {
  return JSON.stringify({ jsonrpc: '2.0', id: idValue(id), error });
}

export function notificationMessage(method: string, params: JsonFields): string {
  return JSON.stringify({ jsonrpc: '2.0', method, params });
}
