// Exchanges a user name and a password for a token; login-throttle.ts limits failed attempts. An unknown user costs the
// same work as a wrong password.

import { Check } from 'typebox/schema';
import { NO_PASSWORD, type User, usernameKey } from '../../domain/accounts/account.ts';
import { Username } from '../../domain/accounts/input-schemas.ts';
import { invalidCredentials, passwordsOff } from '../../domain/errors/account-errors.ts';
import { hasCode } from '../../domain/errors/errors.ts';
import type { AccountStore } from '../../persistence/store.ts';
import type { TokenProof } from '../secrets/gateway-proof.ts';
import { isFirstAdmin } from './accounts.ts';
import type { CountedAttempt, LoginThrottle } from './login-throttle.ts';
import type { Passwords } from './passwords.ts';
import type { Tokens } from './tokens.ts';

export interface LoginAttempt {
  readonly username: string;
  readonly password: string;
  /** Address of the client, by which failures are counted. */
  readonly address: string;
  /** Whether the client runs on this machine. Default false. */
  readonly isLocal?: boolean;
}

export interface IssuedToken {
  readonly accessToken: string;
  readonly expiresInSeconds: number;
  readonly expiresAtMs: number;
  readonly user: User;
  readonly proof: TokenProof;
}

interface PasswordOptions {
  readonly accounts: Pick<AccountStore, 'findUserByName'>;
  readonly passwords: Passwords;
  readonly throttle: LoginThrottle;
  /** False: only the first admin may. Default true. */
  readonly hasPasswordLogins?: boolean | undefined;
}

interface TokenOptions {
  readonly tokens: Tokens;
  readonly isOfProvider: boolean;
  proofSecretOf(tokenId: string): string;
}

/** A token for a user whose password, or whose identity provider, was checked. */
export async function tokenFor(
  user: User,
  { tokens, isOfProvider, proofSecretOf }: TokenOptions,
): Promise<IssuedToken> {
  const { id, ...issued } = await tokens.issue(user, isOfProvider);
  return { ...issued, user, proof: { keyId: id, secret: proofSecretOf(id) } };
}

/**
 * Checks a name and its password. Rejects with INVALID_CREDENTIALS, with the same message for all reasons, TOO_MANY_ATTEMPTS,
 * DATABASE_UNAVAILABLE, or PASSWORDS_OFF, before anything is looked at.
 */
export async function checkPassword(attempt: LoginAttempt, options: PasswordOptions): Promise<User> {
  if (options.hasPasswordLogins === false && !isFirstAdmin(attempt)) throw passwordsOff();
  const counted = await options.throttle.admit(attempt);
  try {
    const user = await userOf(attempt, counted, options);
    counted.settle('right');
    return user;
  } catch (error) {
    // Only wrong credentials are a failure of the caller; an unavailable database or a full queue of hashes is not.
    const isWrong = hasCode(error, 'INVALID_CREDENTIALS');
    counted.settle(isWrong ? 'wrong' : 'unchecked');
    throw isWrong ? (counted.refusal ?? error) : error;
  }
}

async function userOf(
  { username, password, isLocal = false }: LoginAttempt,
  { network, isKnown }: CountedAttempt,
  { accounts, passwords }: PasswordOptions,
): Promise<User> {
  // An invalid name is not looked up: it may have any length.
  const find = async () => (Check(Username, username) ? accounts.findUserByName(username) : undefined);
  let user = isLocal ? await find() : undefined;
  const caller = {
    user: usernameKey(username),
    address: network,
    isKnown: isKnown || (user?.role === 'admin' && user.isActive),
  };
  const findHash = async () => {
    user ??= await find();
    return user?.passwordHash === NO_PASSWORD ? undefined : user?.passwordHash;
  };
  const isRight = await passwords.matches(password, findHash, caller);
  if (user === undefined || !isRight || !user.isActive)
    throw invalidCredentials('The user name or the password is wrong');
  return user;
}
