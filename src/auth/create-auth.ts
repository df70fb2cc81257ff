// Composes the parts of this room into one handle for the rest of the program.

import type { Logger } from 'pino';
import { type Observable, Subject } from 'rxjs';
import { ANONYMOUS } from '../domain/account.ts';
import type { RevisionChange } from '../persistence/revision-watch.ts';
import type { Store } from '../persistence/store.ts';
import { Accounts } from './accounts.ts';
import { KeyUse } from './api-keys.ts';
import { AuditLog, type AuditSettings } from './audit.ts';
import type { Auth } from './auth.ts';
import { Authenticator, Verifier } from './authenticator.ts';
import { LoginThrottle, login } from './login.ts';
import { Passwords } from './passwords.ts';
import type { HourlyLimits } from './permissions.ts';
import { createRateLimiter, type SharedCounter } from './rate-limiter.ts';
import { SessionRevalidator } from './session-revalidator.ts';
import { createTokens } from './tokens.ts';

export interface AuthOptions {
  /** False: every caller is the anonymous admin. */
  readonly enabled: boolean;
  readonly store: Pick<Store, 'accounts' | 'audit'>;
  /** Signs tokens; at least 32 bytes. */
  readonly secret: Uint8Array;
  readonly tokenLifetimeMs: number;
  readonly limits: HourlyLimits;
  /** Redis that counts requests for all gateways; absent: each gateway counts its own. */
  readonly redisUrl?: string | undefined;
  /** Default: no calls are recorded. */
  readonly auditSettings?: AuditSettings | undefined;
  /** Cold or hot; subscribed to once, until close(). Without changes each credential is verified every 10 s. */
  readonly storeChanges$: Observable<RevisionChange>;
  readonly log: Pick<Logger, 'warn'>;
  /** Milliseconds since 1970. Default Date.now. */
  readonly now?: () => number;
  /** The instance that first-admin.ts uses, too. Default: a new one of cost 12. */
  readonly passwords?: Passwords;
  /** Called when the first admin gets a new password or is deleted. Must not throw. */
  readonly onAdminPasswordChanged?: (() => void) | undefined;
}

/** Opens authentication on an open store. Waits for Redis for at most 2 s. ConfigError for an invalid URL of Redis. */
export async function createAuth(options: AuthOptions): Promise<Auth> {
  const { redisUrl, log, now = Date.now } = options;
  if (redisUrl === undefined) return assembleAuth(options);
  const { openRedisCounter } = await import('./redis-counter.ts');
  return assembleAuth(options, await openRedisCounter({ url: redisUrl, log, now }));
}

/** The same without Redis, or with a connection that is open. */
export function assembleAuth(options: Omit<AuthOptions, 'redisUrl'>, shared?: SharedCounter): Auth {
  const { enabled, store, limits, log, now = Date.now, passwords = new Passwords() } = options;
  const tokens = createTokens({ secret: options.secret, lifetimeMs: options.tokenLifetimeMs, now });
  const keyUse = new KeyUse(store.accounts);
  const verifier = new Verifier({ accounts: store.accounts, tokens, limits, now });
  const audit = new AuditLog({ store: store.audit, log, now, settings: options.auditSettings });
  const throttle = new LoginThrottle();
  const changed$ = new Subject<string>();
  const onChange = (principalId: string) => changed$.next(principalId);
  const revalidator = new SessionRevalidator({ accounts: store.accounts, now, onChange, log });
  const authenticator = new Authenticator({
    verifier,
    now,
    keyUsed: (id, atMs) => keyUse.used(id, atMs),
    verified: (...answer) => revalidator.track(...answer),
  });
  const accounts = new Accounts({
    store: store.accounts,
    passwords,
    now,
    onChange: (change) => {
      authenticator.forget(change);
      revalidator.changed(change);
    },
    onAdminPasswordChanged: options.onAdminPasswordChanged,
    flushKeyUse: () => keyUse.flush(),
  });
  const subscription = options.storeChanges$.subscribe({
    next: ({ kind }) => {
      authenticator.onStoreChange(kind);
      revalidator.onStoreChange(kind);
    },
    // Each credential is verified again after 10 s also without changes.
    error: (error: unknown) => log.warn({ err: error }, 'changes of the database are not reported any more'),
  });
  return {
    isEnabled: enabled,
    accounts,
    audit,
    limiter: createRateLimiter({ shared, now }),
    authenticate: enabled ? (credentials) => authenticator.authenticate(credentials) : () => ANONYMOUS,
    changed$,
    watchSessions: enabled ? (open) => revalidator.watch(open) : () => {},
    login: (attempt) => login(attempt, { accounts: store.accounts, passwords, tokens, throttle }),
    logout: (credentials) => authenticator.endToken(credentials),
    close: async () => {
      subscription.unsubscribe();
      revalidator.close();
      changed$.complete();
      shared?.close();
      await Promise.all([audit.close(), keyUse.close()]);
    },
  };
}
