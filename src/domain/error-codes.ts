// Every error code there is, with its HTTP status.

/** Every code with its HTTP status. Source: ADR 5. */
export const ERROR_STATUS = {
  MALFORMED_JSON: 400,
  DUPLICATE_USERNAME: 400,
  DUPLICATE_SERVER: 400,
  LAST_ADMIN: 400,
  REGISTRY_FULL: 400,
  CONFIG_INCOMPLETE: 400,
  ENDPOINT_NOT_ALLOWED: 400,
  INVALID_TOOL_ARGUMENTS: 400,
  AUTHENTICATION_REQUIRED: 401,
  INVALID_CREDENTIALS: 401,
  TOKEN_EXPIRED: 401,
  INSUFFICIENT_PERMISSIONS: 403,
  COMMAND_NOT_ALLOWED: 403,
  ORIGIN_NOT_ALLOWED: 403,
  TEMPLATE_NOT_FOUND: 404,
  SERVER_NOT_FOUND: 404,
  TOOL_NOT_FOUND: 404,
  RESOURCE_NOT_FOUND: 404,
  PROMPT_NOT_FOUND: 404,
  USER_NOT_FOUND: 404,
  API_KEY_NOT_FOUND: 404,
  SESSION_NOT_FOUND: 404,
  NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  PAYLOAD_TOO_LARGE: 413,
  UNSUPPORTED_MEDIA_TYPE: 415,
  VALIDATION_ERROR: 422,
  RATE_LIMIT_EXCEEDED: 429,
  QUEUE_FULL: 429,
  TOO_MANY_ATTEMPTS: 429,
  TOOL_EXECUTION_FAILED: 500,
  INTERNAL_ERROR: 500,
  NO_HEALTHY_INSTANCE: 503,
  BACKEND_UNAVAILABLE: 503,
  BACKEND_TIMEOUT: 503,
  SESSION_LIMIT: 503,
  SHUTTING_DOWN: 503,
  DATABASE_UNAVAILABLE: 503,
} as const;

/** A second status of a code. 403: it depends on the caller; 400: the command is refused to all callers. Source: ADR 51. */
export const OTHER_STATUS = { COMMAND_NOT_ALLOWED: 400 } as const satisfies Partial<
  Record<keyof typeof ERROR_STATUS, number>
>;

export type ErrorCode = keyof typeof ERROR_STATUS;

/** Every status with which a code may be answered. */
export function statusesOf(code: ErrorCode): readonly number[] {
  return [
    ERROR_STATUS[code],
    ...Object.entries(OTHER_STATUS).flatMap(([other, status]) => (other === code ? [status] : [])),
  ];
}
