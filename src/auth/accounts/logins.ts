// Exchanges a user name and a password for a token; login-throttle.ts limits failed attempts. An unknown user costs the
// same work as a wrong password.

import type { Logger } from 'pino';
import { Check } from 'typebox/schema';
import { NO_PASSWORD, type SignedInBy, type User, usernameKey } from '../../domain/accounts/account.ts';
import { Username } from '../../domain/accounts/input-schemas.ts';
import { userPrincipalId } from '../../domain/accounts/principal.ts';
import { invalidCredentials, passwordsOff } from '../../domain/errors/account-errors.ts';
import { hasCode } from '../../domain/errors/errors.ts';
import type { AccountStore } from '../../persistence/store.ts';
import type { AuditLog } from '../audit/audit-log.ts';
import type { GatewayProofs, TokenProof } from '../secrets/gateway-proofs.ts';
import { isFirstAdmin } from './accounts.ts';
import type { CountedAttempt, LoginThrottle } from './login-throttle.ts';
import type { Passwords } from './passwords.ts';
import type { Tokens } from './tokens.ts';

interface LoginAttempt {
  readonly username: string;
  readonly password: string;
  /** Address of the client, by which failures are counted. */
  readonly address: string;
  /** Whether the client runs on this machine. Default: false. */
  readonly isLocal?: boolean;
}

interface IssuedToken {
  readonly accessToken: string;
  readonly expiresInSeconds: number;
  readonly expiresAtMs: number;
  readonly user: User;
  readonly proof: TokenProof;
}

interface LoginsOptions {
  readonly accounts: Pick<AccountStore, 'findUserByName'>;
  readonly passwords: Passwords;
  readonly throttle: LoginThrottle;
  readonly tokens: Tokens;
  readonly proofs: Pick<GatewayProofs, 'secretOf'>;
  /** False: only the first admin may log in with a password, and the log and the audit log say so. */
  readonly hasPasswordLogins: boolean;
  readonly audit: Pick<AuditLog, 'record'>;
  readonly log: Pick<Logger, 'warn'>;
}

/** Logs users in: by their password, or after an identity provider has signed them in. */
export class Logins {
  readonly #options: LoginsOptions;

  constructor(options: LoginsOptions) {
    this.#options = options;
  }

  /** The token of a user who logs in with a password. Throws as `checkPassword` does. */
  async login(attempt: LoginAttempt): Promise<IssuedToken> {
    return this.issueToken(await this.checkPassword(attempt), 'password');
  }

  /** The token of a user who has signed in already. */
  async issueToken(user: User, signedInBy: SignedInBy): Promise<IssuedToken> {
    const { tokens, proofs } = this.#options;
    const { id, ...issued } = await tokens.issue(user, signedInBy);
    return { ...issued, user, proof: { keyId: id, secret: proofs.secretOf(id) } };
  }

  /**
   * Checks a name and its password. Throws INVALID_CREDENTIALS, with the same message and after the same time for all reasons,
   * TOO_MANY_ATTEMPTS, DATABASE_UNAVAILABLE, or PASSWORDS_OFF, before anything is looked at.
   */
  async checkPassword(attempt: LoginAttempt): Promise<User> {
    const { hasPasswordLogins, throttle } = this.#options;
    if (!hasPasswordLogins && !isFirstAdmin(attempt)) throw passwordsOff();
    const counted = await throttle.admit(attempt);
    try {
      const user = await userOf(attempt, counted, this.#options);
      counted.settle('right');
      if (!hasPasswordLogins) this.#recordExceptional(user, attempt);
      return user;
    } catch (error) {
      // Only wrong credentials are a failure of the caller; an unavailable database or a full queue of hashes is not.
      const isWrong = hasCode(error, 'INVALID_CREDENTIALS');
      counted.settle(isWrong ? 'wrong' : 'unchecked');
      throw isWrong ? (counted.refusal ?? error) : error;
    }
  }

  #recordExceptional(user: User, { address }: LoginAttempt): void {
    const { log, audit } = this.#options;
    log.warn({ address }, 'admin logged in with a password, while auth.passwords is false');
    const subject = `/auth/users/${user.id}: a password, while auth.passwords is false`;
    const actor = { actor: userPrincipalId(user.id), actorName: user.username };
    audit.record({ ...actor, action: 'POST /auth/login', subject, status: 200, address });
  }
}

async function userOf(
  { username, password, isLocal = false }: LoginAttempt,
  { network, isKnown }: CountedAttempt,
  { accounts, passwords }: Pick<LoginsOptions, 'accounts' | 'passwords'>,
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
