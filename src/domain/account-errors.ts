// Errors about the caller: credentials, permissions, limits, and accounts. No error names a secret.

import type { Scope } from './account.ts';
import { GatewayError } from './errors.ts';

// --- authentication ---------------------------------------------------------------------------------------------

export function authenticationRequired(): GatewayError {
  const message = 'Authentication is required: send "Authorization: Bearer <token>" or "X-API-Key: <key>".';
  return new GatewayError('AUTHENTICATION_REQUIRED', message, { challenge: true });
}

/** `why` is a clause that helps without telling more than the caller knows: "The API key has expired". */
export function invalidCredentials(why = 'The credentials are not valid'): GatewayError {
  return new GatewayError('INVALID_CREDENTIALS', `${why}.`, { challenge: true });
}

export function tokenExpired(): GatewayError {
  return new GatewayError('TOKEN_EXPIRED', 'The token has expired; log in again.', { challenge: true });
}

// --- authorization ----------------------------------------------------------------------------------------------

export function accountsNeedAllTemplates(): GatewayError {
  const message = 'Accounts and the audit log are not for callers who are limited to templates.';
  return new GatewayError('INSUFFICIENT_PERMISSIONS', message, { requiredPermissions: ['admin'] });
}

/** For a caller on this machine whose request is refused because it came through a proxy. */
export const BEHIND_A_PROXY =
  'What a proxy forwarded counts as from elsewhere: behind one turn authentication on, or ask the gateway directly.';

/** While authentication is off: an account made from elsewhere would remain when authentication is turned on. */
export function accountsFromHereOnly(): GatewayError {
  const message = `While authentication is off, accounts are changed from this machine only. ${BEHIND_A_PROXY}`;
  return new GatewayError('INSUFFICIENT_PERMISSIONS', message, { requiredPermissions: ['admin'] });
}

/** `anyOf`: one of these scopes is enough. */
export function insufficientPermissions(anyOf: readonly Scope[]): GatewayError {
  const needed = anyOf.map((scope) => `"${scope}"`).join(' or ');
  return new GatewayError('INSUFFICIENT_PERMISSIONS', `This needs the permission ${needed}.`, {
    requiredPermissions: anyOf,
  });
}

export function rateLimitExceeded(hourlyLimit: number, retryAfterSeconds: number): GatewayError {
  const message = `The limit of ${hourlyLimit} requests per hour is used up.`;
  return new GatewayError('RATE_LIMIT_EXCEEDED', message, { retryAfterSeconds });
}

export function tooManyAttempts(retryAfterSeconds: number): GatewayError {
  const message = 'Too many attempts to log in; wait a moment.';
  return new GatewayError('TOO_MANY_ATTEMPTS', message, { retryAfterSeconds });
}

/** Too many passwords are being hashed or compared at the same time. */
export function tooManyPasswords(retryAfterSeconds: number): GatewayError {
  const message = 'Too many passwords at once; wait a moment.';
  return new GatewayError('TOO_MANY_ATTEMPTS', message, { retryAfterSeconds });
}

// --- accounts ---------------------------------------------------------------------------------------------------

export function duplicateUsername(username: string): GatewayError {
  return new GatewayError('DUPLICATE_USERNAME', `There is a user named "${username}" already.`);
}

export function lastAdmin(): GatewayError {
  const message = 'This is the last active admin: make another one first.';
  return new GatewayError('LAST_ADMIN', message);
}

export function userNotFound(id: string): GatewayError {
  return new GatewayError('USER_NOT_FOUND', `There is no user "${id}".`);
}

export function apiKeyNotFound(id: string): GatewayError {
  return new GatewayError('API_KEY_NOT_FOUND', `There is no API key "${id}".`);
}
