// One error of each code, made by its constructor, for the examples of the API description.

import {
  invalidToolArguments,
  promptNotFound,
  resourceNotFound,
  toolExecutionFailed,
} from '../../domain/answer-errors.ts';
import * as catalogue from '../../domain/error-catalogue.ts';
import {
  databaseUnavailable,
  type ErrorCode,
  type GatewayError,
  internalError,
  shuttingDown,
} from '../../domain/errors.ts';
import { RPC } from '../../domain/jsonrpc.ts';
import { LIMITS } from '../../domain/limits.ts';

export const ERROR_SAMPLES: Readonly<Record<ErrorCode, GatewayError>> = {
  MALFORMED_JSON: catalogue.malformedJson('it ends in the middle of an object'),
  DUPLICATE_USERNAME: catalogue.duplicateUsername('ada'),
  DUPLICATE_SERVER: catalogue.duplicateServer('everything-1'),
  LAST_ADMIN: catalogue.lastAdmin(),
  REGISTRY_FULL: catalogue.registryFull('instances', 10_000),
  CONFIG_INCOMPLETE: catalogue.configIncomplete('The instance has neither "endpoint" nor "command".'),
  ENDPOINT_NOT_ALLOWED: catalogue.endpointNotAllowed('169.254.169.254 is in a denied network.'),
  INVALID_TOOL_ARGUMENTS: invalidToolArguments('echo', {
    code: RPC.invalidParams,
    message: '"message" is missing',
  }),
  AUTHENTICATION_REQUIRED: catalogue.authenticationRequired(),
  INVALID_CREDENTIALS: catalogue.invalidCredentials(),
  TOKEN_EXPIRED: catalogue.tokenExpired(),
  INSUFFICIENT_PERMISSIONS: catalogue.insufficientPermissions(['gateway:write']),
  COMMAND_NOT_ALLOWED: catalogue.commandNotAllowed(
    'This command is not in the list of allowed commands; an admin may register it.',
  ),
  ORIGIN_NOT_ALLOWED: catalogue.originNotAllowed(
    'The Origin of the request is not allowed. See allowed_origins.',
  ),
  TEMPLATE_NOT_FOUND: catalogue.templateNotFound('nothing'),
  SERVER_NOT_FOUND: catalogue.serverNotFound('everything-1'),
  TOOL_NOT_FOUND: catalogue.toolNotFound('shout', 'everything'),
  RESOURCE_NOT_FOUND: resourceNotFound('demo://resource/static/document/none.md'),
  PROMPT_NOT_FOUND: promptNotFound('no-prompt'),
  USER_NOT_FOUND: catalogue.userNotFound('3f6c1d0e-8a64-4d53-9f55-5a1c2b7e9d10'),
  API_KEY_NOT_FOUND: catalogue.apiKeyNotFound('00112233445566ff'),
  SESSION_NOT_FOUND: catalogue.sessionNotFound(),
  NOT_FOUND: catalogue.routeNotFound('GET', '/nowhere'),
  METHOD_NOT_ALLOWED: catalogue.methodNotAllowed('DELETE', '/stats', ['GET', 'HEAD', 'OPTIONS']),
  PAYLOAD_TOO_LARGE: catalogue.payloadTooLarge(LIMITS.requestBodyBytes),
  UNSUPPORTED_MEDIA_TYPE: catalogue.unsupportedMediaType('text/plain'),
  VALIDATION_ERROR: catalogue.validationFailed([
    { loc: ['body', 'name'], msg: 'Field required', type: 'missing' },
  ]),
  RATE_LIMIT_EXCEEDED: catalogue.rateLimitExceeded(1_000, 1_234),
  QUEUE_FULL: catalogue.queueFull('everything'),
  TOO_MANY_ATTEMPTS: catalogue.tooManyAttempts(42),
  TOOL_EXECUTION_FAILED: toolExecutionFailed('echo', {
    backendError: { code: RPC.internalError, message: 'no voice' },
  }),
  INTERNAL_ERROR: internalError(undefined),
  NO_HEALTHY_INSTANCE: catalogue.noHealthyInstance('everything'),
  BACKEND_UNAVAILABLE: catalogue.backendUnavailable('connection refused', { delivered: 'no' }),
  BACKEND_TIMEOUT: catalogue.backendTimeout(30_000),
  SESSION_LIMIT: catalogue.sessionLimit(LIMITS.sessions),
  SHUTTING_DOWN: shuttingDown(),
  DATABASE_UNAVAILABLE: databaseUnavailable(undefined),
};

/** Samples for the second status of a code. */
export const OTHER_SAMPLES: Readonly<Partial<Record<ErrorCode, GatewayError>>> = {
  COMMAND_NOT_ALLOWED: catalogue.commandExposes(
    '"gateway.key" is the signing key of this gateway: with it a program can make itself an admin; name another folder, such ' +
      'as ./shared, or allow it with "force": true (--force).',
  ),
};
