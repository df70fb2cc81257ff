// The body and the headers of every error answer. Source: ADR 5.

import Type, { type Static } from 'typebox';
import { NO_PRINCIPAL, type Principal, SCOPES } from '../domain/account.ts';
import type { GatewayError } from '../domain/errors.ts';
import { type BytesReply, json } from './reply.ts';
import { text } from './schemas.ts';
import { seesMachine } from './visible.ts';

const ValidationItem = Type.Object({
  loc: Type.Array(Type.Union([Type.String(), Type.Integer()])),
  msg: Type.String(),
  type: Type.String(),
});

export const ErrorBody = Type.Object({
  detail: Type.Union([text('No instance "everything-1" is registered.'), Type.Array(ValidationItem)]),
  error_code: text('SERVER_NOT_FOUND'),
  request_id: text('7f3c2a51-6f0e-4d6b-9a63-0b7a2f1c9d44'),
  required_permissions: Type.Optional(Type.Array(Type.Enum([...SCOPES]))),
  backend_error: Type.Optional(
    Type.Object({ code: Type.Integer(), message: Type.String(), data: Type.Optional(Type.Unknown()) }),
  ),
  result: Type.Optional(Type.Unknown({ examples: [{ content: [{ type: 'text', text: 'Echo: hello' }] }] })),
  delivered: Type.Optional(Type.Literal('unknown')),
});
export type ErrorBody = Static<typeof ErrorBody>;

/**
 * Translates an error for one viewer: paths of this machine are for principals that may see how instances are run.
 * `delivered` is added to a 503 when the call may have happened: the client must not repeat it blindly.
 */
export function errorBody(
  error: GatewayError,
  requestId: string,
  viewer: Principal = NO_PRINCIPAL,
): ErrorBody {
  const { items, requiredPermissions, backendError, result, plainMessage } = error.facts;
  const message = seesMachine(viewer) ? error.message : (plainMessage ?? error.message);
  return {
    detail: items === undefined ? message : items.map((item) => ({ ...item, loc: [...item.loc] })),
    error_code: error.code,
    request_id: requestId,
    ...(requiredPermissions === undefined ? {} : { required_permissions: [...requiredPermissions] }),
    ...(backendError === undefined ? {} : { backend_error: backendError }),
    ...(result === undefined ? {} : { result }),
    ...(error.status === 503 && error.delivered === 'unknown' ? { delivered: 'unknown' as const } : {}),
  };
}

export function errorReply(
  error: GatewayError,
  requestId: string,
  { viewer, fields }: { readonly viewer?: Principal | undefined; readonly fields?: object } = {},
): BytesReply {
  const { instanceId } = error.facts;
  return json(
    error.status,
    { ...fields, ...errorBody(error, requestId, viewer) },
    { headers: errorHeaders(error), ...(instanceId === undefined ? {} : { instanceId }) },
  );
}

/** `WWW-Authenticate` where other credentials would help. `Retry-After` only when the call certainly did not happen. */
function errorHeaders(error: GatewayError): string[] {
  const { allow, retryAfterSeconds, challenge } = error.facts;
  const headers: string[] = [];
  if (challenge) headers.push('WWW-Authenticate', 'Bearer');
  if (allow !== undefined) headers.push('Allow', allow.join(', '));
  if (retryAfterSeconds !== undefined && error.delivered === 'no')
    headers.push('Retry-After', String(retryAfterSeconds));
  return headers;
}
