// An app with authentication enabled and callers with different permissions, for the specs of authorization. Passwords are
// hashed with bcrypt at the lowest cost.

import { randomBytes } from 'node:crypto';
import { NEVER } from 'rxjs';
import { Passwords } from '../../../src/auth/accounts/passwords.ts';
import { Tokens } from '../../../src/auth/accounts/tokens.ts';
import { type Auth, type AuthOptions, composeAuth } from '../../../src/auth/auth.ts';
import type { AuthorizationServerOptions } from '../../../src/authorization-server/authorization-server.ts';
import type { Config } from '../../../src/config/config.ts';
import type { DefinedRoles, Role, Scope, User } from '../../../src/domain/accounts/account.ts';
import { type Clock, systemClock } from '../../../src/domain/time/clock.ts';
import type { Gateway } from '../../../src/gateway/gateway.ts';
import type { GatewayOptions } from '../../../src/gateway/gateway-types.ts';
import type { AppOptions } from '../../../src/http/app.ts';
import { MemoryStore } from '../../../src/persistence/memory/memory-store.ts';
import type { Store } from '../../../src/persistence/store.ts';
import { CHANGES_ONLY } from './anonymous-auth.ts';
import { type Answer, type AppFixture, type Ask, startApp } from './app.ts';

/** Headers that authenticate a caller. */
export type Credentials = Readonly<Record<string, string>>;

export interface AccountsFixture extends AppFixture {
  readonly auth: Auth;
  readonly store: Pick<Store, 'accounts' | 'audit'>;
  /** Of `admin`, a user with the role admin. */
  readonly admin: Credentials;
  /** Of `ada`, a user with the role user. */
  readonly user: Credentials;
  as(credentials: Credentials, method: string, path: string, ask?: Ask): Promise<Answer>;
  createUser(username: string, role?: Role, templates?: readonly string[]): Promise<User>;
  login(username: string): Promise<Credentials>;
  /** An API key without an owner, so that no role limits it. */
  key(permissions: readonly Scope[], templates?: readonly string[]): Promise<Credentials>;
  /** A token of `ada` that has expired. */
  expired(): Promise<Credentials>;
}

/** The password of all accounts. */
export const PASSWORD = 'correct horse';

const HOUR_MS = 3_600_000;

export interface AccountsOptions extends Partial<AppOptions> {
  readonly limits?: { readonly userHourlyLimit: number; readonly apiKeyHourlyLimit: number };
  readonly gateway?: Gateway | GatewayOptions;
  readonly logLevel?: string;
  /** The cost of bcrypt. Default 4, the lowest. */
  readonly passwordCost?: number;
  /** The clock of the accounts. Default: that of the process. */
  readonly clock?: Clock;
  /** Default: a new one of that cost. */
  readonly passwords?: Passwords;
  readonly store?: Pick<Store, 'accounts' | 'audit' | 'serverTimeMs'>;
  /** Options of the authorization server. Default: there is none. */
  readonly oauthFor?: (auth: Auth) => AuthorizationServerOptions;
  /** Access tokens of MCP clients. Default: none is valid. */
  readonly accessTokens?: AuthOptions['oauth'];
  /** Tokens of other issuers. Default: none is valid. */
  readonly issuers?: AuthOptions['issuers'];
  /** Roles of the settings. Default: there are none. */
  readonly roles?: DefinedRoles;
  /** Settings of the audit log. Default: calls are not recorded. */
  readonly auditSettings?: Config['audit'];
}

/** Starts an app whose accounts are `admin` and `ada`. */
export async function startWithAccounts(options: AccountsOptions = {}): Promise<AccountsFixture> {
  const {
    limits = { userHourlyLimit: 1_000, apiKeyHourlyLimit: 5_000 },
    store = new MemoryStore(),
    auditSettings = CHANGES_ONLY,
    passwordCost = 4,
    accessTokens,
    issuers,
    roles,
    clock = systemClock,
    passwords = new Passwords(systemClock, passwordCost),
    oauthFor,
    ...app
  } = options;
  const secret = randomBytes(32);
  const auth = composeAuth({
    ...{ authEnabled: true, store, secrets: [secret], tokenLifetimeMs: HOUR_MS, ...limits, passwords },
    clock,
    oauth: accessTokens,
    issuers,
    roles,
    audit: auditSettings,
    storeChanges$: NEVER,
    log: { info: () => {}, warn: () => {} },
  });
  const past = new Tokens({ secrets: [secret], lifetimeMs: HOUR_MS, wall: () => Date.now() - 2 * HOUR_MS });
  const createUser = (username: string, role: Role = 'user', templates?: readonly string[]) =>
    auth.accounts.createUser({
      username,
      email: `${username}@localhost`,
      password: PASSWORD,
      role,
      templates,
    });
  await createUser('admin', 'admin');
  const ada = await createUser('ada');
  const bearer = (token: string): Credentials => ({ authorization: `Bearer ${token}` });
  const login = async (username: string) =>
    bearer((await auth.logins.login({ username, password: PASSWORD, address: '127.0.0.1' })).accessToken);
  const fixture = await startApp({
    ...app,
    auth,
    ...(oauthFor === undefined ? {} : { authorizationServer: oauthFor(auth) }),
  });
  return {
    ...fixture,
    ...{ auth, store },
    admin: await login('admin'),
    user: await login('ada'),
    as: (credentials, method, path, ask = {}) =>
      fixture.ask(method, path, { ...ask, headers: { ...ask.headers, ...credentials } }),
    createUser,
    login,
    key: async (permissions, templates) => {
      const made = await auth.accounts.createApiKey({ name: permissions.join(' '), permissions, templates });
      return { 'x-api-key': made.key };
    },
    expired: async () => bearer((await past.issue(ada, 'password')).accessToken),
  };
}
