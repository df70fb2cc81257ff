// Finds the principal of a request.

import { hash } from 'node:crypto';
import { type EndedToken, isOfIssuer, type Principal } from '../domain/accounts/account.ts';
import type { Grant } from '../domain/accounts/grant.ts';
import { authenticationRequired, invalidCredentials, tokenExpired } from '../domain/errors/account-errors.ts';
import { asGatewayError, GatewayError, hasCode } from '../domain/errors/errors.ts';
import { databaseUnavailable } from '../domain/errors/gateway-errors.ts';
import { LruMap } from '../domain/memory/lru-map.ts';
import { Repeated } from '../domain/memory/repeated.ts';
import { type Clock, settlesWithin } from '../domain/time/clock.ts';
import type { AccountStore } from '../persistence/store.ts';
import { isFirstAdmin } from './accounts/accounts.ts';
import { isSecretOf, type KeyUse, type ParsedKey, parseKey } from './accounts/api-keys.ts';
import { KeyLookups, WRONG_KEY } from './accounts/key-lookups.ts';
import type { Tokens } from './accounts/tokens.ts';
import {
  CredentialCache,
  ENTRIES,
  entryCountOf,
  MAX_UNCHECKED_MS,
  SharedRights,
  type StoreChange,
  type Verified,
} from './credential-cache.ts';
import { type AccessClaims, type AccessTokens, isAccessToken } from './oauth/access-tokens.ts';
import type { Grants } from './oauth/grants.ts';
import {
  type AccountStatus,
  accessPrincipal,
  type HourlyLimits,
  isActive,
  keyPrincipal,
  statusOf,
  userPrincipal,
} from './principals.ts';

/** The longest credential, in characters: tokens have about 400, API keys 63. */
const MAX_CREDENTIAL_LENGTH = 4_096;
/** The longest credential where other issuers are trusted, whose tokens may contain many groups. */
const MAX_FOREIGN_LENGTH = 12 * 1_024;
const SCHEME = 'bearer ';
/** The longest wait of a known caller for a store that was silent before, in ms. */
const SILENT_MS = 1_500;

/** Gives the address of the client; called only for credentials that are not cached. */
export type AddressOf = () => string;

interface Refused {
  readonly epoch: number;
  readonly atMs: number;
  readonly message: string;
}

/** Two headers as received. */
export interface Credentials {
  /** `Authorization`, the scheme included. */
  readonly authorization?: string | undefined;
  /** `X-API-Key`. */
  readonly apiKey?: string | undefined;
  /** The connection that they came by, if they may be repeated there. */
  readonly connection?: object | undefined;
}

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

type CachedIdentity = Verified & Identity;

/** Tokens of other issuers: see issuers.ts. */
export interface ForeignTokens {
  has(token: string): boolean;
  verify(token: string, isKnown: boolean): Promise<Identity>;
  granted(claims: AccessClaims, grant: Grant): Principal | undefined;
}

interface OAuth {
  readonly tokens: AccessTokens;
  readonly grants: Grants;
  /** Ends the sign-in of the browser that got this login token. */
  endSignIn(tokenId: string): Promise<unknown>;
}

export interface AuthenticatorOptions {
  readonly accounts: Pick<
    AccountStore,
    'findUsers' | 'findApiKeys' | 'apiKeyIds' | 'isTokenEnded' | 'endToken' | 'changeUser'
  >;
  readonly tokens: Tokens;
  readonly limits: HourlyLimits;
  readonly clock: Clock;
  readonly keyUse: KeyUse;
  /** False: tokens of password logins are valid for the first admin only. Default: true. */
  readonly hasPasswordLogins?: boolean | undefined;
  /** Undefined: no access token of an MCP client is valid. */
  readonly oauth?: OAuth | undefined;
  /** Undefined: no token of another issuer is valid. */
  readonly issuers?: ForeignTokens | undefined;
  /** Called with the user of each verification. Must not throw. */
  readonly used?: ((userId: string) => void) | undefined;
  /** Called with each answer of the store; `isLate` when the accounts changed during the query. */
  readonly revalidator: { track(identity: Identity, isLate: boolean): void };
}

/**
 * Verifies credentials of every kind. Verified credentials are cached by their SHA-256,
 * which is made once for each connection that repeats them, so that the hot path is a look-up. The cache decides how
 * long an entry is fresh. Source: ADR 16, 285.
 */
