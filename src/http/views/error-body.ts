// The body of every error answer. Source: spec "Error body"; decisions "Errors"; ADR 5.

import Type, { type Static } from 'typebox';
import { NOBODY, type Principal, SCOPES } from '../../domain/account.ts';
import type { GatewayError } from '../../domain/errors.ts';
import { seesMachine } from './instance-record.ts';

const ValidationItem = Type.Object({
  loc: Type.Array(Type.Union([Type.String(), Type.Integer()])),
  msg: Type.String(),
  type: Type.String(),
});

/** Schema of the error body. */
export const ErrorBody = Type.Object({
  detail: Type.Union([Type.String(), Type.Array(ValidationItem)]),
  error_code: Type.String(),
  request_id: Type.String(),
  required_permissions: Type.Optional(Type.Array(Type.Enum([...SCOPES]))),
  backend_error: Type.Optional(
    Type.Object({ code: Type.Integer(), message: Type.String(), data: Type.Optional(Type.Unknown()) }),
  ),
  result: Type.Optional(Type.Unknown()),
  delivered: Type.Optional(Type.Literal('unknown')),
});
export type ErrorBody = Static<typeof ErrorBody>;

/**
 * Translates an error for one viewer: paths of this machine are for those who may see how instances are run. `delivered`
 * is told on a 503 when the call may have happened and must not blindly be repeated.
 */
export function errorBody(error: GatewayError, requestId: string, viewer: Principal = NOBODY): ErrorBody {
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
