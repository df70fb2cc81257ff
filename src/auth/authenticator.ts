// Says who makes a request. What was verified is remembered by the SHA-256 of its credentials, so that the hot path is a
// hash and a look-up; credential-cache.ts decides how long that is believed, verifier.ts asks the store.

import { hash } from 'node:crypto';
import type { Principal } from '../domain/account.ts';
import { authenticationRequired, invalidCredentials, tokenExpired } from '../domain/account-errors.ts';
import { databaseUnavailable, hasCode } from '../domain/errors.ts';
import type { AccountChange } from './accounts.ts';
import type { Credentials } from './auth.ts';
import { CredentialCache, type StoreChange, type Verified } from './credential-cache.ts';
import { recentlyUsed } from './recently-used.ts';
import { type Identity, isKey, keyExpired, type Verifier } from './verifier.ts';

/** Credentials remembered at a time. */
const REMEMBERED_PRINCIPALS = 10_000;
/** Longest credential that is looked at: our tokens have about 400 characters, our keys 63. */
const LONGEST_CREDENTIAL = 4_096;
const SCHEME = 'bearer ';

type Remembered = Verified & Identity;

export interface AuthenticatorOptions {
  readonly verifier: Verifier;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Called with every successful use of an API key. */
  readonly keyUsed: (keyId: string, atMs: number) => void;
  /** Called with what the store said of somebody; `isLate` when the accounts changed while it was asked. */
  readonly verified: (identity: Identity, askedAtMs: number, isLate: boolean) => void;
}

export class Authenticator {
  readonly #options: AuthenticatorOptions;
  readonly #freshness: CredentialCache;
  readonly #remembered = recentlyUsed<Remembered>(REMEMBERED_PRINCIPALS);
  /** One question to the store per credential, however many requests wait for it. */
  readonly #underWay = new Map<string, Promise<Principal>>();
  /** Moves with every change, so that an answer which was under way at that moment is not taken for news. */
  #epoch = 0;

  constructor(options: AuthenticatorOptions) {
    this.#options = options;
    this.#freshness = new CredentialCache(options.now());
  }

  /** Throws or rejects as Auth.authenticate says. */
  authenticate({ authorization, apiKey }: Credentials): Principal | Promise<Principal> {
    if (apiKey === undefined) {
      if (authorization === undefined) throw authenticationRequired();
      return this.#principalOf(bearerOf(authorization));
    }
    const key = keyOf(apiKey);
    if (authorization === undefined) return this.#principalOf(key);
    return this.#samePrincipal(bearerOf(authorization), key);
  }

  /** Something about accounts changed on this node: at once, what depends on it is asked anew. */
  forget(change: AccountChange): void {
    this.#moveOn();
    for (const [digest, { principal, keyId }] of this.#remembered.entries()) {
      const isMeant = 'userId' in change ? principal.userId === change.userId : keyId === change.keyId;
      if (isMeant) this.#remembered.delete(digest);
    }
  }

  /** What is heard of the store. */
  hear(news: StoreChange): void {
    if (this.#freshness.isChange(news)) {
      this.#moveOn();
      for (const remembered of this.#remembered.values()) this.#freshness.markStale(remembered);
    }
    this.#freshness.hear(news, this.#options.now());
  }

  async #samePrincipal(token: string, key: string): Promise<Principal> {
    const [one, other] = await Promise.all([this.#principalOf(token), this.#principalOf(key)]);
    if (one.id !== other.id)
      throw invalidCredentials('The headers Authorization and X-API-Key belong to different callers');
    return one;
  }

  #principalOf(credential: string): Principal | Promise<Principal> {
    const digest = hash('sha256', credential, 'base64');
    const remembered = this.#remembered.get(digest);
    if (remembered === undefined) return this.#once(digest, credential, undefined);
    const nowMs = this.#options.now();
    if (nowMs >= remembered.expiresAtMs) {
      this.#remembered.delete(digest);
      throw isKey(credential) ? keyExpired() : tokenExpired();
    }
    const verdict = this.#freshness.judge(remembered, nowMs);
    if (verdict === 'verify') return this.#once(digest, credential, remembered);
    if (verdict === 'refuse') throw databaseUnavailable(undefined);
    return this.#use(remembered, nowMs);
  }

  #once(digest: string, credential: string, before: Remembered | undefined): Promise<Principal> {
    const underWay = this.#underWay.get(digest);
    if (underWay !== undefined) return underWay;
    const asking = this.#verify(digest, credential, before).finally(() => {
      if (this.#underWay.get(digest) === asking) this.#underWay.delete(digest);
    });
    this.#underWay.set(digest, asking);
    return asking;
  }

  async #verify(digest: string, credential: string, before: Remembered | undefined): Promise<Principal> {
    const epoch = this.#epoch;
    const verifiedAtMs = this.#options.now();
    try {
      const identity = await this.#options.verifier.verify(credential);
      const remembered: Remembered = { ...identity, verifiedAtMs, staleSinceMs: undefined, retryAtMs: 0 };
      // Something changed while the store was asked: good for the requests that wait, asked again by the next.
      const isLate = epoch !== this.#epoch;
      if (!isLate) this.#remembered.set(digest, remembered);
      this.#options.verified(identity, verifiedAtMs, isLate);
      return this.#use(remembered, verifiedAtMs);
    } catch (error) {
      const isAway = hasCode(error, 'DATABASE_UNAVAILABLE');
      const nowMs = this.#options.now();
      // Gone from memory when it was revoked here meanwhile.
      const isStillKnown = before !== undefined && this.#remembered.peek(digest) === before;
      if (isAway && isStillKnown && this.#freshness.mayServe(before, nowMs)) return this.#use(before, nowMs);
      if (!isAway) this.#remembered.delete(digest);
      throw error;
    }
  }

  /** Who asks from now on waits for no answer that may be older than the change. */
  #moveOn(): void {
    this.#epoch += 1;
    this.#underWay.clear();
  }

  #use({ principal, keyId }: Remembered, nowMs: number): Principal {
    if (keyId !== undefined) this.#options.keyUsed(keyId, nowMs);
    return principal;
  }
}

function bearerOf(authorization: string): string {
  if (authorization.length > LONGEST_CREDENTIAL) throw invalidCredentials();
  // RFC 7235: the scheme is read without regard to case. Slices, because a pattern costs as much as all the rest.
  const isBearer = authorization.slice(0, SCHEME.length).toLowerCase() === SCHEME;
  const credential = isBearer ? authorization.slice(SCHEME.length).trim() : '';
  if (credential === '')
    throw invalidCredentials('The Authorization header must be "Bearer <token>" or "Bearer <key>"');
  return credential;
}

function keyOf(apiKey: string): string {
  const key = apiKey.length > LONGEST_CREDENTIAL ? '' : apiKey.trim();
  if (!isKey(key)) throw invalidCredentials('The API key is not valid');
  return key;
}
