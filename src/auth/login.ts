// Exchanges a user name and a password for a token, and limits failed attempts. An unknown user costs the
// same work as a wrong password.

import { hash } from 'node:crypto';
import { isIPv6 } from 'node:net';
import { Check } from 'typebox/schema';
import { type User, Username, usernameKey } from '../domain/account.ts';
import { invalidCredentials, tooManyAttempts } from '../domain/error-catalogue.ts';
import { hasCode } from '../domain/errors.ts';
import type { AccountStore } from '../persistence/store.ts';
import type { Passwords } from './passwords.ts';
import { WindowCounter } from './rate-limiter.ts';
import type { Tokens } from './tokens.ts';

export interface LoginAttempt {
  readonly username: string;
  readonly password: string;
  /** Address of the client, by which failures are counted. */
  readonly address: string;
}

export interface IssuedToken {
  readonly accessToken: string;
  readonly expiresInSeconds: number;
  readonly user: User;
  readonly proof: TokenProof;
}

/** With it a client can check that a gateway knows its token: see gateway-proof.ts. */
interface TokenProof {
  readonly keyId: string;
  readonly secret: string;
}

export interface LoginOptions {
  readonly accounts: Pick<AccountStore, 'findUserByName'>;
  readonly passwords: Passwords;
  readonly tokens: Tokens;
  readonly throttle: LoginThrottle;
  proofSecretOf(tokenId: string): string;
}

/** INVALID_CREDENTIALS with the same message for all reasons, TOO_MANY_ATTEMPTS, DATABASE_UNAVAILABLE. */
export async function login(attempt: LoginAttempt, options: LoginOptions): Promise<IssuedToken> {
  const uncount = options.throttle.countAttempt(attempt);
  let user: User;
  try {
    user = await userOf(attempt, options);
  } catch (error) {
    // Only wrong credentials are a failure of the caller; an unavailable database or a full queue of hashes is not.
    if (!hasCode(error, 'INVALID_CREDENTIALS')) uncount();
    throw error;
  }
  uncount();
  const { id, ...issued } = await options.tokens.issue(user);
  return { ...issued, user, proof: { keyId: id, secret: options.proofSecretOf(id) } };
}

async function userOf(
  { username, password }: LoginAttempt,
  { accounts, passwords }: LoginOptions,
): Promise<User> {
  // An invalid name is not looked up: it may have any length.
  const user = Check(Username, username) ? await accounts.findUserByName(username) : undefined;
  const isRight = await passwords.matches(password, user?.passwordHash);
  if (user === undefined || !isRight || !user.isActive)
    throw invalidCredentials('The user name or the password is wrong');
  return user;
}

// Limits password guessing: counts failures per user and address, and per address. An attempt is counted
// before it is checked, so that concurrent attempts cannot exceed the limit; a success is subtracted again.

/** Source: ADR 17. */
const WINDOW_SECONDS = 60;
const PER_USER_AND_ADDRESS = 10;
const PER_ADDRESS = 60;
/** Most counted pairs, and most counted addresses. */
const COUNTED_KEYS = 20_000;

export class LoginThrottle {
  readonly #now: () => number;
  readonly #pairs = new WindowCounter({ windowSeconds: WINDOW_SECONDS, keys: COUNTED_KEYS });
  readonly #addresses = new WindowCounter({ windowSeconds: WINDOW_SECONDS, keys: COUNTED_KEYS });

  /** `now`: ms of a monotonic clock. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /**
   * Counts the attempt. TOO_MANY_ATTEMPTS; a refused attempt is not counted. The returned function subtracts
   * an attempt that succeeded, or whose password was never checked.
   */
  countAttempt({ username, address }: Omit<LoginAttempt, 'password'>): () => void {
    // Whole numbers: the end of a window is computed from its rest, and has to be the same number.
    const nowMs = Math.floor(this.#now());
    const network = networkOf(address);
    // A hash, because the name may have any length, or be a password in the wrong field.
    const key = hash('sha256', `${network} ${usernameKey(username)}`);
    const ofPair = counted(this.#pairs, key, nowMs, PER_USER_AND_ADDRESS);
    const ofNetwork = counted(this.#addresses, network, nowMs, PER_ADDRESS);
    const uncount = () => {
      ofPair.giveBack();
      ofNetwork.giveBack();
    };
    const waitMs = Math.max(ofPair.waitMs, ofNetwork.waitMs);
    if (waitMs === 0) return uncount;
    uncount();
    throw tooManyAttempts(Math.max(1, Math.ceil(waitMs / 1000)));
  }
}

/** Counts one attempt, unless it exceeds the limit; then `waitMs` is the time until the window ends. */
function counted(counter: WindowCounter, key: string, nowMs: number, limit: number) {
  const { count, endsInMs } = counter.add(key, nowMs, 1, limit);
  return count > limit
    ? { waitMs: endsInMs, giveBack: () => {} }
    : { waitMs: 0, giveBack: () => counter.giveBack(key, nowMs + endsInMs) };
}

/** The /64 network of an IPv6 address: an owner of one address has the whole network. */
export function networkOf(address: string): string {
  const [plain = ''] = address.split('%');
  if (!isIPv6(plain)) return plain;
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(plain)?.[1];
  if (mapped !== undefined) return mapped;
  const [head = '', rest] = plain.toLowerCase().split('::');
  const first = head === '' ? [] : head.split(':');
  const last = rest?.split(':') ?? [];
  const gap = rest === undefined ? 0 : 8 - first.length - last.length;
  return [...first, ...Array<string>(Math.max(0, gap)).fill('0'), ...last]
    .slice(0, 4)
    .map((group) => group.replace(/^0+(?=.)/, ''))
    .join(':');
}
