// The error type, and the errors of the gateway itself. The other errors of the catalogue are sorted by subject: one
// constructor per fact in request-, registry-, backend-, answer-, session- and account-errors.ts; the codes are error-codes.ts.
// How an error looks over HTTP is decided in one place, http/middleware/errors.ts.

import type { Scope } from './account.ts';
import { ERROR_STATUS, type ErrorCode } from './error-codes.ts';
import type { JsonRpcError } from './jsonrpc.ts';

/** Whether a call reached its backend, or a change the database. `no`: certainly not; `unknown`: perhaps; `yes`: it was answered. */
export type Delivered = 'no' | 'unknown' | 'yes';

/** One issue about bad input. `loc` starts with body, path, query or header; `type` uses pydantic-2 names. */
export interface ValidationItem {
  readonly loc: readonly (string | number)[];
  readonly msg: string;
  readonly type: string;
}

export interface ErrorDetails {
  readonly cause?: unknown;
  /** When it is not that of the code: one of OTHER_STATUS. */
  readonly status?: number;
  /** Set on every failure between the gateway and a backend or its database; decides about failover and Retry-After. */
  readonly delivered?: Delivered;
  /** Seconds after which a new try makes sense. */
  readonly retryAfterSeconds?: number;
  /** Issues of VALIDATION_ERROR. */
  readonly items?: readonly ValidationItem[];
  /** Scopes of INSUFFICIENT_PERMISSIONS that the caller lacks; any one of them is enough. */
  readonly requiredPermissions?: readonly Scope[];
  /** True when nothing but other credentials helps: the answer carries `WWW-Authenticate`. */
  readonly challenge?: boolean;
  /** Methods of METHOD_NOT_ALLOWED. */
  readonly allow?: readonly string[];
  /** The JSON-RPC error of a backend, when it is the reason. */
  readonly backendError?: JsonRpcError;
  /** The MCP result with `isError: true`, when it is the reason (surface B). */
  readonly result?: unknown;
  /** Last lines of a child's standard error. They may hold anything, so they never stand in a message or an event. */
  readonly stderr?: readonly string[];
  /** Why a backend cannot be used, as a clause without secrets: "connection refused". */
  readonly reason?: string;
  /** The message, without paths, for callers that may not see how instances are run. Default: the message. */
  readonly plainMessage?: string;
  /** The instance that failed or refused the call. */
  readonly instanceId?: string;
  /** True when the instance itself is in doubt and should be probed at once. */
  readonly suspicious?: boolean;
  /** True when nothing answers at its address: it is unhealthy at once. */
  readonly unreachable?: boolean;
}

/** The only error that crosses folders. Branch on `code` and `delivered`, never on the text. */
export class GatewayError extends Error {
  readonly code: ErrorCode;
  readonly status: number;
  readonly facts: ErrorDetails;

  constructor(code: ErrorCode, message: string, facts: ErrorDetails = {}) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.name = 'GatewayError';
    this.code = code;
    this.status = facts.status ?? ERROR_STATUS[code];
    this.facts = facts;
  }

  /** Whether the call reached a backend; an error raised before any backend was asked counts as `no`. */
  get delivered(): Delivered {
    return this.facts.delivered ?? 'no';
  }
}

/** No instance is healthy yet, because none was looked at. */
export function gatewayStarting(): GatewayError {
  return new GatewayError('NO_HEALTHY_INSTANCE', 'The gateway is starting.', {
    delivered: 'no',
    retryAfterSeconds: 1,
  });
}

export function shuttingDown(): GatewayError {
  return new GatewayError('SHUTTING_DOWN', 'The gateway is shutting down.', {
    delivered: 'no',
    retryAfterSeconds: 5,
  });
}

/**
 * The database did not answer. `unknown`: a change was sent to it, and it is not known whether it has happened. `fate` is a sentence
 * about what has become of the change.
 */
export function databaseUnavailable(
  cause: unknown,
  delivered: Delivered = 'no',
  fate = delivered === 'no' ? NOTHING_CHANGED : PERHAPS_CHANGED,
): GatewayError {
  return new GatewayError('DATABASE_UNAVAILABLE', `The database does not answer. ${fate}`, {
    cause,
    delivered,
    ...(delivered === 'no' ? { retryAfterSeconds: 5 } : {}),
  });
}

const NOTHING_CHANGED = 'Nothing was changed.';
const PERHAPS_CHANGED = 'Whether the change was made is not known: look before you repeat it.';

export function internalError(cause: unknown): GatewayError {
  return new GatewayError('INTERNAL_ERROR', 'Something went wrong inside the gateway.', { cause });
}

/** Makes a GatewayError of anything thrown; what is not one already becomes INTERNAL_ERROR. */
export function asGatewayError(thrown: unknown): GatewayError {
  return thrown instanceof GatewayError ? thrown : internalError(thrown);
}

/** True for an error of this catalogue with this code. */
export function hasCode(thrown: unknown, code: ErrorCode): boolean {
  return thrown instanceof GatewayError && thrown.code === code;
}