export class Authenticator {
  readonly #options: AuthenticatorOptions;
  readonly #cache = new CredentialCache<CachedIdentity>(entryCountOf);
  readonly #rights = new SharedRights();
  readonly #digests = new Repeated(digestOf);
  /** Credentials that were refused, until an account changes. */
  readonly #refused = new LruMap<Refused>(ENTRIES);
  readonly #lookups: KeyLookups;
  /** The queries under way, one per credential: all requests with it wait for the same query. */
  readonly #pending = new Map<string, Promise<Principal>>();
  /** Number of changes: an answer to a query that began before a change may be older than the change. */
  #epoch = 0;
  /** Number of those on this node that may have ended credentials. */
  #ownEpoch = 0;

  constructor(options: AuthenticatorOptions) {
    this.#options = options;
    this.#lookups = new KeyLookups(options.accounts, options.clock.now);
  }

  /** Finds the principal of a request by its credentials; the errors are those of Auth.authenticate. */
  authenticate(
    { authorization, apiKey, connection }: Credentials,
    address: AddressOf,
  ): Principal | Promise<Principal> {
    if (apiKey === undefined) {
      if (authorization === undefined) throw authenticationRequired();
      return this.#principalOf(this.#bearerOf(authorization), address, connection);
    }
    const key = apiKeyIn(apiKey);
    if (authorization === undefined) return this.#principalOf(key, address, connection);
    return this.#samePrincipal(this.#bearerOf(authorization), key, address);
  }

  /** A key was created on this node: it is valid at once. */
  keyCreated(id: string): void {
    this.#discardQueries();
    this.#lookups.created(id);
  }

  /** An account changed on this node: its credentials, and those of a user's keys, are verified again at their next use. */
  invalidate(principalId: string): void {
    this.#discardQueries();
    this.#ownEpoch += 1;
    for (const [digest, { principal }] of this.#cache.entries.entries())
      if (principal.id === principalId || `user:${principal.userId}` === principalId)
        this.#cache.entries.delete(digest);
  }

  /**
   * See Auth.logout. When a user has ended too many tokens, an update of its `credentialsChangedAt` ends all
   * of them: the list stays short, and no ended token becomes valid again.
   */
  async endToken({ authorization }: Credentials): Promise<void> {
    const token = authorization === undefined ? undefined : this.#bearerOf(authorization);
    if (token === undefined || isKey(token)) return;
    const { tokens, oauth, issuers } = this.#options;
    // Only its issuer can end such a token.
    if (issuers?.has(token) === true) return;
    if (oauth !== undefined && isAccessToken(token)) {
      const { grantId, userId } = await oauth.tokens.read(token);
      return oauth.grants.revoke(grantId, userId);
    }
    const { userId, id, expiresAtMs } = await tokens.read(token);
    return this.endLoginToken(userId, { id, expiresAtMs });
  }

  /** Ends a login token of which only the id is known, as `endToken` does. */
  async endLoginToken(userId: string, { id, expiresAtMs }: EndedToken): Promise<void> {
    const { accounts, clock, oauth } = this.#options;
    // First: if it fails, the caller can still log out again.
    await oauth?.endSignIn(id);
    if (!(await accounts.endToken(userId, { id, expiresAtMs }, clock.wall()))) {
      const at = new Date(clock.wall()).toISOString();
      await accounts.changeUser(userId, { credentialsChangedAt: at, updatedAt: at });
    }
    // All entries of the user, not only one: different texts of a token decode to the same bytes in base64url.
    this.invalidate(`user:${userId}`);
  }

  /** True when earlier verifications became stale. */
  onStoreChange(change: StoreChange): boolean {
    const isChange = this.#cache.onStoreChange(change, this.#options.clock.now());
    if (isChange) this.#discardQueries();
    // While the database is away the answer is DATABASE_UNAVAILABLE: a refused key may have been created meanwhile.
    if (change === 'away') this.#refused.clear();
    return isChange;
  }

  async #samePrincipal(token: string, key: string, address: AddressOf): Promise<Principal> {
    // The credentials are verified one after the other: the second may throw at once, and the rejection of the first would stop
    // the process.
    const byToken = await this.#principalOf(token, address);
    const byKey = await this.#principalOf(key, address);
    if (byToken.id !== byKey.id)
      throw invalidCredentials('The headers Authorization and X-API-Key belong to different callers');
    return byToken;
  }

