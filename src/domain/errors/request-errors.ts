// The errors of requests themselves: their routes, bodies and fields, and how many may be under way.

import { LIMITS } from '../limits.ts';
import type { Exceeded } from '../memory/user-shares.ts';
import { cutText } from '../text.ts';
import { type ErrorFacts, GatewayError, retryAfter, type ValidationItem } from './errors.ts';

export function routeNotFound(method: string, path: string): GatewayError {
  return new GatewayError(
    'NOT_FOUND',
    `No route for ${method} ${path}. GET /gateway/templates lists the templates, GET /docs shows the API.`,
  );
}

export function consoleNotBuilt(): GatewayError {
  return new GatewayError(
    'NOT_FOUND',
    'The console is not built. Run `npm run build:console` in the folder of the gateway; no restart is needed.',
  );
}

export function methodNotAllowed(method: string, path: string, allow: readonly string[]): GatewayError {
  const message = `Method ${method} is not allowed for ${path}; allowed: ${allow.join(', ')}.`;
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

/** The request bodies of one caller, or of all callers, use all the memory that they may. */
export function tooManyBodies(): GatewayError {
  const message =
    'Too many large request bodies are being read, queued or in flight; try again when some are answered.';
  return new GatewayError('QUEUE_FULL', message, retryAfter(1));
}

/** Messages that wait for their backends and get no answer, of one caller or of all, use all the memory that they may. */
export function tooManyMessages(): GatewayError {
  const message =
    'Too many messages are waiting for backends that do not read them; try again when some are sent.';
  return new GatewayError('QUEUE_FULL', message, retryAfter(1));
}

/** The caller has not read its earlier answers, which use nearly all the memory that they may. */
export function tooMuchUnread(): GatewayError {
  const message = 'You have left too many bytes of earlier answers unread; read them, then try again.';
  return new GatewayError('QUEUE_FULL', message, retryAfter(1));
}

/** The answer to a request that was carried out has no room beside the earlier answers that its caller has not read. */
export function answerNotKept(bytes: number): GatewayError {
  const message = `The answer of ${bytes} bytes is lost: you have left too many bytes of earlier answers unread. Ask for fewer at a time.`;
  return new GatewayError('BACKEND_UNAVAILABLE', message, { delivered: 'unknown' });
}

/** Retry-After when a limit of sessions, processes or subscriptions is reached: the next end is unknown. */
export const ASK_AGAIN_SECONDS = 60;

/**
 * A bound of what may be open or under way at the same time is reached: that of all callers, or the share of this one.
 * `what`: a plural, such as "open subscriptions".
 */
export function tooMany(
  what: string,
  { most, isShare }: Exceeded,
  retryAfterSeconds = ASK_AGAIN_SECONDS,
): GatewayError {
  const message = `${isShare ? 'This caller has' : 'There are'} too many ${what} (${most}).`;
  return new GatewayError('QUEUE_FULL', message, retryAfter(retryAfterSeconds));
}

export function unsupportedMediaType(contentType: string, accepted = 'application/json'): GatewayError {
  const message = `The request body must be ${accepted}, not "${contentType}".`;
  return new GatewayError('UNSUPPORTED_MEDIA_TYPE', message);
}

/** The message names the first issue, because many programs show nothing else; `plainMessage` is for use beside the list. */
export function validationFailed(
  items: readonly ValidationItem[],
  what = 'The request',
  details: Omit<ErrorFacts, 'items'> = {},
): GatewayError {
  const [first, ...more] = items;
  const issue = [first?.loc.slice(1).join('.'), first?.msg].filter(Boolean).join(': ');
  const rest = more.length === 0 ? '' : ` (and ${more.length} more)`;
  const plainMessage = `${what} is not valid.`;
  const message = `${what} is not valid: ${issue}${rest}.`;
  return new GatewayError('VALIDATION_ERROR', message, { ...details, items, plainMessage });
}

/**
 * A request of an embedding program has no JSON: a BigInt, a cycle, a `toJSON` that throws. `delivered:
 * 'yes'`: no other instance helps.
 */
export function notWritable(cause: unknown): GatewayError {
  const item = { loc: ['body'], msg: 'The request cannot be serialized as JSON', type: 'json_type' };
  return new GatewayError('VALIDATION_ERROR', `${item.msg}.`, { cause, delivered: 'yes', items: [item] });
}

/** A name that a caller sent, which may have any length. */
export const quoted = (name: string): string => `"${cutText(name, LIMITS.locCharacters)}"`;

/** A sentence about an unknown name: `Unknown tool; did you mean "echo"?` */
export function withHint(clause: string, near: string | readonly string[] = []): string {
  const names = [near].flat().map(quoted);
  return names.length === 0 ? `${clause}.` : `${clause}; did you mean ${names.join(' or ')}?`;
}
