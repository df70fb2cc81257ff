// Finds the principal of a request, and keeps verified credentials.

import { hash } from 'node:crypto';
import { type Principal, userIdsOf } from '../domain/accounts/principal.ts';
import { isRestricted, type Rights, rightsKey } from '../domain/accounts/rights.ts';
import { authenticationRequired, invalidCredentials, tokenExpired } from '../domain/errors/account-errors.ts';
import { asGatewayError, GatewayError, hasCode } from '../domain/errors/errors.ts';
import { databaseUnavailable } from '../domain/errors/gateway-errors.ts';
import { definedFields } from '../domain/json/json.ts';
import { LruMap } from '../domain/memory/lru-map.ts';
import { Repeated } from '../domain/memory/repeated.ts';
import { settlesWithin } from '../domain/time/clock.ts';
import type { RevisionChange } from '../persistence/revision-watch.ts';
import { isKey, type KeyUse } from './accounts/api-keys.ts';
import {
  CredentialCache,
  entryCountOf,
  MAX_ENTRIES,
  MAX_UNCHECKED_MS,
  type Verified,
} from './credential-cache.ts';
import {
  CredentialVerifier,
  type CredentialVerifierOptions,
  type Identity,
  keyExpired,
} from './credential-verifier.ts';
import { apiKeyIn, bearerOf, type Credentials } from './credentials.ts';

/** The longest wait of a known caller for a store that was silent before, in ms. */
const SILENT_MS = 1_500;

/** Gives the address of the client; called only for credentials that are not cached. */
export type AddressOf = () => string;

interface Refused {
  readonly epoch: number;
  readonly atMs: number;
  readonly message: string;
}

type CachedIdentity = Verified & Identity;

interface AuthenticatorOptions extends CredentialVerifierOptions {
  readonly keyUse: KeyUse;
  /** Called with the user of each verification. Must not throw. */
  readonly used?: ((userId: string) => void) | undefined;
  /** Called with each answer of the store; `isLate` when the accounts changed during the query. */
  readonly revalidator: { track(identity: Identity, isLate: boolean): void };
}

/**
 * Finds principals by their credentials. Verified credentials are cached by their SHA-256, which is made once for each
 * connection that repeats them, so that the hot path is a look-up. The cache decides how long an entry is fresh. Source:
 * ADR 16, 285.
 */
export class Authenticator {
  readonly #options: AuthenticatorOptions;
  readonly #cache = new CredentialCache<CachedIdentity>(entryCountOf);
  readonly #rights = new SharedRights();
  readonly #digests = new Repeated(digestOf);
  /** Credentials that were refused, until an account changes. */
  readonly #refused = new LruMap<Refused>(MAX_ENTRIES);
  readonly #verifier: CredentialVerifier;
  /** The queries under way, one per credential: all requests with it wait for the same query. */
  readonly #pending = new Map<string, Promise<Principal>>();
  /** Number of changes: an answer to a query that began before a change may be older than the change. */
  #epoch = 0;
  /** Number of those on this node that may have ended credentials. */
  #ownEpoch = 0;

  constructor(options: AuthenticatorOptions) {
    this.#options = options;
    this.#verifier = new CredentialVerifier(options);
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
    this.#verifier.keyCreated(id);
  }

  /**
   * An account changed on this node: all of its credentials, and those of a user's keys, are verified again at their next use.
   * All, because different texts of a token decode to the same bytes in base64url.
   */
  invalidate(principalId: string): void {
    this.#discardQueries();
    this.#ownEpoch += 1;
    const [userId] = userIdsOf([principalId]);
    for (const [digest, { principal }] of this.#cache.entries.entries())
      if (principal.id === principalId || (userId !== undefined && principal.userId === userId))
        this.#cache.entries.delete(digest);
  }

  /** True when earlier verifications became stale. */
  onStoreChange(change: RevisionChange['kind']): boolean {
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
      const identity = this.#rights.shared(
        await this.#verifier.verify(credential, before !== undefined, address),
      );
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
        // A foreign token costs no query, and the key that it names may be published the next moment.
        const isForeign = this.#options.issuers?.has(credential) === true;
        if (code === 'INVALID_CREDENTIALS' && epoch === this.#epoch && !isForeign)
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

  /** Later requests do not use pending answers, which may be older than the change. */
  #discardQueries(): void {
    this.#epoch += 1;
    this.#pending.clear();
  }

  #bearerOf(authorization: string): string {
    return bearerOf(authorization, this.#options.issuers);
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

/**
 * Equal lists of rights as one, as long as a caller or a session has them: a caller may have thousands of tokens
 * and sessions. Source: ADR 299.
 */
class SharedRights {
  readonly #known = new LruMap<WeakRef<Rights>>(MAX_ENTRIES);

  shared<I extends { readonly principal: Rights }>(identity: I): I {
    const { principal } = identity;
    if (!isRestricted(principal)) return identity;
    const key = hash('sha256', rightsKey(principal), 'base64url');
    const known = this.#known.get(key)?.deref();
    if (known === undefined) {
      this.#known.set(key, new WeakRef(principal));
      return identity;
    }
    const { templates, views, tools } = known;
    return { ...identity, principal: { ...principal, ...definedFields({ templates, views, tools }) } };
  }
}
