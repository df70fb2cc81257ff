// Opens authentication on the storage of a server, creates the first admin, and returns messages about it; makes
// the authorization server for MCP clients.

import type { LookupFunction } from 'node:net';
import type { Logger } from 'pino';
import type { Observable } from 'rxjs';
import { type Announcements, ensureFirstAdmin, forgetInitialPassword } from '../auth/accounts/first-admin.ts';
import type { FirstPassword } from '../auth/accounts/first-password.ts';
import { Passwords } from '../auth/accounts/passwords.ts';
import { type Auth, createAuth } from '../auth/auth.ts';
import { OAuthKeys } from '../auth/grants/oauth-keys.ts';
import type { IdentityProvider } from '../auth/issuers/identity-provider.ts';
import type { Issuers } from '../auth/issuers/issuers.ts';
import type { AuthorizationServerOptions } from '../authorization-server/authorization-server.ts';
import type { Config } from '../config/config.ts';
import { ConfigError } from '../config/config-error.ts';
import type { GatewayAddress, SignIn } from '../domain/accounts/resource.ts';
import { backgroundClock, systemClock } from '../domain/time/clock.ts';
import { unreadableRows } from '../persistence/oauth-rows.ts';
import type { RevisionChange } from '../persistence/revision-watch.ts';
import type { Storage } from './storage.ts';

const OPEN_SECRET =
  'the signing secret is kept in the database: read access to it is enough to sign tokens; set GATEWAY_SECRET_KEY';

/** The authentication of a server, and the parts of it that its authorization server needs. */
interface ServerAuth {
  readonly auth: Auth;
  readonly keys: OAuthKeys;
  /** The issuers whose identity assertions are accepted; undefined without one. */
  readonly assertions: Issuers | undefined;
  readonly providers: readonly IdentityProvider[];
  /** Creates the first admin if there is none; does nothing while authentication is off. Throws ConfigError. */
  ensureAdmin(prepared?: FirstPassword): Promise<Announcements>;
  /** Closes authentication, and deletes the first password of accounts in memory, which end with this process. */
  close(): Promise<void>;
}

export async function openServerAuth(
  config: Config,
  { store, keepsSecrets, initialPasswordFile: passwordFile, signingSecrets }: Storage,
  options: {
    readonly storeChanges$: Observable<RevisionChange>;
    readonly log: Logger;
    readonly isTerminal: boolean;
    readonly address: GatewayAddress;
    /** Looks up the names of identity providers and issuers. */
    readonly lookup: LookupFunction;
  },
): Promise<ServerAuth> {
  const { storeChanges$, log, isTerminal, address, lookup } = options;
  const passwords = new Passwords(systemClock);
  const signing = await signingSecrets();
  const keys = new OAuthKeys({ store: store.oauth, clock: systemClock });
  const hasOAuth = config.authEnabled && config.oauth.isEnabled;
  const outside = { address, log, lookup };
  const company = await companyOf(config, { store, keepsSecrets }, outside);
  const issuers = await issuersOf(config, outside, () => auth.company);
  const auth: Auth = await createAuth({
    apiKeyHourlyLimit: config.apiKeyHourlyLimit,
    audit: config.audit,
    authEnabled: config.authEnabled,
    hasPasswordLogins: config.hasPasswordLogins,
    redisUrl: config.redisUrl,
    roles: config.roles,
    tokenLifetimeMs: config.tokenLifetimeMs,
    userHourlyLimit: config.userHourlyLimit,
    store,
    oauth: hasOAuth ? { store: store.oauth, keys, address } : undefined,
    // There are no tokens to verify without `issuers`: identity providers only vouch for users, by assertions.
    issuers: config.oauth.issuers.length === 0 ? undefined : issuers,
    company: company?.accounts,
    secrets: signing.secrets,
    storeChanges$,
    log,
    clock: systemClock,
    passwords,
    onAdminPasswordChanged: () =>
      void forgetInitialPassword(passwordFile).catch((error: unknown) =>
        log.warn(
          { err: error },
          'the file with the first password, which is no longer valid, cannot be deleted',
        ),
      ),
  });
  const ensureAdmin = async (prepared?: FirstPassword): Promise<Announcements> => {
    if (!config.authEnabled) return { warnings: [], notices: [] };
    const configuredPassword = config.adminPassword;
    const { accounts } = store;
    const request = {
      accounts,
      passwords,
      configuredPassword,
      prepared,
      isTerminal,
      passwordFile,
      wall: systemClock.wall,
      roles: config.roles,
    };
    const { warnings, notices } = await ensureFirstAdmin(request);
    const lost = await unreadableRows(store.oauth);
    const others = [...(signing.isInDatabase ? [OPEN_SECRET] : []), ...(lost === undefined ? [] : [lost])];
    return { warnings: [...others, ...warnings], notices };
  };
  const close = async (): Promise<void> => {
    await auth.close();
    if (store.kind === 'memory') await forgetInitialPassword(passwordFile);
  };
  const { issuers: others, providers } = config.oauth;
  const hasAssertions = [...others, ...providers].some(({ idJag }) => idJag === true);
  const assertions = hasAssertions ? issuers : undefined;
  return { auth, keys, assertions, providers: company?.providers ?? [], ensureAdmin, close };
}

