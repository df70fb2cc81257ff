// The catalogue of errors, by subject. Each constructor takes the values in its message. No error names a secret.
// Errors that are made of the answer of a backend are in answer-errors.ts.

import type { ConnectionNeed } from '../instances/account-connection.ts';
import type { InstanceDefinition, InstanceSnapshot } from '../instances/instance.ts';
import { isMissing } from '../instances/start-failure.ts';
import { LIMITS } from '../limits.ts';
import type { Exceeded } from '../memory/user-shares.ts';
import { cutText } from '../text.ts';
import {
  type Delivered,
  type ErrorFacts,
  GatewayError,
  type HttpRefusal,
  retryAfter,
  type ValidationItem,
} from './errors.ts';

// --- requests ----------------------------------------------------------------------------------------------

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
  const message = 'Too much of your earlier answers is unread; read them, then try again.';
  return new GatewayError('QUEUE_FULL', message, retryAfter(1));
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

// --- templates and instances -------------------------------------------------------------------------------

export function templateNotFound(template: string): GatewayError {
  return new GatewayError('TEMPLATE_NOT_FOUND', `No template named ${quoted(template)} is registered.`);
}

export function serverNotFound(id: string): GatewayError {
  return new GatewayError('SERVER_NOT_FOUND', `No instance ${quoted(id)} is registered.`);
}

export function duplicateServer(id: string): GatewayError {
  return new GatewayError('DUPLICATE_SERVER', `Instance "${id}" already exists.`);
}

/** `what` is the counted noun: "instances". */
export function registryFull(what: string, most: number): GatewayError {
  return new GatewayError(
    'REGISTRY_FULL',
    `The registry is full (${most} ${what}): deregister or delete unused ones first.`,
  );
}

export function configIncomplete(reason: string): GatewayError {
  return new GatewayError('CONFIG_INCOMPLETE', reason);
}

export function endpointNotAllowed(reason: string): GatewayError {
  return new GatewayError('ENDPOINT_NOT_ALLOWED', reason);
}

export function commandNotAllowed(reason: string): GatewayError {
  return new GatewayError('COMMAND_NOT_ALLOWED', reason);
}

/** The command names secrets or files of the gateway; `reason` is a sentence. */
export function commandExposes(reason: string): GatewayError {
  return new GatewayError('COMMAND_NOT_ALLOWED', reason, { status: 400 });
}

/** `isShare`: of this caller. */
export function tooManyTests({ most, isShare }: Exceeded): GatewayError {
  const message = isShare
    ? `This caller has too many running connection tests (${most}); wait until one has ended.`
    : `Too many connection tests are running (${most}); wait until one has ended.`;
  return new GatewayError('QUEUE_FULL', message, retryAfter(5));
}

/** A registered instance was not healthy within `waitMs`, or was removed. */
export function notHealthyInTime(
  { template, id }: Pick<InstanceDefinition, 'template' | 'id'>,
  { state, reason }: Pick<InstanceSnapshot, 'state' | 'reason'>,
  waitMs: number,
): GatewayError {
  const name = `Instance "${id}" of "${template}"`;
  const removed = `${name} was deregistered or replaced before it was healthy.`;
  if (state === 'stopped') return new GatewayError('SERVER_NOT_FOUND', removed);
  const fault = isMissing(reason) ? 'is not healthy' : `is not healthy after ${waitMs / 1000} s`;
  const plainMessage = `${name} ${fault}; it stays registered and the gateway retries.`;
  const details = { delivered: 'no', plainMessage, instanceId: id } as const;
  if (reason === null) return new GatewayError('BACKEND_UNAVAILABLE', plainMessage, details);
  const message = `${plainMessage.slice(0, -1)} (${reason}).`;
  return new GatewayError('BACKEND_UNAVAILABLE', message, { ...details, reason });
}

// --- backends that did not answer --------------------------------------------------------------------------

/** `why`: the reasons of single instances, as clauses; '' without any. `plainWhy`: those that every caller gets. */
export function noHealthyInstance(template: string, why = '', plainWhy = ''): GatewayError {
  const because = (clauses: string): string => (clauses === '' ? '' : `: ${clauses}`);
  const problem = `No instance of "${template}" is healthy right now`;
  const plainMessage = `${problem}${because(plainWhy)}.`;
  const message = `${problem}${because(why)}.`;
  return new GatewayError('NO_HEALTHY_INSTANCE', message, { ...retryAfter(2), plainMessage });
}

/** The instance is registered, but cannot be reached from this node. `why` says where it runs, as a clause. */
export function runsElsewhere(id: string, why: string): GatewayError {
  const plainMessage = `Instance "${id}" cannot be used on this node.`;
  const message = `${plainMessage.slice(0, -1)}: ${why}.`;
  return new GatewayError('NO_HEALTHY_INSTANCE', message, { delivered: 'no', plainMessage });
}

/** A name that a caller sent, which may have any length. */
export const quoted = (name: string): string => `"${cutText(name, LIMITS.locCharacters)}"`;

/** `near`: the tool that was probably meant, if any. */
export function toolNotFound(tool: string, owner: string, near?: string): GatewayError {
  return new GatewayError('TOOL_NOT_FOUND', withHint(`"${owner}" has no tool named ${quoted(tool)}`, near));
}

