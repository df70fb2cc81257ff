// The errors of accounts, credentials and their limits.

import type { Scope } from '../accounts/account.ts';
import { shellWord } from '../text.ts';
import { GatewayError, retryAfter } from './errors.ts';
import { quoted, validationFailed } from './request-errors.ts';

// --- authentication ----------------------------------------------------------------------------------------

export function authenticationRequired(): GatewayError {
  const message = 'Authentication is required: send "Authorization: Bearer <token>" or "X-API-Key: <key>".';
  return new GatewayError('AUTHENTICATION_REQUIRED', message);
}

/** `why` is a clause that reveals nothing to the caller: "The API key has expired". */
export function invalidCredentials(why = 'The credentials are not valid'): GatewayError {
  return new GatewayError('INVALID_CREDENTIALS', `${why}.`);
}

/** A password was sent to a gateway with `auth.passwords: false`. */
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

/** A change of accounts came from a remote caller while authentication is off: the account would remain when it is turned on. */
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
  const command = `stagedoor user link ${shellWord(username)} --issuer=${shellWord(issuer)} --subject=${shellWord(subject)}`;
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

/** Another admin has linked the same account at the same moment. */
export function linkedMeanwhile(username: string): GatewayError {
  const msg = `The account of ${username} is being linked to another subject, too; try again`;
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

/** A change would remove the admin that does not depend on a provider, while `auth.providers` is set. */
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
