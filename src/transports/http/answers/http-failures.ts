// Makes BACKEND_UNAVAILABLE of failures between the gateway and an HTTP backend: the reason, whether the request
// can have reached the backend, and whether the instance should be probed. A reason repeats the beginning of a
// refusal (refusal-text.ts). Decisions depend on codes, never on texts.

import {
  backendRefused,
  backendUnavailable,
  endpointUnavailable,
} from '../../../domain/errors/backend-errors.ts';
import { asGatewayError, codeOf, GatewayError } from '../../../domain/errors/errors.ts';
import { LIMITS } from '../../../domain/limits.ts';
import { InvalidResponse } from '../../../net/http1/response-parser.ts';
import { AddressDenied } from '../../../net/network-guard.ts';
import { CODINGS, MAX_CODINGS } from './body-decoder.ts';

/** An HTTP status that is not a success, with the explanation of the server. */
export interface RefusedStatus {
  readonly status: number;
  /** Beginning of its text, for callers. */
  readonly text?: string;
  /** Method and path of the request: `POST /mcp`. */
  readonly asked?: string;
  /** The target of a redirect: a path of the same origin, or a URL without its query. */
  readonly location?: string | undefined;
  /** Methods that the server allows there. */
  readonly allow?: string | undefined;
  /** The wait of `Retry-After`, in ms. */
  readonly waitMs?: number | undefined;
}

/**
 * The failure of a connection. `wasSent`: the request was being written. A refused connection says that the instance is
 * `unreachable`, every other failure that it is `suspicious`.
 */
export function connectionFailed(error: Error, wasSent: boolean): GatewayError {
  if (error instanceof AddressDenied) {
    return backendUnavailable(error.message, { delivered: 'no', cause: error });
  }
  const code = codeOf(error);
  if (code === 'ECONNREFUSED' && !wasSent) {
    return endpointUnavailable('connection refused', {
      delivered: 'no',
      cause: error,
      health: 'unreachable',
    });
  }
  if (error instanceof InvalidResponse) {
    const reason = `answered with invalid HTTP: ${error.message}`;
    return endpointUnavailable(reason, { delivered: 'unknown', cause: error, health: 'suspicious' });
  }
  const what = wasSent ? 'the connection broke before the answer' : 'the connection could not be made';
  return endpointUnavailable(code ? `${what} (${code})` : what, {
    delivered: wasSent ? 'unknown' : 'no',
    cause: error,
    health: 'suspicious',
  });
}

/**
 * The failure of a request that was answered with a status other than success. After 4xx and redirects nothing was
 * done; a 5xx may come after the work.
 */
export function answeredStatus(refused: RefusedStatus): GatewayError {
  const { status, waitMs } = refused;
  const words = explanationOf(refused);
  const refusal = { status, waitMs };
  if (status < 400) return backendRefused(refusal, words, { delivered: 'no', health: 'suspicious' });
  if (status < 500) return backendRefused(refusal, words, { delivered: 'no' });
  return backendRefused(refusal, words, { delivered: 'unknown', health: 'suspicious' });
}

/**
 * The explanation of the server; for a redirect its target; for 405 also the methods that the address takes. '' when there is
 * none.
 */
export function explanationOf({
  status,
  text = '',
  asked = 'the request',
  location,
  allow,
}: RefusedStatus): string {
  if (status < 400)
    return `${asked} answered ${status} ${location === undefined ? 'without a location' : `to ${location}: register that address`}`;
  if (status !== 405 || (allow === undefined && !asked.startsWith('POST '))) return text;
  const methods = allow === undefined ? 'no POST, but perhaps GET' : `only ${allow}`;
  const isStream = allow === undefined || (/\bGET\b/i.test(allow) && !/\bPOST\b/i.test(allow));
  const hint = isStream ? ', as an event stream of the older transport (sse) does' : '';
  return `it takes ${methods}${hint}${text === '' ? '' : `; ${text}`}`;
}

/**
 * The failure of a call whose status is a success, but without an answer. `detail` describes the answer: "answered with an
 * empty body".
 */
export function answerMissing(detail: string): GatewayError {
  return endpointUnavailable(detail, { delivered: 'unknown', health: 'suspicious' });
}

/** A message of the answer is longer than `mostBytes`. The call may have run. */
export function answerTooLarge(mostBytes: number = LIMITS.backendMessageBytes): GatewayError {
  const reason = `answered with more than ${mostBytes} bytes in one message`;
  return endpointUnavailable(reason, { delivered: 'unknown' });
}

/** The body has a content coding that the gateway does not decode. It would have it again. */
export function codingUnknown(coding: string): GatewayError {
  const reason = `answered in the encoding "${coding}"; the gateway reads plain bodies and up to ${MAX_CODINGS} of ${CODINGS.join(', ')}`;
  return endpointUnavailable(reason, { delivered: 'unknown' });
}

/** The bytes of the body are not in the content coding that its headers name. */
export function codingFailed(coding: string, error: Error): GatewayError {
  const code = codeOf(error);
  const reason = `answered with a body that is not ${coding}${code === undefined ? '' : ` (${code})`}`;
  return endpointUnavailable(reason, { delivered: 'unknown', health: 'suspicious', cause: error });
}

export const SESSION_LOST = 'it forgot the session';

/** The session of a client is lost: its call never ran. */
export function sessionForgotten(): GatewayError {
  return backendUnavailable(SESSION_LOST, { delivered: 'no', isSessionLost: true });
}

/** The request never ran, and can be sent again. */
export function refusedBeforeWork(): GatewayError {
  const reason = 'it refused the request before any work';
  return backendUnavailable(reason, { delivered: 'no', isRepaired: true });
}

/** The session was lost and no new one could be opened: the call never ran. */
export function sessionNotReplaced(thrown: unknown): GatewayError {
  const error = asGatewayError(thrown);
  const reason = 'it forgot the session and no new one could be opened';
  return backendUnavailable(reason, { delivered: 'no', cause: error.cause ?? error, health: 'suspicious' });
}

/** The gateway closed the connection. `wasSent`: as in connectionFailed. */
export function connectionClosed(reason: string, wasSent: boolean): GatewayError {
  return endpointUnavailable(reason, { delivered: wasSent ? 'unknown' : 'no' });
}

/** True when the backend ended the connection before the answer. */
export function wasCutOff(thrown: unknown): boolean {
  return thrown instanceof GatewayError && thrown.delivered !== 'no' && isBroken(thrown);
}

/** True for a failure that a program may cause while it starts, perhaps behind a port forwarder. */
export function mayBeStarting(thrown: unknown): boolean {
  if (!(thrown instanceof GatewayError)) return false;
  return thrown.facts.health === 'unreachable' || isBroken(thrown);
}

function isBroken({ facts: { cause } }: GatewayError): boolean {
  return BROKEN_CODES.has(codeOf(cause) ?? '');
}

const BROKEN_CODES: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE']);