/** A sentence about an unknown name: `Unknown tool; did you mean "echo"?` */
export function withHint(clause: string, near: string | readonly string[] = []): string {
  const names = [near].flat().map(quoted);
  return names.length === 0 ? `${clause}.` : `${clause}; did you mean ${names.join(' or ')}?`;
}

export function queueFull(template: string): GatewayError {
  const message = `All instances of "${template}" are at capacity and the queue is full.`;
  return new GatewayError('QUEUE_FULL', message, retryAfter(1));
}

type BackendFacts = Pick<
  ErrorFacts,
  'cause' | 'stderr' | 'health' | 'refusal' | 'isSessionLost' | 'isRepaired'
> & {
  delivered: Delivered;
};

/** A backend cannot be used. `reason`: a clause, such as "exited with code 7"; it may name paths of the machine. */
export function backendUnavailable(reason: string, details: BackendFacts): GatewayError {
  return new GatewayError('BACKEND_UNAVAILABLE', `The backend is unavailable: ${reason}.`, {
    ...details,
    ...(details.delivered === 'no' ? retryAfter(1) : {}),
    reason,
    plainMessage: 'The backend is unavailable.',
  });
}

/** As `backendUnavailable`, for a backend at an endpoint: every caller gets the reason, which names no path of the machine. */
export function endpointUnavailable(reason: string, details: BackendFacts): GatewayError {
  const { code, message, facts } = backendUnavailable(reason, details);
  const { plainMessage: _, ...others } = facts;
  return new GatewayError(code, message, others);
}

/**
 * A backend answered with an HTTP status instead of a result. A redirect or a 4xx is its answer: the same request
 * gets the same again, so there is no Retry-After. `said`: its own words, '' if none. Source: ADR 107.
 */
export function backendRefused(refusal: HttpRefusal, said: string, details: BackendFacts): GatewayError {
  const { status } = refusal;
  const isCredential = status === 401 || status === 403;
  const what = `answered ${status}${isCredential ? ` (${CREDENTIALS_REFUSED})` : ''}`;
  const isRedirect = status < 400; // then the words say where to
  const reason = isRedirect ? said : said === '' ? what : `${what}: ${said}`;
  const facts = { ...details, refusal };
  if (status >= 500) return endpointUnavailable(reason, facts);
  const end = /[.!?]$/.test(reason) ? '' : '.';
  return new GatewayError(
    'BACKEND_UNAVAILABLE',
    `The server ${isRedirect ? 'redirects: ' : ''}${reason}${end}`,
    { ...facts, reason },
  );
}

const CREDENTIALS_REFUSED = "the gateway's credentials for the server were refused";

/** The backend wants an account that is not connected, or no longer. The call was not carried out. */
export function connectionRequired(connection: ConnectionNeed): GatewayError {
  const where = connection.url === undefined ? {} : { connectUrl: connection.url };
  return new GatewayError('CONNECTION_REQUIRED', neededAccount(connection), { delivered: 'no', ...where });
}

/** Which account is missing, and who connects it how. */
function neededAccount({ template, instanceId, who, why, url }: ConnectionNeed): string {
  const command = `stagedoor gateway connections add ${template} ${instanceId}`;
  const [whose, how] =
    who === 'shared'
      ? [
          'The shared account',
          url === undefined ? `an admin connects it with "${command}"` : `connect it at ${url}`,
        ]
      : ['Your account', 'connect it'];
  return `${whose} at the server of "${template}" ${WHY_NOT_CONNECTED[why](how)}.`;
}

const WHY_NOT_CONNECTED: Readonly<Record<ConnectionNeed['why'], (how: string) => string>> = {
  none: (how) => `is not connected: ${how} first`,
  ended: (how) => `is no longer connected: ${how} again`,
  scopes: (how) => `may not do this yet: ${how} again to allow more`,
};

/** The gateway stops, and the grace time of the call is over. Default: it may have been carried out. */
export function callCutOff(delivered: Delivered = 'unknown'): GatewayError {
  return backendUnavailable('the gateway is shutting down', { delivered });
}

/** The reason of calls that fail, or are not sent, because incomplete answers reached their memory bound. */
export const ANSWERS_HOLD_TOO_MUCH = 'its incomplete answers reached their memory limit';

/** The caller cancelled the opening of an instance or of a conversation. */
export function openingCancelled(cause?: unknown): GatewayError {
  return backendUnavailable('its start was cancelled', { delivered: 'no', cause });
}

export function notConnected(): GatewayError {
  return backendUnavailable('it is not connected', { delivered: 'no' });
}

/** The request waited for a connection, and may not be sent any more: see ExchangeRequest.mayBeSent. */
export function stoodStill(): GatewayError {
  return backendUnavailable('this node stood still while it waited for a connection', { delivered: 'no' });
}

export function backendTimeout(afterMs: number, delivered: Delivered = 'unknown'): GatewayError {
  // A measured time is a few ms over the limit.
  const seconds = (afterMs < 1_000 ? afterMs : Math.round(afterMs / 100) * 100) / 1000;
  return new GatewayError('BACKEND_TIMEOUT', `The backend did not answer within ${seconds} s.`, {
    ...(delivered === 'no' ? retryAfter(1) : { delivered }),
    health: 'suspicious',
    reason: `it did not answer within ${seconds} s`,
  });
}
