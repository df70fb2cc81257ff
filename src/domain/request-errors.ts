// Errors about the form of a request: an unknown route, or an unreadable request. Errors about its subject are in
// registry-errors.ts and backend-errors.ts.

import { type ErrorDetails, GatewayError, type ValidationItem } from './errors.ts';

export function routeNotFound(method: string, path: string): GatewayError {
  return new GatewayError(
    'NOT_FOUND',
    `No route for ${method} ${path}. GET /gateway/templates lists the templates, GET /docs shows the API.`,
  );
}

export function methodNotAllowed(method: string, path: string, allow: readonly string[]): GatewayError {
  const message = `${path} does not answer ${method}; it answers ${allow.join(', ')}.`;
  return new GatewayError('METHOD_NOT_ALLOWED', message, { allow });
}

export function originNotAllowed(reason: string): GatewayError {
  return new GatewayError('ORIGIN_NOT_ALLOWED', reason);
}

export function malformedJson(reason: string, cause?: unknown): GatewayError {
  return new GatewayError('MALFORMED_JSON', `The request body is not JSON: ${reason}.`, { cause });
}

export function payloadTooLarge(limitBytes: number): GatewayError {
  return new GatewayError('PAYLOAD_TOO_LARGE', `The request body is larger than ${limitBytes} bytes.`);
}

/** The bodies of one caller, or of all, that are read, queued or in flight take all the memory there is for them. */
export function tooManyBodies(): GatewayError {
  const message =
    'Too many large request bodies are read, queued or in flight; wait until some are answered.';
  return new GatewayError('QUEUE_FULL', message, { delivered: 'no', retryAfterSeconds: 1 });
}

export function unsupportedMediaType(contentType: string, accepted = 'application/json'): GatewayError {
  const message = `The request body must be ${accepted}, not "${contentType}".`;
  return new GatewayError('UNSUPPORTED_MEDIA_TYPE', message);
}

/** The message names the first issue, which is all that programs often show; beside all of them `plainMessage` does. */
export function validationFailed(
  items: readonly ValidationItem[],
  what = 'The request',
  facts: Omit<ErrorDetails, 'items'> = {},
): GatewayError {
  const [first, ...more] = items;
  const issue = [first?.loc.slice(1).join('.'), first?.msg].filter(Boolean).join(': ');
  const rest = more.length === 0 ? '' : ` (and ${more.length} more)`;
  const plainMessage = `${what} is not valid.`;
  const message = `${what} is not valid: ${issue}${rest}.`;
  return new GatewayError('VALIDATION_ERROR', message, { ...facts, items, plainMessage });
}

/** A request of an embedding program that cannot be written: a BigInt, a circle, a `toJSON` that throws. No other
 *  instance could do more with it, hence `yes`. */
export function notWritable(cause: unknown): GatewayError {
  const item = { loc: ['body'], msg: 'The request cannot be written as JSON', type: 'json_type' };
  return new GatewayError('VALIDATION_ERROR', `${item.msg}.`, { cause, delivered: 'yes', items: [item] });
}