  #principalOf(credential: string, address: AddressOf, connection?: object): Principal | Promise<Principal> {
    const digest = connection === undefined ? digestOf(credential) : this.#digests.of(connection, credential);
    const cached = this.#cache.entries.get(digest);
    const { wall, now } = this.#options.clock;
    if (cached === undefined) {
      const refused = this.#refused.get(digest);
      const isRefused = refused?.epoch === this.#epoch && now() - refused.atMs < MAX_UNCHECKED_MS;
      if (isRefused) throw new GatewayError('INVALID_CREDENTIALS', refused.message);
      return this.#verifyOnce(digest, () => this.#verify(digest, credential, undefined, address()));
    }
    if (wall() >= cached.expiresAtMs) throw isKey(credential) ? keyExpired() : tokenExpired();
    const freshness = this.#cache.freshnessOf(cached, now());
    if (freshness === 'stale')
      return this.#verifyOnce(digest, () => this.#verifyAgain(digest, credential, cached, address()));
    if (freshness === 'expired') throw databaseUnavailable(undefined);
    return this.#use(cached);
  }

  #verifyOnce(digest: string, verify: () => Promise<Principal>): Promise<Principal> {
    const pending = this.#pending.get(digest);
    if (pending !== undefined) return pending;
    const verifying = verify().finally(() => {
      if (this.#pending.get(digest) === verifying) this.#pending.delete(digest);
    });
    this.#pending.set(digest, verifying);
    return verifying;
  }

  /** The answer of a store that was silent before may come too late for this request. It counts for the next ones. */
  async #verifyAgain(
    digest: string,
    credential: string,
    before: CachedIdentity,
    address: string,
  ): Promise<Principal> {
    const { clock, issuers } = this.#options;
    // A foreign token needs only the keys of its issuer: their delay says nothing about the store.
    const mayGoWithout = this.#cache.isSilent(clock.now()) && issuers?.has(credential) !== true;
    const verifying = this.#verify(digest, credential, before, address);
    if (!mayGoWithout || (await settlesWithin(verifying, SILENT_MS, clock))) return verifying;
    return this.#withoutStore(digest, before) ?? verifying;
  }

  async #verify(
    digest: string,
    credential: string,
    before: CachedIdentity | undefined,
    address: string,
  ): Promise<Principal> {
    const epoch = this.#epoch;
    const ownEpoch = this.#ownEpoch;
    const verifiedAtMs = this.#options.clock.now();
    try {
      const identity = this.#rights.shared(await this.#identify(credential, before, address));
      // The accounts changed meanwhile: the next request verifies again. It uses this answer if it gets none,
      // unless the change was here.
      const isLate = epoch !== this.#epoch;
      const staleSinceMs = isLate ? verifiedAtMs : undefined;
      const cached: CachedIdentity = { ...identity, verifiedAtMs, staleSinceMs };
      if (ownEpoch === this.#ownEpoch) this.#cache.entries.set(digest, cached);
      this.#options.revalidator.track(identity, isLate);
      const { userId } = identity.principal;
      if (userId !== undefined) this.#options.used?.(userId);
      return this.#use(cached);
    } catch (error) {
      if (!hasCode(error, 'DATABASE_UNAVAILABLE')) {
        this.#cache.entries.delete(digest);
        // An answer to a query that began before a change says nothing about the time after it.
        const { code, message } = asGatewayError(error);
        if (code === 'INVALID_CREDENTIALS' && epoch === this.#epoch)
          this.#refused.set(digest, { epoch, atMs: verifiedAtMs, message });
        throw error;
      }
      const principal = this.#withoutStore(digest, before);
      if (principal === undefined) throw error;
      return principal;
    }
  }

  /** The store is away. The caller that was known before; undefined for one that was not, or too long ago. */
  #withoutStore(digest: string, before: CachedIdentity | undefined): Principal | undefined {
    const nowMs = this.#options.clock.now();
    this.#cache.onStoreChange('away', nowMs);
    // A revocation on this node removes the entry from the cache.
    const isStillKnown = before !== undefined && this.#cache.entries.peek(digest) === before;
    if (!isStillKnown || this.#cache.freshnessOf(before, nowMs) === 'expired') return undefined;
    return this.#use(before);
  }

  #identify(credential: string, before: CachedIdentity | undefined, address: string): Promise<Identity> {
    const { issuers } = this.#options;
    if (isKey(credential)) return this.#verifyKey(credential, before, address);
    if (issuers?.has(credential) === true) return issuers.verify(credential, before !== undefined);
    return isAccessToken(credential) ? this.#verifyAccessToken(credential) : this.#verifyToken(credential);
  }

  async #verifyToken(token: string): Promise<Identity> {
    const { tokens, accounts, limits, hasPasswordLogins = true } = this.#options;
    const { userId, id, credentialsAtMs, expiresAtMs, signedInBy } = await tokens.read(token);
    const [user] = await accounts.findUsers([userId]);
    const isCurrent = isActive(user) && Date.parse(user.credentialsChangedAt) === credentialsAtMs;
    if (!isCurrent || (await accounts.isTokenEnded(userId, id)))
      throw invalidCredentials('The token is no longer valid; log in again');
    if (!hasPasswordLogins && signedInBy === 'password' && !isFirstAdmin(user))
      throw invalidCredentials(
        'The token is of a login with a password, which this gateway no longer accepts',
      );
    const principal = userPrincipal(user, limits);
    return { principal, expiresAtMs, status: statusOf(user) };
  }

  async #verifyAccessToken(token: string): Promise<Identity> {
    const { oauth, accounts, limits, issuers } = this.#options;
    if (oauth === undefined) throw invalidCredentials();
    const claims = await oauth.tokens.read(token);
    const [[grant], [user]] = await Promise.all([
      oauth.grants.find([claims.grantId]),
      isOfIssuer(claims.userId) ? [] : accounts.findUsers([claims.userId]),
    ]);
    const isTheirs = grant?.userId === claims.userId && grant.clientId === claims.clientId;
    if (grant === undefined || !isTheirs) throw invalidCredentials(GRANT_OVER);
    const principal = isActive(user)
      ? accessPrincipal(claims, grant, user, limits)
      : issuers?.granted(claims, grant);
    if (principal === undefined) throw invalidCredentials(GRANT_OVER);
    const status = statusOf(user, undefined, grant);
    return { principal, expiresAtMs: claims.expiresAtMs, grantId: grant.id, status };
  }

  /** A key that was verified before does not wait behind unknown ones. */
  async #verifyKey(text: string, before: CachedIdentity | undefined, address: string): Promise<Identity> {
    const parts = parseKey(text);
    if (parts === undefined) throw invalidCredentials(WRONG_KEY);
    const verification = () => this.#identityOf(parts);
    return before === undefined ? this.#lookups.verify(parts.id, address, verification) : verification();
  }

  async #identityOf({ id, secret }: ParsedKey): Promise<Identity> {
    const { accounts } = this.#options;
    const [key] = await accounts.findApiKeys([id]);
    if (key === undefined || !isSecretOf(secret, key.secretHash)) throw invalidCredentials(WRONG_KEY);
    const [owner] = key.ownerId === undefined ? [] : await accounts.findUsers([key.ownerId]);
    const status = statusOf(owner, key);
    if (status.endsAtMs <= this.#options.clock.wall()) throw keyExpired();
    if (key.ownerId !== undefined && !isActive(owner)) throw invalidCredentials(WRONG_KEY);
    const principal = keyPrincipal(key, owner, this.#options.limits);
    return { principal, expiresAtMs: status.endsAtMs, keyId: key.id, status };
  }

  /** Later requests do not use pending answers, which may be older than the change. */
  #discardQueries(): void {
    this.#epoch += 1;
    this.#pending.clear();
  }

  #bearerOf(authorization: string): string {
    return bearerOf(
      authorization,
      this.#options.issuers === undefined ? MAX_CREDENTIAL_LENGTH : MAX_FOREIGN_LENGTH,
    );
  }

  #use({ principal, keyId, grantId }: CachedIdentity): Principal {
    if (keyId !== undefined) this.#options.keyUse.used(keyId, this.#options.clock.wall());
    else if (grantId !== undefined) this.#options.oauth?.grants.use.used(grantId, this.#options.clock.wall());
    return principal;
  }
}

function digestOf(credential: string): string {
  return hash('sha256', credential, 'base64');
}

const GRANT_OVER = 'The token is no longer valid; sign in again';

function bearerOf(authorization: string, longest: number): string {
  if (authorization.length > longest) throw invalidCredentials();
  // RFC 7235: the scheme is case-insensitive. No regular expression: it would cost as much as the rest of this path.
  const isBearer = authorization.slice(0, SCHEME.length).toLowerCase() === SCHEME;
  const credential = isBearer ? authorization.slice(SCHEME.length).trim() : '';
  if (credential === '')
    throw invalidCredentials('The Authorization header must be "Bearer <token>" or "Bearer <key>"');
  return credential;
}

function apiKeyIn(apiKey: string): string {
  const key = apiKey.length > MAX_CREDENTIAL_LENGTH ? '' : apiKey.trim();
  if (!isKey(key)) throw invalidCredentials(WRONG_KEY);
  return key;
}

/** True for an API key; tokens contain dots and never start like this. */
function isKey(credential: string): boolean {
  return credential.startsWith('sd_');
}

function keyExpired(): Error {
  return invalidCredentials('The API key has expired');
}
