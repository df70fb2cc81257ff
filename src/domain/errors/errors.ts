// The error type, the table of codes, and functions of errors. The constructors are in the files …-errors.ts, by subject:
// each takes the values in its message, and no message names a secret. A file may make an error that only it throws.
// http/middleware/error-answers.ts makes HTTP answers of errors.

import type { Scope } from '../accounts/account.ts';
import { definedFields } from '../json/json.ts';
import { type JsonRpcError, RPC } from '../mcp/jsonrpc.ts';

/** Whether a call reached its backend, or a change its database. `no`: certainly not; `yes`: it was answered. */
export type Delivered = 'no' | 'unknown' | 'yes';

/** One issue about bad input. `loc` starts with body, path, query or header; `type` uses pydantic-2 names. */
export interface ValidationItem {
  readonly loc: readonly (string | number)[];
  readonly msg: string;
  readonly type: string;
}

/** The refusal of a request by a server over HTTP. */
export interface HttpRefusal {
  readonly status: number;
  /** The wait that the server asked for in `Retry-After`, in ms. */
  readonly waitMs: number | undefined;
}

export interface ErrorFacts {
  readonly cause?: unknown;
  /** The HTTP status, when it differs from that of the code: see `otherStatus` of ERRORS. */
  readonly status?: number;
  /**
   * Whether the call reached a backend. Set on every failure between the gateway and a backend or its database;
   * failover and Retry-After depend on it.
   */
  readonly delivered?: Delivered;
  /** Seconds after which a retry makes sense; only when the call certainly did not happen. Source: ADR 5. */
  readonly retryAfterSeconds?: number;
  /** The message for callers that may not see how instances are run. Default: the message. */
  readonly plainMessage?: string;

  // --- of one code ---------------------------------------------------------------------------------------

  /** Issues of VALIDATION_ERROR. */
  readonly items?: readonly ValidationItem[];
  /** Scopes of INSUFFICIENT_PERMISSIONS that the caller lacks; any one of them is enough. */
  readonly requiredPermissions?: readonly Scope[];
  /** The address at which the caller of CONNECTION_REQUIRED connects an account. */
  readonly connectUrl?: string;
  /** The tool that the caller of TOOL_NOT_FOUND probably meant; the message names it, too. */
  readonly suggestion?: string;
  /** Methods of METHOD_NOT_ALLOWED. */
  readonly allow?: readonly string[];

  // --- of a backend --------------------------------------------------------------------------------------

  /** The instance that failed or refused the call. */
  readonly instanceId?: string;
  /** The reason why a backend cannot be used, as a clause without secrets: "connection refused". */
  readonly reason?: string;
  /** The JSON-RPC error of the backend, when it is the reason. */
  readonly backendError?: JsonRpcError;
  /** The MCP result with `isError: true`, when it is the reason (`POST /tools/call`). */
  readonly result?: unknown;
  /** The refusal of the request by the backend over HTTP. */
  readonly refusal?: HttpRefusal;
  /** The last lines of a child's standard error. They may contain anything, so no message or event contains them. */
  readonly stderr?: readonly string[];
  /** True when the backend forgot the session of a client, and so refused the call. */
  readonly isSessionLost?: boolean;
  /**
   * True when the backend refused the request before any work, and the cause is removed: it is repeated once in
   * the same conversation.
   */
  readonly isRepaired?: boolean;
  /**
   * The conclusion about the health of the instance. `suspicious`: a probe should look at once; `unreachable`:
   * nothing answers at its address, so it is unhealthy at once.
   */
  readonly health?: 'suspicious' | 'unreachable';
}

/** The only error that crosses folders. Branch on `code` and `delivered`, never on the text. */
export class GatewayError extends Error {
  readonly code: ErrorCode;
  readonly status: number;
  readonly facts: ErrorFacts;

  constructor(code: ErrorCode, message: string, facts: ErrorFacts = {}) {
    const { stackTraceLimit } = Error;
    // Failures of backends come by the thousand: frames take longer than all else about them, and name code that reads sockets.
    if (facts.delivered !== undefined) Error.stackTraceLimit = 0;
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause });
    Error.stackTraceLimit = stackTraceLimit;
    this.name = 'GatewayError';
    this.code = code;
    this.status = facts.status ?? rowOf(code).status;
    this.facts = facts;
  }

  /** Whether the call reached a backend; an error raised before any backend was asked counts as `no`. */
  get delivered(): Delivered {
    return this.facts.delivered ?? 'no';
  }
}

