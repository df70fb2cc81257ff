// Accounts of users who sign in at an identity provider. They are found by issuer and subject, never by a name or an address, which a
// provider may give to another user later. Source: ADR 214.

import { Check } from 'typebox/schema';
import type { GroupRole } from '../config/issuer-settings.ts';
import type { ProviderSetting } from '../config/provider-settings.ts';
import { NO_PASSWORD, type User } from '../domain/account.ts';
import type { Clock } from '../domain/clock.ts';
import { accountDisabled, nameOfLocalAccount, noRoleForGroups } from '../domain/error-catalogue.ts';
import { hasCode } from '../domain/errors.ts';
import { Email, Username } from '../domain/input-schemas.ts';
import type { AccountStore, OAuthRow, OAuthStore } from '../persistence/store.ts';
import { newUser } from './accounts.ts';
import { claimOf, groupsIn, roleForGroups } from './claims.ts';
import type { Claims, ProviderAnswer } from './identity-provider.ts';
import { oauthKey } from './oauth-rows.ts';

export interface CompanyAccountsOptions extends Pick<Clock, 'wall'> {
  readonly store: OAuthStore;
  readonly accounts: Pick<AccountStore, 'findUsers' | 'insertUser' | 'changeUser' | 'deleteUser'>;
  /** Called with the id of the principal of an account whose rights changed. */
  readonly onChange: (principalId: string) => void;
}

/** Which user of which provider an account belongs to. */
interface Identity {
  readonly issuer: string;
  readonly subject: string;
}

export class CompanyAccounts {
  readonly #options: CompanyAccountsOptions;

  constructor(options: CompanyAccountsOptions) {
    this.#options = options;
  }

  /**
   * The account of a user who has just signed in at the provider, with the rights that the provider gives now; it is made at the first
   * sign-in. INSUFFICIENT_PERMISSIONS, DUPLICATE_USERNAME, LAST_ADMIN.
   */
  async signIn(setting: ProviderSetting, { subject, claims }: ProviderAnswer): Promise<User> {
    const role = roleOf(setting, claims);
    const identity = { issuer: setting.issuer, subject };
    const known = await this.#find(identity);
    if (known === undefined) return this.#create(setting, identity, claims, role);
    if (!known.isActive) throw accountDisabled(known.username);
    return this.#update(known, setting, claims, role);
  }

  async #find(identity: Identity): Promise<User | undefined> {
    const { store, accounts } = this.#options;
    const [row] = await store.find('identity', [keyOf(identity)]);
    const [user] = row?.userId === undefined ? [] : await accounts.findUsers([row.userId]);
    return user;
  }

  async #create(
    setting: ProviderSetting,
    identity: Identity,
    claims: Claims,
    { role, templates }: GroupRole,
  ): Promise<User> {
    const { store, accounts, wall } = this.#options;
    const username = nameIn(setting, claims);
    const email = emailIn(setting, claims) ?? `${username.replaceAll('@', '.')}@localhost`;
    const user = newUser({ username, email, role, templates }, NO_PASSWORD, wall());
    try {
      await accounts.insertUser(user);
    } catch (thrown) {
      throw hasCode(thrown, 'DUPLICATE_USERNAME') ? nameOfLocalAccount(username, identity) : thrown;
    }
    if (await store.replace(rowOf(identity, user), 0)) return user;
    // Two sign-ins at once: the other one was first.
    await accounts.deleteUser(user.id);
    const first = await this.#find(identity);
    if (first === undefined) throw nameOfLocalAccount(username, identity);
    return first;
  }

  async #update(user: User, setting: ProviderSetting, claims: Claims, role: GroupRole): Promise<User> {
    const { accounts, wall, onChange } = this.#options;
    const email = emailIn(setting, claims) ?? user.email;
    const { templates = null } = role;
    const isSame =
      role.role === user.role && email === user.email && templates?.join() === user.templates?.join();
    if (isSame) return user;
    const updatedAt = new Date(wall()).toISOString();
    const changed = await accounts.changeUser(user.id, { role: role.role, templates, email, updatedAt });
    onChange(`user:${user.id}`);
    return changed;
  }
}

function keyOf({ issuer, subject }: Identity): string {
  return oauthKey('identity', JSON.stringify([issuer, subject]));
}

function rowOf(identity: Identity, { id, createdAt }: User): Omit<OAuthRow, 'version'> {
  return {
    ...{ kind: 'identity', key: keyOf(identity), userId: id, createdAt },
    value: JSON.stringify(identity),
  };
}

/** INSUFFICIENT_PERMISSIONS when the user may not sign in. */
function roleOf({ label, require, roles, everyone, claims: names }: ProviderSetting, claims: Claims) {
  for (const [name, values] of require) {
    const own = [claimOf(claims, name)].flat();
    if (!own.some((each) => values.includes(String(each))))
      throw noRoleForGroups(
        `Your account at ${label} may not use this gateway: its claim ${name} does not fit.`,
      );
  }
  const groups = roles.length === 0 ? [] : groupsIn(claims, names.groups);
  const hasRole = roles.some(([group]) => groups.includes(group));
  if (!hasRole && everyone !== undefined) return everyone;
  return roleForGroups(groups, roles);
}

function nameIn({ label, claims: names }: ProviderSetting, claims: Claims): string {
  const name =
    claimOf(claims, names.username ?? 'preferred_username') ??
    (names.username === undefined ? claims.email : undefined);
  if (typeof name === 'string' && Check(Username, name)) return name;
  throw noRoleForGroups(
    `${label} sent no claim ${names.username ?? 'preferred_username'} that can be a user name here.`,
  );
}

function emailIn({ claims: names }: ProviderSetting, claims: Claims): string | undefined {
  const email = claimOf(claims, names.email ?? 'email');
  return typeof email === 'string' && Check(Email, email) ? email : undefined;
}
