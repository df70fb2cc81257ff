// The catalogue of errors: one class, one constructor per fact. The codes are error-codes.ts; what is about accounts and
// limits is account-errors.ts.
// How an error looks over HTTP is decided in one place, http/middleware/errors.ts.

import type { Scope } from './account.ts';
import { ERROR_STATUS, type ErrorCode } from './error-codes.ts';
import { type JsonRpcError, RPC } from './jsonrpc.ts';

export type { ErrorCode } from './error-codes.ts';

/** Whether a call reached its backend, or a change the database. `no`: certainly not; `unknown`: perhaps; `yes`: it was answered. */
export type Delivered = 'no' | 'unknown' | 'yes';

/** One finding about bad input. `loc` starts with body, path, query or header; `type` uses pydantic-2 names. */
export interface ValidationItem {
  readonly loc: readonly (string | number)[];
  readonly msg: string;
  readonly type: string;
}

export interface ErrorFacts {
  readonly cause?: unknown;
  /** Set on every failure between the gateway and a backend or its database; decides about failover and Retry-After. */
  readonly delivered?: Delivered;
  /** Seconds after which a new try makes sense. */
  readonly retryAfterSeconds?: number;
  /** Findings of VALIDATION_ERROR. */
  readonly items?: readonly ValidationItem[];
  /** Scopes of INSUFFICIENT_PERMISSIONS that the caller lacks; any one of them would do. */
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
  /** The message for those who may not see how instances are run: it tells no paths. Default: the message. */
  readonly plainMessage?: string;
  /** Who failed the call, or refused it. */
  readonly instanceId?: string;
  /** True when the instance itself is in doubt and should be probed at once. */
  readonly suspicious?: boolean;
  /** True when nothing answers at its address: it is unhealthy without further ado. */
  readonly unreachable?: boolean;
}

/** The only error that crosses rooms. Branch on `code` and `delivered`, never on the text. */
export class GatewayError extends Error {
  readonly code: ErrorCode;
  readonly status: number;
  readonly facts: ErrorFacts;

  constructor(code: ErrorCode, message: string, facts: ErrorFacts = {}) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.name = 'GatewayError';
    this.code = code;
    this.status = ERROR_STATUS[code];
    this.facts = facts;
  }

  /** Whether the call reached a backend; an error raised before any backend was asked counts as `no`. */
  get delivered(): Delivered {
    return this.facts.delivered ?? 'no';
  }
}

// --- what the caller asked for does not exist -------------------------------------------------------------------

export function templateNotFound(template: string): GatewayError {
  return new GatewayError('TEMPLATE_NOT_FOUND', `No template named "${template}" is registered.`);
}

export function serverNotFound(id: string): GatewayError {
  return new GatewayError('SERVER_NOT_FOUND', `No instance "${id}" is registered.`);
}

export function toolNotFound(tool: string, owner: string): GatewayError {
  return new GatewayError('TOOL_NOT_FOUND', `"${owner}" has no tool named "${tool}".`);
}

export function resourceNotFound(uri: string, backendError?: JsonRpcError): GatewayError {
  // Only the code of its own says that nothing else can be wrong: with any other the backend's words are worth repeating.
  const isCertain = backendError === undefined || backendError.code === RPC.resourceNotFound;
  const because = isCertain ? '' : `: ${backendError.message}`;
  return new GatewayError(
    'RESOURCE_NOT_FOUND',
    `No resource "${uri}"${because}.`,
    withBackendError(backendError),
  );
}

export function promptNotFound(prompt: string, backendError?: JsonRpcError): GatewayError {
  return new GatewayError('PROMPT_NOT_FOUND', `No prompt named "${prompt}".`, withBackendError(backendError));
}

export function routeNotFound(method: string, path: string): GatewayError {
  return new GatewayError(
    'NOT_FOUND',
    `Nothing answers ${method} ${path}. GET /gateway/templates lists what is served, GET /docs tells how to ask.`,
  );
}

export function methodNotAllowed(method: string, path: string, allow: readonly string[]): GatewayError {
  const message = `${path} does not answer ${method}; it answers ${allow.join(', ')}.`;
  return new GatewayError('METHOD_NOT_ALLOWED', message, { allow });
}

// --- what the caller sent is not usable -------------------------------------------------------------------------

export function malformedJson(reason: string, cause?: unknown): GatewayError {
  return new GatewayError('MALFORMED_JSON', `The request body is not JSON: ${reason}.`, { cause });
}

/** The message names the first finding, which is all that programs often show; beside all of them `plainMessage` does. */
export function validationFailed(
  items: readonly ValidationItem[],
  what = 'The request',
  facts: Omit<ErrorFacts, 'items'> = {},
): GatewayError {
  const [first, ...more] = items;
  const finding = [first?.loc.slice(1).join('.'), first?.msg].filter(Boolean).join(': ');
  const rest = more.length === 0 ? '' : ` (and ${more.length} more)`;
  const plainMessage = `${what} is not valid.`;
  const message = `${what} is not valid: ${finding}${rest}.`;
  return new GatewayError('VALIDATION_ERROR', message, { ...facts, items, plainMessage });
}