/** Details of an error: the call or request was not carried out, and may succeed after this time. */
export function retryAfter(retryAfterSeconds: number): ErrorFacts {
  return { delivered: 'no', retryAfterSeconds };
}

export function internalError(cause: unknown): GatewayError {
  return new GatewayError('INTERNAL_ERROR', 'Internal error of the gateway.', { cause });
}

/** The thrown GatewayError; INTERNAL_ERROR for anything else. */
export function asGatewayError(thrown: unknown): GatewayError {
  return thrown instanceof GatewayError ? thrown : internalError(thrown);
}

export function hasCode(thrown: unknown, code: ErrorCode): boolean {
  return thrown instanceof GatewayError && thrown.code === code;
}

/** True when the failure of one of several changes means that the others would fail, too: its reason is not in the change. */
export function concernsAll(thrown: unknown): boolean {
  return hasCode(thrown, 'DATABASE_UNAVAILABLE') || hasCode(thrown, 'SHUTTING_DOWN');
}

/**
 * The failure of a call, or else the error after it. After a session that its server forgot, the error says more:
 * the call was certainly not carried out, and the session is over. Source: ADR 108.
 */
export function moreTelling(failure: GatewayError | undefined, error: GatewayError): GatewayError {
  if (failure === undefined || (failure.facts.isSessionLost && failure.delivered === 'no')) return error;
  return failure;
}

/** True when the backend gave no answer; a 4xx over HTTP is one. Source: ADR 107. */
export function isUnanswered({ code, facts: { refusal } }: GatewayError): boolean {
  const { status = 0 } = refusal ?? {};
  return code === 'BACKEND_UNAVAILABLE' && !(status >= 400 && status < 500);
}

interface ErrorRow {
  readonly status: number;
  /** A second status. */
  readonly otherStatus?: number;
  /** The code for MCP clients. Default: the status. */
  readonly rpc?: number;
}

/**
 * Every error code with its HTTP status, and, where JSON-RPC, MCP or its SDKs define one, with its code for MCP clients.
 * Source: ADR 5.
 */
export const ERRORS = {
  MALFORMED_JSON: { status: 400, rpc: RPC.parseError },
  INVALID_CURSOR: { status: 400 },
  DUPLICATE_USERNAME: { status: 400 },
  DUPLICATE_SERVER: { status: 400 },
  DUPLICATE_TEMPLATE: { status: 400 },
  DUPLICATE_VIEW: { status: 400 },
  LAST_ADMIN: { status: 400 },
  REGISTRY_FULL: { status: 400 },
  CONFIG_INCOMPLETE: { status: 400 },
  ENDPOINT_NOT_ALLOWED: { status: 400 },
  INVALID_TOOL_ARGUMENTS: { status: 400, rpc: RPC.invalidParams },
  AUTHENTICATION_REQUIRED: { status: 401 },
  INVALID_CREDENTIALS: { status: 401 },
  TOKEN_EXPIRED: { status: 401 },
  INSUFFICIENT_PERMISSIONS: { status: 403 },
  PASSWORDS_OFF: { status: 403 },
  // 403: it depends on the caller; 400: the command is refused to all callers. Source: ADR 87.
  COMMAND_NOT_ALLOWED: { status: 403, otherStatus: 400 },
  ORIGIN_NOT_ALLOWED: { status: 403 },
  CONNECTION_REQUIRED: { status: 403 },
  CONFIRMATION_REQUIRED: { status: 403 },
  TEMPLATE_NOT_FOUND: { status: 404 },
  VIEW_NOT_FOUND: { status: 404 },
  SERVER_NOT_FOUND: { status: 404 },
  TOOL_NOT_FOUND: { status: 404, rpc: RPC.invalidParams },
  RESOURCE_NOT_FOUND: { status: 404, rpc: RPC.invalidParams },
  PROMPT_NOT_FOUND: { status: 404, rpc: RPC.invalidParams },
  USER_NOT_FOUND: { status: 404 },
  API_KEY_NOT_FOUND: { status: 404 },
  SESSION_NOT_FOUND: { status: 404, rpc: RPC.sessionNotFound },
  NOT_FOUND: { status: 404 },
  METHOD_NOT_ALLOWED: { status: 405, rpc: RPC.badRequest },
  PRECONDITION_FAILED: { status: 412 },
  PAYLOAD_TOO_LARGE: { status: 413, rpc: RPC.badRequest },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, rpc: RPC.badRequest },
  VALIDATION_ERROR: { status: 422, rpc: RPC.invalidParams },
  RATE_LIMIT_EXCEEDED: { status: 429 },
  // Also every other bound of what callers have open or under way, besides the number of sessions: docs/reference/limits.md.
  QUEUE_FULL: { status: 429 },
  TOO_MANY_ATTEMPTS: { status: 429 },
  TOOL_EXECUTION_FAILED: { status: 500 },
  INTERNAL_ERROR: { status: 500, rpc: RPC.internalError },
  NO_HEALTHY_INSTANCE: { status: 503 },
  BACKEND_UNAVAILABLE: { status: 503 },
  BACKEND_TIMEOUT: { status: 503 },
  SESSION_LIMIT: { status: 503 },
  NODE_UNAVAILABLE: { status: 503 },
  SHUTTING_DOWN: { status: 503 },
  DATABASE_UNAVAILABLE: { status: 503 },
  ISSUER_UNAVAILABLE: { status: 503 },
} as const satisfies Readonly<Record<string, ErrorRow>>;

