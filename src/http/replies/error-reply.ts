// The replies to errors: every error answer has the body and the headers that are made here. Source: ADR 5.

import Type, { type Static } from 'typebox';
import { SCOPES } from '../../domain/accounts/account.ts';
import { NO_PRINCIPAL, type Principal } from '../../domain/accounts/principal.ts';
import type { GatewayError } from '../../domain/errors/errors.ts';
import { definedFields, JsonText } from '../../domain/json/json.ts';
import { seesMachine } from '../callers/visible.ts';
import { named, text } from '../records/schemas.ts';
import { type BytesReply, json, withResult } from './reply.ts';

const ValidationItem = Type.Object({
  loc: Type.Array(Type.Union([Type.String(), Type.Integer()])),
  msg: Type.String(),
  type: Type.String(),
});

export const ErrorBody = named('ErrorBody', {
  detail: Type.Union([text('No instance "everything-1" is registered.'), Type.Array(ValidationItem)]),
  error_code: text('SERVER_NOT_FOUND'),
  request_id: text('7f3c2a51-6f0e-4d6b-9a63-0b7a2f1c9d44'),
  required_permissions: Type.Optional(Type.Array(Type.Enum([...SCOPES]))),
  connect_url: Type.Optional(Type.String({ format: 'uri' })),
  /** The name that was probably meant, as `detail` says it; of tools. */
  suggestion: Type.Optional(text('echo')),
  /** The credential of the caller, as in `GET /auth/me`; only in a 403. */
  credential: Type.Optional(
    Type.Object({ kind: Type.Enum(['user', 'api-key']), id: text('key:0123456789abcdef') }),
  ),
  backend_error: Type.Optional(
    Type.Object({ code: Type.Integer(), message: Type.String(), data: Type.Optional(Type.Unknown()) }),
  ),
  backend_status: Type.Optional(Type.Integer({ minimum: 300, maximum: 599, examples: [422] })),
  result: Type.Optional(Type.Unknown({ examples: [{ content: [{ type: 'text', text: 'Echo: hello' }] }] })),
  delivered: Type.Optional(Type.Literal('unknown')),
});
export type ErrorBody = Static<typeof ErrorBody>;

/**
 * Translates an error for one viewer: paths of this machine are only for principals that may see how instances
 * are run. A 503 says `delivered` when the call may have happened: the client must not repeat it blindly.
 */
export function errorBody(
  error: GatewayError,
  requestId: string,
  viewer: Principal = NO_PRINCIPAL,
): ErrorBody {
  const { items, requiredPermissions, connectUrl, suggestion, backendError, refusal, result, plainMessage } =
    error.facts;
  const message = seesMachine(viewer) ? error.message : (plainMessage ?? error.message);
  return {
    detail: items === undefined ? message : items.map((item) => ({ ...item, loc: [...item.loc] })),
    error_code: error.code,
    request_id: requestId,
    ...(requiredPermissions === undefined ? {} : { required_permissions: [...requiredPermissions] }),
    ...definedFields({ connect_url: connectUrl, suggestion }),
    ...(error.status === 403 ? credentialField(viewer) : {}),
    ...definedFields({ backend_error: backendError, backend_status: refusal?.status, result }),
    ...(error.status === 503 && error.delivered === 'unknown' ? { delivered: 'unknown' as const } : {}),
  };
}

/** Several credentials may be in use on one machine: a refusal names the one that lacks the right. */
function credentialField({ kind, id }: Principal): Pick<ErrorBody, 'credential'> {
  return kind === 'anonymous' ? {} : { credential: { kind, id } };
}

interface ErrorReplyFields {
  readonly viewer?: Principal | undefined;
  readonly fields?: object;
  /** `WWW-Authenticate` of this answer. Default: `Bearer` for a 401. */
  readonly challenge?: string | undefined;
}

export function errorReply(
  error: GatewayError,
  requestId: string,
  { viewer, fields, challenge }: ErrorReplyFields = {},
): BytesReply {
  const { instanceId } = error.facts;
  const body = { ...fields, ...errorBody(error, requestId, viewer) };
  const replyFields = { headers: errorHeaders(error, challenge), instanceId };
  const { result, ...others } = body;
  if (result instanceof JsonText) return withResult(error.status, others, result, replyFields);
  return json(error.status, body, replyFields);
}

/** `WWW-Authenticate` where other credentials would help. */
function errorHeaders(error: GatewayError, challenge?: string): string[] {
  const { allow, retryAfterSeconds } = error.facts;
  const headers: string[] = [];
  const authenticate = challenge ?? (error.status === 401 ? 'Bearer' : undefined);
  if (authenticate !== undefined) headers.push('WWW-Authenticate', authenticate);
  if (allow !== undefined) headers.push('Allow', allow.join(', '));
  if (retryAfterSeconds !== undefined) headers.push('Retry-After', String(retryAfterSeconds));
  return headers;
}
