// The credentials of a request: its headers, and the token or the key in them.

import { invalidCredentials } from '../domain/errors/account-errors.ts';
import { isKey } from './accounts/api-keys.ts';
import { WRONG_KEY } from './accounts/key-lookups.ts';
import type { ForeignTokens } from './credential-verifier.ts';

/** The longest credential, in characters: tokens have about 400, API keys 63. */
const MAX_CREDENTIAL_LENGTH = 4_096;
/** The longest credential where other issuers are trusted, whose tokens may contain many groups. */
const MAX_FOREIGN_LENGTH = 12 * 1_024;
const SCHEME = 'bearer ';

/** Two headers as received. */
export interface Credentials {
  /** `Authorization`, the scheme included. */
  readonly authorization?: string | undefined;
  /** `X-API-Key`. */
  readonly apiKey?: string | undefined;
  /** The connection that they came by, if they may be repeated there. */
  readonly connection?: object | undefined;
}

/** The token, or the key, in the header `Authorization`. Throws INVALID_CREDENTIALS. */
export function bearerOf(authorization: string, issuers: ForeignTokens | undefined): string {
  const longest = issuers === undefined ? MAX_CREDENTIAL_LENGTH : MAX_FOREIGN_LENGTH;
  if (authorization.length > longest) throw invalidCredentials();
  // RFC 7235: the scheme is case-insensitive. No regular expression: it would cost as much as the rest of this path.
  const isBearer = authorization.slice(0, SCHEME.length).toLowerCase() === SCHEME;
  const credential = isBearer ? authorization.slice(SCHEME.length).trim() : '';
  if (credential === '')
    throw invalidCredentials('The Authorization header must be "Bearer <token>" or "Bearer <key>"');
  return credential;
}

/** The key in the header `X-API-Key`. Throws INVALID_CREDENTIALS. */
export function apiKeyIn(apiKey: string): string {
  const key = apiKey.length > MAX_CREDENTIAL_LENGTH ? '' : apiKey.trim();
  if (!isKey(key)) throw invalidCredentials(WRONG_KEY);
  return key;
}