export type ErrorCode = keyof typeof ERRORS;

/** An embedding program without types may have made an error with another code. */
function rowOf(code: ErrorCode): ErrorRow {
  return Object.hasOwn(ERRORS, code) ? ERRORS[code] : ERRORS.INTERNAL_ERROR;
}

/** Every status with which a code may be answered. */
export function statusesOf(code: ErrorCode): readonly number[] {
  const { status, otherStatus } = rowOf(code);
  return otherStatus === undefined ? [status] : [status, otherStatus];
}

/** The code of an error for MCP clients. */
export function rpcCodeOf({ code, status }: GatewayError): number {
  return rowOf(code).rpc ?? status;
}

/** The same error, with the instance that failed the call. */
export function atInstance(error: GatewayError, instanceId: string): GatewayError {
  return new GatewayError(error.code, error.message, { ...error.facts, instanceId });
}

/** The same error with `delivered: 'unknown'`. */
export function perhapsDelivered({ code, message, facts }: GatewayError): GatewayError {
  const { retryAfterSeconds: _, ...others } = facts;
  return new GatewayError(code, message, { ...others, delivered: 'unknown' });
}

/** The error of a failed opening, with the last lines of its child's stderr. */
export function openingFailed(error: GatewayError, stderr: readonly string[]): GatewayError {
  const { cause = error, health, reason, plainMessage, refusal } = error.facts;
  return new GatewayError(error.code, error.message, {
    ...(refusal === undefined ? retryAfter(1) : { delivered: 'no' }),
    cause,
    stderr,
    ...(health === 'unreachable' ? { health } : {}),
    ...definedFields({ reason, plainMessage, refusal }),
  });
}

/** The reason of a thrown error, as a clause: "connection refused". */
export function reasonOf(thrown: unknown): string {
  if (thrown instanceof GatewayError) return thrown.facts.reason ?? thrown.message;
  return thrown instanceof Error ? thrown.message : 'it could not be opened';
}

/** The operator has to change a setting, a file or the machine; the message is for the operator, and names no secret. */
export class OperatorError extends Error {}

/** The message of an error, or another value as text. Never throws: values of other code can refuse to be read. */
export function messageOf(thrown: unknown): string {
  try {
    return String(thrown instanceof Error ? thrown.message : thrown);
  } catch {
    return 'an error without a text';
  }
}

/** Why a file cannot be read, as a clause: in words for the usual reasons, else the code. */
export function fileFault(thrown: unknown): string {
  const code = codeOf(thrown) ?? 'unknown reason';
  return Object.hasOwn(FILE_FAULTS, code) ? String(FILE_FAULTS[code]) : code;
}

const FILE_FAULTS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  ENOTDIR: 'a part of its path is not a folder',
  EISDIR: 'it is a folder',
  EACCES: 'this user may not read it',
};

/** The code of an error of the system or a library, such as ENOENT, if any. */
export function codeOf(thrown: unknown): string | undefined {
  return thrown instanceof Error && 'code' in thrown && typeof thrown.code === 'string'
    ? thrown.code
    : undefined;
}
