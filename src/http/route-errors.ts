// Which errors routes of one kind can answer, for the API description.

import type { ErrorCode } from '../domain/error-codes.ts';

/** Errors of every route, whatever it does. */
export const EVERY_ROUTE: readonly ErrorCode[] = ['ORIGIN_NOT_ALLOWED', 'VALIDATION_ERROR', 'INTERNAL_ERROR'];

/** Errors of every route that asks who is calling, besides. */
export const WITH_CREDENTIALS: readonly ErrorCode[] = [
  'AUTHENTICATION_REQUIRED',
  'INVALID_CREDENTIALS',
  'TOKEN_EXPIRED',
  'INSUFFICIENT_PERMISSIONS',
  'RATE_LIMIT_EXCEEDED',
  'DATABASE_UNAVAILABLE',
];

/** Errors of every route in front of the registry, besides: it is not loaded yet. */
export const WHILE_STARTING: readonly ErrorCode[] = ['NO_HEALTHY_INSTANCE'];

/** Errors of every route that takes a body, besides. */
export const WITH_BODY: readonly ErrorCode[] = [
  'MALFORMED_JSON',
  'PAYLOAD_TOO_LARGE',
  'UNSUPPORTED_MEDIA_TYPE',
  'QUEUE_FULL',
];

/** Errors of asking an instance of a template. */
export const FROM_BACKEND: readonly ErrorCode[] = [
  'TEMPLATE_NOT_FOUND',
  'QUEUE_FULL',
  'TOOL_EXECUTION_FAILED',
  'NO_HEALTHY_INSTANCE',
  'BACKEND_UNAVAILABLE',
  'BACKEND_TIMEOUT',
  'SHUTTING_DOWN',
];
