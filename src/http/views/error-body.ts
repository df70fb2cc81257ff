// The body of every error answer. Source: spec "Error body"; decisions "Errors"; ADR 5.

import Type, { type Static } from 'typebox';
import type { GatewayError } from '../../domain/errors.ts';

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
  backend_error: Type.Optional(
    Type.Object({ code: Type.Integer(), message: Type.String(), data: Type.Optional(Type.Unknown()) }),
  ),
  result: Type.Optional(Type.Unknown()),
  delivered: Type.Optional(Type.Literal('unknown')),
});
export type ErrorBody = Static<typeof ErrorBody>;

/** Translates an error. `delivered` is told on a 503 when the call may have happened and must not blindly be repeated. */
export function errorBody(error: GatewayError, requestId: string): ErrorBody {
  const { items, backendError, result } = error.facts;
  return {
    detail: items === undefined ? error.message : items.map((item) => ({ ...item, loc: [...item.loc] })),
    error_code: error.code,
    request_id: requestId,
    ...(backendError === undefined ? {} : { backend_error: backendError }),
    ...(result === undefined ? {} : { result }),
    ...(error.status === 503 && error.delivered === 'unknown' ? { delivered: 'unknown' as const } : {}),
  };
}
