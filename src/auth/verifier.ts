// Verifies a token or an API key against the store. It remembers nothing: the authenticator does.

import type { ApiKey, Principal, User } from '../domain/account.ts';
import { invalidCredentials } from '../domain/account-errors.ts';
import type { AccountStore } from '../persistence/store.ts';
import { isSecretOf, parseKey } from './api-keys.ts';
import { type HourlyLimits, keyPrincipal, userPrincipal } from './permissions.ts';
import type { Tokens } from './tokens.ts';

/** Who it is, and until when these credentials are good for it. */
export interface Identity {
  readonly principal: Principal;
  /** Ms since 1970; infinite for a key without an end. */
  readonly expiresAtMs: number;
  /** Of the key, when it is one. */
  readonly keyId?: string;
  readonly standing: AccountStatus;
}

export interface VerifierOptions {
  readonly accounts: Pick<AccountStore, 'findUser' | 'findApiKey'>;
  readonly tokens: Tokens;
  readonly limits: HourlyLimits;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/** Why an unknown, a revoked and a wrong key get one answer: nobody learns which ids there are. */
const WRONG_KEY = 'The API key is not valid';

export class Verifier {
  readonly #options: VerifierOptions;

  constructor(options: VerifierOptions) {
    this.#options = options;
  }

  /** INVALID_CREDENTIALS, TOKEN_EXPIRED, DATABASE_UNAVAILABLE. */
  verify(credential: string): Promise<Identity> {
    return isKey(credential) ? this.#verifyKey(credential) : this.#verifyToken(credential);
  }

  async #verifyToken(token: string): Promise<Identity> {
    const { userId, credentialsAtMs, expiresAtMs } = await this.#options.tokens.read(token);
    const user = await this.#options.accounts.findUser(userId);
    if (!isActive(user) || Date.parse(user.credentialsChangedAt) !== credentialsAtMs)
      throw invalidCredentials('The token is no longer valid; log in again');
    const standing = userStatus(user);
    return { principal: userPrincipal(user, this.#options.limits), expiresAtMs, standing };
  }

  async #verifyKey(text: string): Promise<Identity> {
    const parts = parseKey(text);
    if (parts === undefined) throw invalidCredentials(WRONG_KEY);
    const key = await this.#options.accounts.findApiKey(parts.id);
    if (key === undefined || !isSecretOf(parts.secret, key.secretHash)) throw invalidCredentials(WRONG_KEY);
    const expiresAtMs = keyEndsAtMs(key);
    if (expiresAtMs <= this.#options.now()) throw keyExpired();
    const owner = key.ownerId === undefined ? undefined : await this.#options.accounts.findUser(key.ownerId);
    if (key.ownerId !== undefined && !isActive(owner)) throw invalidCredentials(WRONG_KEY);
    const standing = keyStatus(key, owner);
    return {
      principal: keyPrincipal(key, owner, this.#options.limits),
      expiresAtMs,
      keyId: key.id,
      standing,
    };
  }
}

/** True for what wants to be an API key; tokens have dots and never start like that. */
export function isKey(credential: string): boolean {
  return credential.startsWith('sd_');
}

export function keyExpired(): Error {
  return invalidCredentials('The API key has expired');
}

// What of an account decides how long those who were let in with it may stay, whatever credentials they came with. Pure.

/** How somebody stands. */
export interface AccountStatus {
  /** The user, or the owner of the key. */
  readonly userId?: string;
  /** Another one when what they may do was changed, or the credentials of the account. */
  readonly stamp: string;
  /** When all credentials for it end, in ms since 1970: those of a key. Infinite for users, who log in again. */
  readonly endsAtMs: number;
}

export function userStatus(user: User): AccountStatus {
  return { userId: user.id, stamp: stampOf(user), endsAtMs: Number.POSITIVE_INFINITY };
}

/** Nothing of a key itself is ever changed, but what its owner may do cuts what it may. */
export function keyStatus(key: ApiKey, owner: User | undefined): AccountStatus {
  const endsAtMs = keyEndsAtMs(key);
  if (owner === undefined) return { stamp: '', endsAtMs };
  return { userId: owner.id, stamp: stampOf(owner), endsAtMs };
}

/** Ms since 1970; infinite for a key without an end. */
export function keyEndsAtMs({ expiresAt }: ApiKey): number {
  return expiresAt === undefined ? Number.POSITIVE_INFINITY : Date.parse(expiresAt);
}

export function isActive(user: User | undefined): user is User {
  return user?.isActive === true;
}

/** A change of password, role or activity moves `credentialsChangedAt`. */
function stampOf({ credentialsChangedAt, templates }: User): string {
  return `${credentialsChangedAt} ${templates?.join() ?? '*'}`;
}
