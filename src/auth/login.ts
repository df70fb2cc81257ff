// Exchanges a user name and a password for a token, and limits failed attempts. An unknown user costs the
// same work as a wrong password.

import { hash } from 'node:crypto';
import { Check } from 'typebox/schema';
import { type User, Username, usernameKey } from '../domain/account.ts';
import { invalidCredentials, tooManyAttempts } from '../domain/error-catalogue.ts';
import { type GatewayError, hasCode } from '../domain/errors.ts';
import { LruMap } from '../domain/lru-map.ts';
import type { AccountStore } from '../persistence/store.ts';
import { networkOf } from './network-of.ts';
import type { Passwords } from './passwords.ts';
import { WindowCounter } from './rate-limiter.ts';
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

/**
 * Checks a name and its password. Rejects with INVALID_CREDENTIALS, with the same message for all reasons, TOO_MANY_ATTEMPTS or
 * DATABASE_UNAVAILABLE.
 */
export async function login(attempt: LoginAttempt, options: LoginOptions): Promise<IssuedToken> {
  const counted = options.throttle.countAttempt(attempt);
  let user: User;
  try {
    user = await userOf(attempt, counted, options);
  } catch (error) {
    // Only wrong credentials are a failure of the caller; an unavailable database or a full queue of hashes is not.
    const isWrong = hasCode(error, 'INVALID_CREDENTIALS');
    counted.settle(isWrong ? 'wrong' : 'unchecked');
    throw isWrong ? (counted.refusal ?? error) : error;
  }
  counted.settle('right');
  const { id, ...issued } = await options.tokens.issue(user);
  return { ...issued, user, proof: { keyId: id, secret: options.proofSecretOf(id) } };
}

async function userOf(
  { username, password, isLocal = false }: LoginAttempt,
  { network, isKnown }: CountedAttempt,
  { accounts, passwords }: LoginOptions,
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
    return user?.passwordHash;
  };
  const isRight = await passwords.matches(password, findHash, caller);
  if (user === undefined || !isRight || !user.isActive)
    throw invalidCredentials('The user name or the password is wrong');
  return user;
}

// Limits password guessing: counts failures per user and address, and per address. An attempt is counted
// before it is checked, so that concurrent attempts cannot exceed the limit; a success is subtracted again.

/** Source: ADR 17, 92. */
const WINDOW_SECONDS = 60;
const PER_USER_AND_ADDRESS = 10;
const PER_ADDRESS = 60;
/** Most counted pairs, and most counted addresses. */
const COUNTED_KEYS = 20_000;
const windows = () => new WindowCounter({ windowSeconds: WINDOW_SECONDS, keys: COUNTED_KEYS });

export interface CountedAttempt {
  readonly network: string;
  /** Whether the user has logged in from this address before. */
  readonly isKnown: boolean;
  /**
   * Set when the address is over its limit: the answer to wrong credentials. An unknown user and a wrong password then get the same
   * answer as a refused attempt.
   */
  readonly refusal: GatewayError | undefined;
  /** `wrong` stays counted; `unchecked`: the password was not compared. */
  settle(result: 'right' | 'wrong' | 'unchecked'): void;
}

export class LoginThrottle {
  readonly #now: () => number;
  /** Attempts of a user from an address that failed or are being checked. */
  readonly #pairs = windows();
  /** Only those that failed. */
  readonly #failedPairs = windows();
  readonly #addresses = windows();
  /** Pairs with an earlier success. */
  readonly #known = new LruMap<true>(COUNTED_KEYS);

  /** `now`: ms of a monotonic clock. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /**
   * Counts the attempt. TOO_MANY_ATTEMPTS; a refused attempt is not counted. An address over its limit may still try users that did
   * not fail from there.
   */
  countAttempt({ username, address }: Pick<LoginAttempt, 'username' | 'address'>): CountedAttempt {
    // Whole numbers: the end of a window is computed from its rest, and has to be the same number.
    const nowMs = Math.floor(this.#now());
    const network = networkOf(address);
    // A hash, because the name may have any length, or be a password in the wrong field.
    const key = hash('sha256', `${network} ${usernameKey(username)}`);
    const ofPair = counted(this.#pairs, key, nowMs, PER_USER_AND_ADDRESS);
    const ofNetwork = counted(this.#addresses, network, nowMs, PER_ADDRESS);
    const refusal = refusalAfter(Math.max(ofPair.waitMs, ofNetwork.waitMs));
    const hasFailed = this.#failedPairs.add(key, nowMs, 0).count > 0;
    const giveBack = () => {
      ofPair.giveBack();
      ofNetwork.giveBack();
    };
    if (refusal !== undefined && (ofPair.waitMs > 0 || hasFailed)) {
      giveBack();
      throw refusal;
    }
    const settle: CountedAttempt['settle'] = (result) => {
      if (result === 'wrong') this.#failedPairs.add(key, Math.floor(this.#now()));
      else giveBack();
      if (result === 'right') this.#known.set(key, true);
    };
    return { network, isKnown: this.#known.has(key), refusal, settle };
  }
}

function refusalAfter(waitMs: number): GatewayError | undefined {
  return waitMs === 0 ? undefined : tooManyAttempts(Math.max(1, Math.ceil(waitMs / 1000)));
}

/** Counts one attempt, unless it exceeds the limit; then `waitMs` is the time until the window ends. */
function counted(counter: WindowCounter, key: string, nowMs: number, limit: number) {
  const { count, endsInMs } = counter.add(key, nowMs, 1, limit);
  return count > limit
    ? { waitMs: endsInMs, giveBack: () => {} }
    : { waitMs: 0, giveBack: () => counter.giveBack(key, nowMs + endsInMs) };
}