/** What the gateway needs to be a client of identity providers and issuers. */
interface Outside {
  readonly address: GatewayAddress;
  readonly log: Logger;
  readonly lookup: LookupFunction;
}

/**
 * The result is undefined, and nothing is loaded, without identity providers. Throws ConfigError for one that is this
 * gateway, and without the pages.
 */
async function companyOf(
  { authEnabled, oauth, hasPasswordLogins, roles }: Config,
  { store, keepsSecrets }: Pick<Storage, 'store' | 'keepsSecrets'>,
  { address, log, lookup }: Outside,
) {
  const settings = oauth.providers;
  if (authEnabled && settings.length === 0 && !hasPasswordLogins)
    throw new ConfigError('auth.passwords: false needs auth.providers: without them only admin could log in');
  if (!authEnabled || settings.length === 0) return undefined;
  if (!oauth.isEnabled)
    throw new ConfigError('auth.providers needs the pages of the sign-in: auth.oauth is false');
  const own = settings.find(({ issuer }) => issuer.replace(/\/$/, '') === address.issuer);
  if (own !== undefined) throw new ConfigError(`auth.providers: ${own.issuer} is this gateway itself`);
  const { IdentityProvider } = await import('../auth/issuers/identity-provider.ts');
  const { CompanyAccounts } = await import('../auth/issuers/company-accounts.ts');
  const warn = (line: string) => log.warn(line);
  const common = { clock: systemClock, keepsSecrets, warn, lookup };
  const providers = settings.map((setting) => new IdentityProvider(setting, common));
  return {
    providers,
    accounts: (onChange: (principalId: string) => void) =>
      new CompanyAccounts({
        store: store.oauth,
        accounts: store.accounts,
        serverTimeMs: () => store.serverTimeMs(),
        clock: systemClock,
        onChange,
        roles,
        providers,
        keepsSecrets,
        warn,
      }),
  };
}

/**
 * Resolves with undefined, and loads nothing, without other issuers. Throws ConfigError for one that is this gateway, or that
 * vouches twice.
 */
async function issuersOf(
  config: Config,
  { address, log, lookup }: Outside,
  company: () => Auth['company'],
): Promise<Issuers | undefined> {
  const settings = config.oauth.issuers;
  const providers = config.oauth.providers.filter(({ idJag }) => idJag === true);
  if (!config.authEnabled || settings.length + providers.length === 0) return undefined;
  const twice = providers.find((provider) =>
    settings.some(({ issuer, idJag }) => issuer === provider.issuer && idJag === true),
  );
  if (twice !== undefined)
    throw new ConfigError(
      `auth.providers: ${twice.issuer} has \`id_jag\` in auth.issuers, too: its assertions are for accounts, or for subjects without one`,
    );
  const own = settings.find(({ issuer }) => issuer.replace(/\/$/, '') === address.issuer);
  if (own !== undefined) throw new ConfigError(`auth.issuers: ${own.issuer} is this gateway itself`);
  if (!config.oauth.isEnabled && settings.some(({ idJag }) => idJag === true))
    log.warn('auth.issuers: `id_jag` has no effect, because the gateway signs no users in (auth.oauth)');
  const { Issuers } = await import('../auth/issuers/issuers.ts');
  return new Issuers({
    settings,
    providers,
    company,
    address,
    clock: backgroundClock(systemClock),
    rightsSettings: config,
    warn: (line) => log.warn(line),
    lookup,
  });
}

/** The place where MCP clients sign in; undefined when they do not. */
export function signInOf({ authEnabled, oauth }: Config, address: GatewayAddress): SignIn | undefined {
  const issuers = oauth.issuers.map(({ issuer }) => issuer);
  const isOn = authEnabled && (oauth.isEnabled || issuers.length > 0);
  return isOn ? { address, issuers, hasOwnServer: oauth.isEnabled } : undefined;
}

/** Costs nothing until a client asks for it. */
export function authorizationServerOf(
  { oauth, hasPasswordLogins }: Pick<Config, 'oauth' | 'hasPasswordLogins'>,
  { store, keepsSecrets }: Pick<Storage, 'store' | 'keepsSecrets'>,
  own: Pick<
    AuthorizationServerOptions,
    'address' | 'auth' | 'providers' | 'keys' | 'secrets' | 'log' | 'assertions'
  >,
): AuthorizationServerOptions {
  const clock = systemClock;
  return {
    ...own,
    store,
    keepsSecrets,
    clock,
    hasPasswordLogins,
    tokenSeconds: oauth.accessTokenMs / 1_000,
    rule: oauth.clients,
    openNetworks: oauth.clientNetworks,
    signInsPerMinute: oauth.signInsPerMinute,
  };
}
