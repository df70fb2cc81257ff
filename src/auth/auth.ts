// Authentication for the rest of the program: composes the parts of this folder. HTTP gets the principal of a
// request here; each route names the scope that it needs.

import type { Logger } from 'pino';
import type { Observable } from 'rxjs';
import type { Config } from '../config/config.ts';
import type { DefinedRoles, User } from '../domain/accounts/account.ts';
import { ANONYMOUS, type Principal, userPrincipalId } from '../domain/accounts/principal.ts';
import type { GatewayAddress } from '../domain/accounts/resource.ts';
import { userNotFound } from '../domain/errors/account-errors.ts';
import type { Clock } from '../domain/time/clock.ts';
import type { OAuthStore } from '../persistence/oauth-store.ts';
import type { RevisionChange } from '../persistence/revision-watch.ts';
import type { Store } from '../persistence/store.ts';
import { Accounts, type AccountsOptions } from './accounts/accounts.ts';
import { KeyUse } from './accounts/api-keys.ts';
import { LoginThrottle } from './accounts/login-throttle.ts';
import { Logins } from './accounts/logins.ts';
import { Passwords } from './accounts/passwords.ts';
import { Tokens } from './accounts/tokens.ts';
import { AuditLog } from './audit/audit-log.ts';
import { type AddressOf, Authenticator } from './authenticator.ts';
import type { ForeignTokens } from './credential-verifier.ts';
import type { Credentials } from './credentials.ts';
import { AccessTokens } from './grants/access-tokens.ts';
import { Grants } from './grants/grants.ts';
import type { OAuthKeys } from './grants/oauth-keys.ts';
import type { CompanyAccounts } from './issuers/company-accounts.ts';
import { CALL_WINDOW_SECONDS, RateLimiter, type SharedCounter } from './limits/rate-limiter.ts';
import { keyPrincipal, type RightsSettings, userPrincipal } from './principals.ts';
import { GatewayProofs } from './secrets/gateway-proofs.ts';
import type { Secrets } from './secrets/secrets.ts';
import { SessionRevalidator } from './session-revalidator.ts';
import { TokenEnds } from './token-ends.ts';

export interface AuthOptions
  extends Pick<Config, 'authEnabled' | 'tokenLifetimeMs' | 'audit'>,
    RightsSettings {
  readonly store: Pick<Store, 'accounts' | 'audit' | 'serverTimeMs'>;
  /** Signs tokens; at least 32 bytes. */
  readonly secrets: Secrets;
  /** It never errors, and is subscribed to once, until close(). Even without changes each credential is verified every 10 s. */
  readonly storeChanges$: Observable<RevisionChange>;
  /** Access tokens of MCP clients. Undefined: there are none. */
  readonly oauth?: OAuthOptions | undefined;
  /** Tokens of other issuers. Undefined: there are none. */
  readonly issuers?: ForeignTokens | undefined;
  /** Makes the accounts of users of identity providers. Undefined: there are none. */
  readonly company?: ((onChange: (principalId: string) => void) => CompanyAccounts) | undefined;
  /** False: only the first admin logs in with a password, and loudly. Default: true. */
  readonly hasPasswordLogins?: boolean | undefined;
  readonly log: Pick<Logger, 'info' | 'warn'>;
  readonly clock: Clock;
  /** The instance that first-admin.ts also uses. Default: a new one of cost 12. */
  readonly passwords?: Passwords;
  readonly onAdminPasswordChanged?: AccountsOptions['onAdminPasswordChanged'];
}

interface OAuthOptions {
  readonly store: OAuthStore;
  readonly keys: Pick<OAuthKeys, 'publicKeys'>;
  readonly address: GatewayAddress;
}

