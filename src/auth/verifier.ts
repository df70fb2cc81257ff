// Finds out by asking the store who a token or a key belongs to. Nothing is remembered here: authenticator.ts does.

import type { Principal } from '../domain/account.ts';
import { invalidCredentials } from '../domain/account-errors.ts';
import type { AccountStore } from '../persistence/store.ts';
import { type AccountStatus, isActive, keyEndsAtMs, keyStatus, userStatus } from './account-status.ts';
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
