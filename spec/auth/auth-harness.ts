// A harness for specs of this folder: authentication on a memory store that can become unavailable, with a simulated clock and
// simulated reports of the store.

import { Subject } from 'rxjs';
import * as assert from 'uvu/assert';
import type { NewApiKey } from '../../src/auth/accounts/accounts.ts';
import { Passwords } from '../../src/auth/accounts/passwords.ts';
import { Tokens } from '../../src/auth/accounts/tokens.ts';
import { type AuthOptions, composeAuth } from '../../src/auth/auth.ts';
import { CredentialCache, type Verified } from '../../src/auth/credential-cache.ts';
import type { Credentials } from '../../src/auth/credentials.ts';
import type { Role, User } from '../../src/domain/accounts/account.ts';
import type { Principal } from '../../src/domain/accounts/principal.ts';
import { databaseUnavailable } from '../../src/domain/errors/gateway-errors.ts';
import { systemClock } from '../../src/domain/time/clock.ts';
import { MemoryStore } from '../../src/persistence/memory/memory-store.ts';
import type { RevisionChange } from '../../src/persistence/revision-watch.ts';
import type { AccountStore } from '../../src/persistence/store.ts';
import { CHANGES_ONLY } from '../helpers/http/anonymous-auth.ts';

export const SECRET = new TextEncoder().encode('the secret of the specs, long enough');
export const START_MS = Date.parse('2030-05-06T07:08:09.250Z');
export const LIFETIME_MS = 3_600_000;

/** bcrypt at its lowest cost, which records its comparisons. */
export class CountedPasswords extends Passwords {
  readonly compared: { readonly password: string; readonly hash: string }[] = [];

  constructor() {
    super(systemClock, 4);
  }

  protected override compare(password: string, hash: string): Promise<boolean> {
    this.compared.push({ password, hash });
    return super.compare(password, hash);
  }
}

/** A wall clock and a monotonic clock that stand still until `pass`. */
export function stoppedClock(nowMs = START_MS) {
  const clock = {
    nowMs,
    monotonicMs: 1_000,
    ...systemClock,
    wall: () => clock.nowMs,
    now: () => clock.monotonicMs,
    pass: (ms: number) => {
      clock.nowMs += ms;
      clock.monotonicMs += ms;
    },
    /** Somebody sets the wall clock. */
    step: (ms: number) => {
      clock.nowMs += ms;
    },
  };
  return clock;
}

/** The accounts of a store, with a record of the calls; `isAway` makes them reject, `gate` makes them wait. */
export function watchedAccounts(accounts: AccountStore) {
  const watch = {
    isAway: false,
    gate: undefined as Promise<void> | undefined,
    asked: [] as string[],
    accounts: new Proxy(accounts, {
      get: (target, name) => {
        const method: unknown = Reflect.get(target, name);
        if (typeof method !== 'function') return method;
        return async (...args: unknown[]) => {
          watch.asked.push(String(name));
          const answer: unknown = watch.isAway ? undefined : await method.apply(target, args);
          await watch.gate;
          if (watch.isAway) throw databaseUnavailable(new Error('connection refused'));
          return answer;
        };
      },
    }),
  };
  return watch;
}

interface HarnessOptions {
  readonly enabled?: boolean;
  /** Whether the store has answered once, as after every start. Default true. */
  readonly hasAnswered?: boolean;
  /** The reports of the store. Default: those of the spec, by `hear`. */
  readonly reports$?: AuthOptions['storeChanges$'];
  /** Tokens of other issuers. Default: none. */
  readonly issuers?: AuthOptions['issuers'];
}

export function authHarness({ enabled = true, hasAnswered = true, reports$, issuers }: HarnessOptions = {}) {
  const clock = stoppedClock();
  const store = new MemoryStore();
  const watch = watchedAccounts(store.accounts);
  const passwords = new CountedPasswords();
  const storeChanges$ = new Subject<{ readonly kind: RevisionChange['kind'] }>();
  const warnings: unknown[] = [];
  const adminChanges: number[] = [];
  const tokens = new Tokens({ secrets: [SECRET], lifetimeMs: LIFETIME_MS, wall: clock.wall });
  const options: AuthOptions = {
    authEnabled: enabled,
    store: { accounts: watch.accounts, audit: store.audit, serverTimeMs: () => harness.serverTimeMs() },
    secrets: [SECRET],
    tokenLifetimeMs: LIFETIME_MS,
    ...{ userHourlyLimit: 1_000, apiKeyHourlyLimit: 5_000, audit: CHANGES_ONLY },
    storeChanges$: reports$ ?? storeChanges$,
    log: { info: () => {}, warn: (...args: unknown[]) => void warnings.push(args) },
    clock,
    passwords,
    issuers,
    onAdminPasswordChanged: () => void adminChanges.push(clock.nowMs),
  };
  const auth = composeAuth(options);
  if (hasAnswered) storeChanges$.next({ kind: 'answered' });
  const createUser = (username: string, role: Role = 'user'): Promise<User> =>
    auth.accounts.createUser({
      username,
      email: `${username}@example.org`,
      password: passwordOf(username),
      role,
    });
  /** A key that may call tools, unless the change says otherwise. */
  const createKey = (change: Partial<NewApiKey> = {}) =>
    auth.accounts.createApiKey({ name: 'robot', permissions: ['tools:call'], ...change });
  const harness = {
    auth,
    options,
    /** The clock of the database. */
    serverTimeMs: async (): Promise<number | undefined> => undefined,
    clock,
    store,
    watch,
    passwords,
    storeChanges$,
    warnings,
    adminChanges,
    tokens,
    createUser,
    createKey,
    /** The code of the refusal of credentials; `none` when they are accepted. */
    codeFor: (credentials: Credentials) => codeOf(() => auth.authenticate(credentials)),
    /** The header of a fresh token. */
    bearer: async (user: User) => ({
      authorization: `Bearer ${(await tokens.issue(user, 'password')).accessToken}`,
    }),
    emitChange: (kind: RevisionChange['kind']) => storeChanges$.next({ kind }),
  };
  return harness;
}

/** The same with a user whose token was verified. */
export async function verifiedUser(options?: Parameters<typeof authHarness>[0]) {
  const harness = authHarness(options);
  const user = await harness.createUser('ada');
  const token = await harness.bearer(user);
  await harness.auth.authenticate(token);
  return { ...harness, user, token };
}

export function passwordOf(username: string): string {
  return `password of ${username}`;
}

/** The code of what the work throws or rejects with; `none` when it does not. */
export async function codeOf(work: () => unknown): Promise<string> {
  try {
    await work();
    return 'none';
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : `no code: ${String(error)}`;
  }
}

/** The items of the VALIDATION_ERROR that the work raises, as `loc type`. */
export async function findingsOf(work: () => unknown): Promise<string[]> {
  try {
    await work();
    return [];
  } catch (error) {
    const { facts } = error as { facts?: { items?: { loc: unknown[]; type: string }[] } };
    if (facts?.items === undefined) throw error;
    return facts.items.map(({ loc, type }) => `${loc.join('.')} ${type}`);
  }
}

export const minuteMs = 60_000;

export function idOf(principal: Principal | Promise<Principal>): string {
  assert.ok(!(principal instanceof Promise));
  return principal.id;
}

/** A cache whose store has answered, with one entry. */
export function cached(startMs = 0, verifiedAtMs = startMs) {
  const cache = new CredentialCache<Verified>();
  cache.onStoreChange('answered', startMs);
  const entry: Verified = { verifiedAtMs, staleSinceMs: undefined };
  cache.entries.set('entry', entry);
  return { cache, entry };
}
