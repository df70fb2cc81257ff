// The catalogue of errors, by subject. Each constructor takes the values in its message. No error names a secret.
// Errors that are made of the answer of a backend are in answer-errors.ts.

import type { Scope } from '../accounts/account.ts';
import { neededAccount } from '../calls/connection-required.ts';
import type { InstanceDefinition, InstanceSnapshot } from '../instances/instance.ts';
import { LIMITS } from '../limits.ts';
import { cutText, shellWord } from '../text.ts';
import type { ConnectionNeed } from '../vault/account-connection.ts';
import {
  type Delivered,
  type ErrorDetails,
  GatewayError,
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
  details: Omit<ErrorDetails, 'items'> = {},
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

// --- authentication ----------------------------------------------------------------------------------------

export function authenticationRequired(): GatewayError {
  const message = 'Authentication is required: send "Authorization: Bearer <token>" or "X-API-Key: <key>".';
  return new GatewayError('AUTHENTICATION_REQUIRED', message);
}

/** `why` is a clause that reveals nothing to the caller: "The API key has expired". */
export function invalidCredentials(why = 'The credentials are not valid'): GatewayError {
  return new GatewayError('INVALID_CREDENTIALS', `${why}.`);
}

/** With `auth.passwords: false`. */
export function passwordsOff(): GatewayError {
  return new GatewayError(
    'PASSWORDS_OFF',
    'This gateway takes no passwords (auth.passwords): sign in with an account of the company, at the command line with "gateway login --sso".',
  );
}

export const clientNotFound = thereIsNo('client');
export const grantNotFound = thereIsNo('grant');
export const connectionNotFound = thereIsNo('connection');

function thereIsNo(kind: string): (id: string) => GatewayError {
  return (id) => new GatewayError('NOT_FOUND', `There is no ${kind} "${id}".`);
}

export function tokenExpired(): GatewayError {
  return new GatewayError('TOKEN_EXPIRED', 'The token has expired; log in again.');
}

/** A token of another issuer cannot be verified: it is neither accepted nor refused. */
export function issuerUnavailable(issuer: string): GatewayError {
  const message = `The keys of the issuer ${issuer} cannot be read at this moment, so its tokens cannot be verified.`;
  return new GatewayError('ISSUER_UNAVAILABLE', message, retryAfter(60));
}

// --- authorization -----------------------------------------------------------------------------------------

export function accountsNeedAllTemplates(): GatewayError {
  const message = 'Callers with a list of templates, views or tools cannot access accounts or the audit log.';
  return new GatewayError('INSUFFICIENT_PERMISSIONS', message, { requiredPermissions: ['admin'] });
}

/** An account belongs to its server, whatever template uses it. */
export function accountOfOthers(): GatewayError {
  const message =
    'Callers with a list of templates or tools cannot register the first instance of a template with accounts at this server: other templates may use them.';
  return new GatewayError('INSUFFICIENT_PERMISSIONS', message);
}

/** The last sentence of refusals that depend on the address of the caller. */
export const BEHIND_A_PROXY =
  'Requests that a proxy forwards count as remote: turn authentication on, or send them to the gateway directly.';

/** While authentication is off: an account of a remote caller would remain when authentication is turned on. */
export function accountsFromHereOnly(): GatewayError {
  const message = `While authentication is off, accounts can be changed only from this machine, and not from a web page. ${BEHIND_A_PROXY}`;
  return new GatewayError('INSUFFICIENT_PERMISSIONS', message, { requiredPermissions: ['admin'] });
}

/** A valid token of another issuer. Without scopes to ask for: another sign-in would end the same way. */
export function noRoleForGroups(message: string): GatewayError {
  return new GatewayError('INSUFFICIENT_PERMISSIONS', message);
}

export function accountDisabled(username: string): GatewayError {
  return new GatewayError('INSUFFICIENT_PERMISSIONS', `The account ${username} is disabled at this gateway.`);
}

/** A key would outlive the token, and there is no account that an admin could disable. */
export function keysNeedAnAccount(): GatewayError {
  const message = 'API keys are created by callers with an account here, not with a token of another issuer.';
  return new GatewayError('INSUFFICIENT_PERMISSIONS', message);
}

/** An API key has no account at a backend: its owner is not the person who uses it. */
export function keysHaveNoAccount(): GatewayError {
  const message = 'An API key has no account at servers: sign in as the user whose account it is.';
  return new GatewayError('INSUFFICIENT_PERMISSIONS', message);
}

/** `anyOf`: one of these scopes is enough. */
export function insufficientPermissions(anyOf: readonly Scope[]): GatewayError {
  const needed = anyOf.map((scope) => `"${scope}"`).join(' or ');
  return new GatewayError('INSUFFICIENT_PERMISSIONS', `This requires the permission ${needed}.`, {
    requiredPermissions: anyOf,
  });
}

export function rateLimitExceeded(hourlyLimit: number, retryAfterSeconds: number): GatewayError {
  const message = `Rate limit exceeded: ${hourlyLimit} requests per hour.`;
  return new GatewayError('RATE_LIMIT_EXCEEDED', message, { retryAfterSeconds });
}

/**
 * The caller has used up its hourly limit, and sends messages that do not count, such as notifications, faster than it may then.
 */
export function tooManyFreeMessages(perSecond: number): GatewayError {
  const message = `Rate limit exceeded: no request is left this hour, and other messages are limited to ${perSecond} per second.`;
  return new GatewayError('RATE_LIMIT_EXCEEDED', message, retryAfter(1));
}

export function tooManyAttempts(retryAfterSeconds: number): GatewayError {
  const message = 'Too many login attempts; try again later.';
  return new GatewayError('TOO_MANY_ATTEMPTS', message, { retryAfterSeconds });
}

export function tooManyProofs(retryAfterSeconds: number): GatewayError {
  const message = 'Too many requests for a proof of this gateway; try again later.';
  return new GatewayError('TOO_MANY_ATTEMPTS', message, { retryAfterSeconds });
}

export function tooManyKeys(retryAfterSeconds: number): GatewayError {
  const message = 'Too many API keys are being looked up at once; try again later.';
  return new GatewayError('TOO_MANY_ATTEMPTS', message, { retryAfterSeconds });
}

export function tooManyPasswords(retryAfterSeconds: number): GatewayError {
  const message = 'Too many passwords are being checked at once; try again later.';
  return new GatewayError('TOO_MANY_ATTEMPTS', message, { retryAfterSeconds });
}

// --- accounts ----------------------------------------------------------------------------------------------

export function duplicateUsername(username: string): GatewayError {
  return new GatewayError('DUPLICATE_USERNAME', `User "${username}" already exists.`);
}

/** An account that a provider vouches for is never found by its name. */
export function nameOfLocalAccount(username: string, issuer: string, subject: string): GatewayError {
  const command = `stagedoor users link ${shellWord(username)} --issuer=${shellWord(issuer)} --subject=${shellWord(subject)}`;
  const message = `An account of this gateway has the name ${username} already, and accounts are never joined by name. If both are yours, an admin can run "${command}". Else an admin can delete that account, or choose another claim for names.`;
  return new GatewayError('DUPLICATE_USERNAME', message);
}

export function unknownProvider(): GatewayError {
  const msg = 'Input should be the issuer of an entry of auth.providers';
  return validationFailed([{ loc: ['body', 'issuer'], msg, type: 'value_error' }]);
}

/** `owner`: undefined when it was linked at the same time. */
export function linkedToAnother(owner = 'another user'): GatewayError {
  const msg = `It belongs to the account of ${owner}; delete that account, or unlink it`;
  return validationFailed([{ loc: ['body', 'subject'], msg, type: 'value_error' }]);
}

export function notLinked(username: string): GatewayError {
  return new GatewayError('NOT_FOUND', `The user ${username} has no account of an identity provider.`);
}

export function lastAdmin(): GatewayError {
  return new GatewayError(
    'LAST_ADMIN',
    'This is the last active admin with access to all templates: create another one first.',
  );
}

/** With `auth.providers`: the admin that does not depend on a provider. */
export function keptAdmin(): GatewayError {
  return new GatewayError(
    'LAST_ADMIN',
    'The user admin stays an active admin of all templates while providers give roles (auth.providers): it is the way in when they fail.',
  );
}

export function userNotFound(id: string): GatewayError {
  return new GatewayError('USER_NOT_FOUND', `User ${quoted(id)} not found.`);
}

export function apiKeyNotFound(id: string): GatewayError {
  return new GatewayError('API_KEY_NOT_FOUND', `API key ${quoted(id)} not found.`);
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
export function tooManyTests(most: number, isShare: boolean): GatewayError {
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
  const plainMessage = `${name} is not healthy after ${waitMs / 1000} s; it stays registered and the gateway retries.`;
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

type SessionFact = 'isSessionLost' | 'isRepaired';
type BackendFacts = Pick<
  ErrorDetails,
  'cause' | 'stderr' | 'suspicious' | 'unreachable' | 'backendStatus' | 'backendWaitMs' | SessionFact
> & { delivered: Delivered };

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
export function backendRefused(status: number, said: string, details: BackendFacts): GatewayError {
  const isCredential = status === 401 || status === 403;
  const what = `answered ${status}${isCredential ? ` (${CREDENTIALS_REFUSED})` : ''}`;
  const isRedirect = status < 400; // then the words say where to
  const reason = isRedirect ? said : said === '' ? what : `${what}: ${said}`;
  const facts = { ...details, backendStatus: status };
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
  const message = neededAccount(connection);
  const where = connection.url === undefined ? {} : { connectUrl: connection.url };
  return new GatewayError('CONNECTION_REQUIRED', message, { delivered: 'no', connection, ...where });
}

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

export function backendTimeout(afterMs: number, delivered: Delivered = 'unknown'): GatewayError {
  // A measured time is a few ms over the limit.
  const seconds = (afterMs < 1_000 ? afterMs : Math.round(afterMs / 100) * 100) / 1000;
  return new GatewayError('BACKEND_TIMEOUT', `The backend did not answer within ${seconds} s.`, {
    ...(delivered === 'no' ? retryAfter(1) : { delivered }),
    suspicious: true,
    reason: `it did not answer within ${seconds} s`,
  });
}
