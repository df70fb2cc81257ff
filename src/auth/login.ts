// Changes a name and a password for a token. An unknown user costs the same work as a wrong password.

import { Check } from 'typebox/schema';
import { type User, Username } from '../domain/account.ts';
import { invalidCredentials } from '../domain/account-errors.ts';
import { hasCode } from '../domain/errors.ts';
import type { AccountStore } from '../persistence/store.ts';
import type { IssuedToken, LoginAttempt } from './auth.ts';
import type { LoginThrottle } from './login-throttle.ts';
import type { Passwords } from './passwords.ts';
import type { Tokens } from './tokens.ts';

export interface LoginOptions {
  readonly accounts: Pick<AccountStore, 'findUserByName'>;
  readonly passwords: Passwords;
  readonly tokens: Tokens;
  readonly throttle: LoginThrottle;
}

/** INVALID_CREDENTIALS in the same words for all reasons, TOO_MANY_ATTEMPTS, DATABASE_UNAVAILABLE. */
export async function login(attempt: LoginAttempt, options: LoginOptions): Promise<IssuedToken> {
  const forgive = options.throttle.admit(attempt);
  let user: User;
  try {
    user = await userOf(attempt, options);
  } catch (error) {
    // Only a wrong answer is a failure of the caller; a database that is away or a full line of hashes is none.
    if (!hasCode(error, 'INVALID_CREDENTIALS')) forgive();
    throw error;
  }
  forgive();
  return { ...(await options.tokens.issue(user)), user };
}

async function userOf(
  { username, password }: LoginAttempt,
  { accounts, passwords }: LoginOptions,
): Promise<User> {
  // A name that nobody can have is not looked for: it may be anything, of any length.
  const user = Check(Username, username) ? await accounts.findUserByName(username) : undefined;
  const isRight = await passwords.matches(password, user?.passwordHash);
  if (user === undefined || !isRight || !user.isActive)
    throw invalidCredentials('The user name or the password is wrong');
  return user;
}