/** Authentication, and the parts of it that other folders use. */
export interface Auth {
  /** False: every caller is the anonymous admin; accounts can still be managed. */
  readonly isEnabled: boolean;
  /** A user or an API key as it is now, by its id. Throws USER_NOT_FOUND. */
  principalOf(id: string): Promise<Principal>;
  /** True when a user, an API key or a role of the settings names the view, so that a change of it changes their rights. */
  namesView(view: string): Promise<boolean>;
  /** Roles that the settings define. */
  readonly roles: DefinedRoles | undefined;
  readonly accounts: Accounts;
  readonly logins: Logins;
  readonly proofs: GatewayProofs;
  readonly tokenEnds: TokenEnds;
  /** The sign-ins of MCP clients; undefined without sign-in. */
  readonly grants: Grants | undefined;
  /** The accounts of users of identity providers; undefined without providers. */
  readonly company: CompanyAccounts | undefined;
  readonly audit: AuditLog;
  readonly limiter: RateLimiter;
  /** Limits the calls of views, also while authentication is off. */
  readonly callLimiter: RateLimiter;
  /** Limits failed logins: the other nodes are connected with it. */
  readonly throttle: LoginThrottle;
  /**
   * Hot: the id of a principal that lost permissions, or may have lost some, because a key was revoked or a
   * user was changed or deleted. Immediate for changes on this node; changes on other nodes and expired keys
   * are reported only for the principals of `watchSessions`. Completes with `close`.
   */
  readonly changed$: Observable<string>;
  /**
   * The principal of these credentials; without a promise when they are cached, which is the hot path.
   * Throws AUTHENTICATION_REQUIRED, INVALID_CREDENTIALS, TOKEN_EXPIRED; DATABASE_UNAVAILABLE for credentials that were not
   * verified before the database became unavailable; TOO_MANY_ATTEMPTS while too many unknown keys are looked up.
   */
  authenticate(credentials: Credentials, address?: AddressOf): Principal | Promise<Principal>;
  /**
   * Checks the principals with open sessions or streams, whose ids `open` returns, every 2 s and when accounts
   * changed. Only stale entries are queried. Does nothing while authentication is off.
   */
  watchSessions(open: () => Iterable<string>): void;
  /** Writes all buffered entries and closes the connection to Redis; bounded in time. */
  close(): Promise<void>;
}

/**
 * Opens authentication on an open store. With a `redisUrl`, Redis counts requests for all gateways, for which it waits for at
 * most 2 s; else each gateway counts alone. Throws ConfigError for an invalid URL.
 */
export async function createAuth(options: AuthOptions & Pick<Config, 'redisUrl'>): Promise<Auth> {
  const { redisUrl, log, clock } = options;
  if (redisUrl === undefined) return composeAuth(options);
  const { openRedisCounter } = await import('./limits/redis-counter.ts');
  return composeAuth(options, await openRedisCounter({ url: redisUrl, log, clock }));
}

const UNKNOWN_ADDRESS: AddressOf = () => 'unknown';