/** A request of an embedding program that cannot be written: a BigInt, a circle, a `toJSON` that throws. No other
 *  instance could do more with it, hence `yes`. */
export function notWritable(cause: unknown): GatewayError {
  const item = { loc: ['body'], msg: 'The request cannot be written as JSON', type: 'json_type' };
  return new GatewayError('VALIDATION_ERROR', `${item.msg}.`, { cause, delivered: 'yes', items: [item] });
}

export function payloadTooLarge(limitBytes: number): GatewayError {
  return new GatewayError('PAYLOAD_TOO_LARGE', `The request body is larger than ${limitBytes} bytes.`);
}

export function unsupportedMediaType(contentType: string, accepted = 'application/json'): GatewayError {
  const message = `The request body must be ${accepted}, not "${contentType}".`;
  return new GatewayError('UNSUPPORTED_MEDIA_TYPE', message);
}

export function duplicateServer(id: string): GatewayError {
  return new GatewayError('DUPLICATE_SERVER', `"${id}" is registered already.`);
}

export function configIncomplete(reason: string): GatewayError {
  return new GatewayError('CONFIG_INCOMPLETE', reason);
}

/** `what` is counted in `most`: "instances". */
export function registryFull(what: string, most: number): GatewayError {
  return new GatewayError(
    'REGISTRY_FULL',
    `There are ${most} ${what} already, which is the most there may be.`,
  );
}

export function endpointNotAllowed(reason: string): GatewayError {
  return new GatewayError('ENDPOINT_NOT_ALLOWED', reason);
}

export function commandNotAllowed(reason: string): GatewayError {
  return new GatewayError('COMMAND_NOT_ALLOWED', reason);
}

export function originNotAllowed(reason: string): GatewayError {
  return new GatewayError('ORIGIN_NOT_ALLOWED', reason);
}

export function invalidToolArguments(tool: string, backendError: JsonRpcError): GatewayError {
  const message = `"${tool}" refused its arguments: ${backendError.message}`;
  return new GatewayError('INVALID_TOOL_ARGUMENTS', message, { delivered: 'yes', backendError });
}

// --- a backend failed -------------------------------------------------------------------------------------------

export function toolExecutionFailed(
  what: string,
  reason: { backendError?: JsonRpcError; result?: unknown },
): GatewayError {
  const because = reason.backendError ? `: ${reason.backendError.message}` : ' with an error result';
  return new GatewayError('TOOL_EXECUTION_FAILED', `"${what}" failed${because}`, {
    delivered: 'yes',
    ...reason,
  });
}

/** `why` says it of single instances, as clauses; '' when there is nothing to say. */
export function noHealthyInstance(template: string, why = ''): GatewayError {
  const plainMessage = `No instance of "${template}" is healthy right now.`;
  const message = why === '' ? plainMessage : `${plainMessage.slice(0, -1)}: ${why}.`;
  const facts = { delivered: 'no', retryAfterSeconds: 2, plainMessage } as const;
  return new GatewayError('NO_HEALTHY_INSTANCE', message, facts);
}

/** A backend could not be reached or broke off. `reason` names the fact: "connection refused", "exited with code 7". */
export function backendUnavailable(
  reason: string,
  facts: Pick<ErrorFacts, 'cause' | 'stderr' | 'suspicious' | 'unreachable'> & { delivered: Delivered },
): GatewayError {
  return new GatewayError('BACKEND_UNAVAILABLE', `The backend is unavailable: ${reason}.`, {
    ...facts,
    reason,
    plainMessage: 'The backend is unavailable.',
    ...(facts.delivered === 'no' ? { retryAfterSeconds: 1 } : {}),
  });
}

export function backendTimeout(afterMs: number, delivered: Delivered = 'unknown'): GatewayError {
  return new GatewayError('BACKEND_TIMEOUT', `The backend did not answer within ${afterMs / 1000} s.`, {
    delivered,
    suspicious: true,
    reason: `it did not answer within ${afterMs / 1000} s`,
    ...(delivered === 'no' ? { retryAfterSeconds: 1 } : {}),
  });
}

export function queueFull(template: string): GatewayError {
  return new GatewayError('QUEUE_FULL', `Every instance of "${template}" is busy and the line is full.`, {
    delivered: 'no',
    retryAfterSeconds: 1,
  });
}

/** It is registered, but no call or command reaches it from here. `why` says where it runs, as a clause. */
export function runsElsewhere(id: string, why: string): GatewayError {
  const plainMessage = `"${id}" cannot be used here.`;
  const message = `${plainMessage.slice(0, -1)}: ${why}.`;
  return new GatewayError('NO_HEALTHY_INSTANCE', message, { delivered: 'no', plainMessage });
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

/** The database did not answer. `unknown`: a change was sent to it, and nobody can say whether it has happened. */
export function databaseUnavailable(cause: unknown, delivered: Delivered = 'no'): GatewayError {
  return new GatewayError('DATABASE_UNAVAILABLE', 'The database does not answer.', {
    cause,
    delivered,
    ...(delivered === 'no' ? { retryAfterSeconds: 5 } : {}),
  });
}

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

function withBackendError(backendError: JsonRpcError | undefined): ErrorFacts {
  return backendError ? { delivered: 'yes', backendError } : {};
}
