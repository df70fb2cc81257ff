// Verifies one credential by its kind: an API key, a token of a login, an access token of an MCP client, or a token of another
// issuer. authenticator.ts keeps what is verified.

import type { Grant } from '../domain/accounts/grant.ts';
import { isOfIssuer, type Principal } from '../domain/accounts/principal.ts';
import { invalidCredentials } from '../domain/errors/account-errors.ts';
import type { Clock } from '../domain/time/clock.ts';
import type { AccountStore } from '../persistence/store.ts';
import { isFirstAdmin } from './accounts/accounts.ts';
import { isKey, isSecretOf, parseKey } from './accounts/api-keys.ts';
import { KeyLookups, WRONG_KEY } from './accounts/key-lookups.ts';
import type { Tokens } from './accounts/tokens.ts';
import { type AccessClaims, type AccessTokens, isAccessToken } from './grants/access-tokens.ts';
import type { Grants } from './grants/grants.ts';
import {
  type AccountStatus,
  accessPrincipal,
  isActive,
  keyPrincipal,
  type RightsSettings,
  statusOf,
  userPrincipal,
} from './principals.ts';

export interface Identity {
  readonly principal: Principal;
  /** The expiry, in ms since 1970; infinite for a key without expiry. */
  readonly expiresAtMs: number;
  /** The id of the key; set for an API key. */
  readonly keyId?: string;
  /** The id of the grant; set for an access token. */
  readonly grantId?: string;
  readonly status: AccountStatus;
}

/** Tokens of other issuers: see issuers.ts. */
export interface ForeignTokens {
  has(token: string): boolean;
  verify(token: string, isKnown: boolean): Promise<Identity>;
  granted(claims: AccessClaims, grant: Grant): Principal | undefined;
}

export interface CredentialVerifierOptions {
  readonly accounts: Pick<AccountStore, 'findUsers' | 'findApiKeys' | 'apiKeyIds' | 'isTokenEnded'>;
  readonly tokens: Tokens;
  readonly rightsSettings: RightsSettings;
  readonly clock: Clock;
  /** False: tokens of password logins are valid for the first admin only. Default: true. */
  readonly hasPasswordLogins?: boolean | undefined;
  /** If it is undefined, no access token of an MCP client is valid. */
  readonly oauth?: { readonly tokens: AccessTokens; readonly grants: Grants } | undefined;
  /** If it is undefined, no token of another issuer is valid. */
  readonly issuers?: ForeignTokens | undefined;
}

/** Verifies credentials of every kind. It keeps nothing but which keys it has looked up. */
export class CredentialVerifier {
  readonly #options: CredentialVerifierOptions;
  readonly #lookups: KeyLookups;

  constructor(options: CredentialVerifierOptions) {
    this.#options = options;
    this.#lookups = new KeyLookups(options.accounts, options.clock.now);
  }

  /** A key was created on this node: it is looked up at once. */
  keyCreated(id: string): void {
    this.#lookups.created(id);
  }

  /** The identity of a credential; `isKnown`: it was verified before. The errors are those of Auth.authenticate. */
  verify(credential: string, isKnown: boolean, address: string): Promise<Identity> {
    const { issuers } = this.#options;
    if (isKey(credential)) return this.#verifyKey(credential, isKnown, address);
    if (issuers?.has(credential) === true) return issuers.verify(credential, isKnown);
    return isAccessToken(credential) ? this.#verifyAccessToken(credential) : this.#verifyToken(credential);
  }

  async #verifyToken(token: string): Promise<Identity> {
    const { tokens, accounts, rightsSettings, hasPasswordLogins = true } = this.#options;
    const { userId, id, credentialsAtMs, expiresAtMs, signedInBy } = await tokens.read(token);
    const [user] = await accounts.findUsers([userId]);
    const isCurrent = isActive(user) && Date.parse(user.credentialsChangedAt) === credentialsAtMs;
    if (!isCurrent || (await accounts.isTokenEnded(userId, id)))
      throw invalidCredentials('The token is no longer valid; log in again');
    if (!hasPasswordLogins && signedInBy === 'password' && !isFirstAdmin(user))
      throw invalidCredentials(
        'The token is of a login with a password, which this gateway no longer accepts',
      );
    const principal = userPrincipal(user, rightsSettings);
    return { principal, expiresAtMs, status: statusOf(user) };
  }

  async #verifyAccessToken(token: string): Promise<Identity> {
    const { oauth, accounts, rightsSettings, issuers } = this.#options;
    if (oauth === undefined) throw invalidCredentials();
    const claims = await oauth.tokens.read(token);
    const [[grant], [user]] = await Promise.all([
      oauth.grants.find([claims.grantId]),
      isOfIssuer(claims.userId) ? [] : accounts.findUsers([claims.userId]),
    ]);
    const isTheirs = grant?.userId === claims.userId && grant.clientId === claims.clientId;
    if (grant === undefined || !isTheirs) throw invalidCredentials(GRANT_OVER);
    const principal = isActive(user)
      ? accessPrincipal(claims, grant, user, rightsSettings)
      : issuers?.granted(claims, grant);
    if (principal === undefined) throw invalidCredentials(GRANT_OVER);
    const status = statusOf(user, undefined, grant);
    return { principal, expiresAtMs: claims.expiresAtMs, grantId: grant.id, status };
  }

  /** A key that was verified before does not wait behind unknown ones. */
  async #verifyKey(text: string, isKnown: boolean, address: string): Promise<Identity> {
    const parts = parseKey(text);
    if (parts === undefined) throw invalidCredentials(WRONG_KEY);
    const verification = () => this.#identityOf(parts);
    return isKnown ? verification() : this.#lookups.verify(parts.id, address, verification);
  }

  async #identityOf({ id, secret }: { readonly id: string; readonly secret: string }): Promise<Identity> {
    const { accounts } = this.#options;
    const [key] = await accounts.findApiKeys([id]);
    if (key === undefined || !isSecretOf(secret, key.secretHash)) throw invalidCredentials(WRONG_KEY);
    const [owner] = key.ownerId === undefined ? [] : await accounts.findUsers([key.ownerId]);
    const status = statusOf(owner, key);
    if (status.endsAtMs <= this.#options.clock.wall()) throw keyExpired();
    if (key.ownerId !== undefined && !isActive(owner)) throw invalidCredentials(WRONG_KEY);
    const principal = keyPrincipal(key, owner, this.#options.rightsSettings);
    return { principal, expiresAtMs: status.endsAtMs, keyId: key.id, status };
  }
}

const GRANT_OVER = 'The token is no longer valid; sign in again';

export function keyExpired(): Error {
  return invalidCredentials('The API key has expired');
}