/** Composes authentication. `shared` counts requests for all gateways; without it each counts its own. */
export function composeAuth(options: AuthOptions, shared?: SharedCounter): Auth {
  const { authEnabled: isEnabled, store, log, clock } = options;
  const { passwords = new Passwords(clock), hasPasswordLogins = true } = options;
  const { now, wall } = clock;
  /** Makes the sessions and cached credentials of this principal be checked again. */
  const changed = (principalId: string): void => {
    authenticator.invalidate(principalId);
    revalidator.changed(principalId);
  };
  const keyUse = new KeyUse(store.accounts, clock);
  const { secrets, tokenLifetimeMs: lifetimeMs, roles } = options;
  const tokens = new Tokens({ secrets, lifetimeMs, wall, roles });
  const oauth = composeOAuth(options, changed);
  const grants = oauth?.grants;
  const revalidator = new SessionRevalidator({
    accounts: store.accounts,
    grants,
    clock,
    serverTimeMs: () => store.serverTimeMs(),
    log,
  });
  const company = options.company?.(changed);
  const authenticator = new Authenticator({
    used: (userId) => company?.used(userId),
    accounts: store.accounts,
    tokens,
    rightsSettings: options,
    clock,
    keyUse,
    revalidator,
    oauth,
    hasPasswordLogins,
    issuers: options.issuers,
  });
  const tokenEnds = new TokenEnds({
    accounts: store.accounts,
    tokens,
    clock,
    serverTimeMs: () => store.serverTimeMs(),
    oauth,
    issuers: options.issuers,
    onEnded: (userId) => authenticator.invalidate(userPrincipalId(userId)),
  });
  const accounts = new Accounts({
    store: store.accounts,
    passwords,
    wall,
    onChange: changed,
    grants,
    keepsFirstAdmin: company !== undefined,
    onKeyCreated: (id) => authenticator.keyCreated(id),
    onAdminPasswordChanged: options.onAdminPasswordChanged,
    flushKeyUse: () => keyUse.flush(),
  });
  const audit = new AuditLog({
    store: store.audit,
    log,
    clock,
    serverTimeMs: () => store.serverTimeMs(),
    settings: options.audit,
  });
  const throttle = new LoginThrottle(now);
  const proofs = new GatewayProofs(secrets, store.accounts, now);
  const logins = new Logins({
    accounts: store.accounts,
    passwords,
    throttle,
    tokens,
    proofs,
    hasPasswordLogins,
    audit,
    log,
  });
  const storeChanges = options.storeChanges$.subscribe(({ kind }) => {
    if (authenticator.onStoreChange(kind)) revalidator.storeChanged();
  });
  return {
    isEnabled,
    principalOf: (id) => principalOf(id, options),
    namesView: (view) => namesView(view, options),
    roles: options.roles,
    accounts,
    logins,
    proofs,
    tokenEnds,
    grants,
    company,
    audit,
    limiter: new RateLimiter(clock, shared),
    callLimiter: new RateLimiter(clock, shared, CALL_WINDOW_SECONDS),
    throttle,
    changed$: revalidator.changed$.asObservable(),
    authenticate: (credentials, address = UNKNOWN_ADDRESS) =>
      isEnabled ? authenticator.authenticate(credentials, address) : ANONYMOUS,
    watchSessions: (open) => {
      if (isEnabled) revalidator.watch(open);
    },
    close: async () => {
      storeChanges.unsubscribe();
      revalidator.close();
      shared?.close();
      await Promise.all([audit.close(), keyUse.close(), grants?.use.close()]);
    },
  };
}

/** The access tokens of MCP clients and their grants; undefined where there are none. */
function composeOAuth(
  { oauth, store: { accounts }, clock, log }: AuthOptions,
  onEnded: (principalId: string) => void,
) {
  if (oauth === undefined) return undefined;
  const { store, keys, address } = oauth;
  const publicKeys = () => keys.publicKeys();
  return {
    tokens: new AccessTokens(publicKeys, address, clock.wall),
    grants: new Grants({ store, accounts, clock, onEnded, warn: (line) => log.warn(line) }),
    endSignIn: async (tokenId: string) => store.end({ kind: 'sign-in', grantId: tokenId }),
  };
}

async function principalOf(id: string, options: AuthOptions): Promise<Principal> {
  const { accounts } = options.store;
  const [key] = await accounts.findApiKeys([id]);
  const [user] = await accounts.findUsers([key?.ownerId ?? id]);
  if (key !== undefined) return keyPrincipal(key, user, options);
  if (user === undefined) throw userNotFound(id);
  return userPrincipal(user, options);
}

async function namesView(view: string, { store: { accounts }, roles = {} }: AuthOptions): Promise<boolean> {
  const isNamed = ({ views }: Pick<User, 'views'>) => views?.includes(view) === true;
  if (Object.values(roles).some(isNamed)) return true;
  return (await accounts.findUsers()).some(isNamed) || (await accounts.findApiKeys()).some(isNamed);
}
