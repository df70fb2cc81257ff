// Reads the claims of another authorization server: single claims, groups, the role that groups have here, and the user of
// an identity provider.

import { Check } from 'typebox/schema';
import type { GroupRole, GroupRoles } from '../../config/group-roles.ts';
import type { ProviderSetting } from '../../config/provider-settings.ts';
import { type DefinedRoles, isBuiltIn } from '../../domain/accounts/account.ts';
import { Email, Username } from '../../domain/accounts/input-schemas.ts';
import { noRoleForGroups } from '../../domain/errors/account-errors.ts';
import { isJsonObject } from '../../domain/json/json.ts';
import { scopesOfRole } from '../principals.ts';

export type Claims = Readonly<Record<string, unknown>>;

/** The claim of this name, which may contain dots; if there is none, the name is a path: `realm_access.roles`. */
export function claimOf(payload: unknown, name: string): unknown {
  if (!isJsonObject(payload)) return undefined;
  if (Object.hasOwn(payload, name)) return payload[name];
  const [first = '', ...rest] = name.split('.');
  return rest.length > 0 && Object.hasOwn(payload, first)
    ? claimOf(payload[first], rest.join('.'))
    : undefined;
}

/** Throws INSUFFICIENT_PERMISSIONS when there are too many to be in the token. */
export function groupsIn(payload: Claims, name = 'groups'): readonly string[] {
  const groups = claimOf(payload, name);
  const hasElsewhere = isJsonObject(payload._claim_names) && Object.hasOwn(payload._claim_names, name);
  // Entra: above 200 groups the token says only where they are.
  if (groups === undefined && (hasElsewhere || payload.hasgroups === true))
    throw noRoleForGroups(
      'The token does not contain the groups, because there are too many: use app roles.',
    );
  return [groups].flat().filter((group) => typeof group === 'string');
}

/**
 * The first role of the settings that one of the groups has; other groups with at least its scopes add their
 * templates. Every pair of a scope and a template is so one that a single group gives. Throws INSUFFICIENT_PERMISSIONS
 * when no group has a role.
 */
export function roleForGroups(
  groups: readonly string[],
  roles: GroupRoles,
  defined: DefinedRoles | undefined,
): GroupRole {
  const own = roles.filter(([group]) => groups.includes(group)).map(([, role]) => role);
  const [first] = own;
  if (first === undefined) throw noRoleForGroups('No group of the token has a role at this gateway.');
  const wanted = scopesOfRole(first, defined);
  const wider = own.filter((role) => wanted.every((scope) => scopesOfRole(role, defined).includes(scope)));
  // Lists of tools and views, and the lists of a role, come from one group: the rights of two groups together are not one list.
  if (own.some(({ role, views, tools }) => !isBuiltIn(role) || views !== undefined || tools !== undefined))
    return first;
  if (wider.some(({ templates }) => templates === undefined)) return { role: first.role, scopes: wanted };
  return {
    role: first.role,
    scopes: wanted,
    templates: [...new Set(wider.flatMap(({ templates = [] }) => templates))],
  };
}

/** True for claims from which the role of the user follows. */
export function hasRights({ require, roles, claims: names }: ProviderSetting, claims: Claims): boolean {
  const needed = [
    ...require.map(([name]) => name),
    ...(roles.length === 0 ? [] : [names.groups ?? 'groups']),
  ];
  const { groups = 'groups' } = names;
  // Too many to be in the assertion: an error of its own.
  if (roles.length > 0) groupsIn(claims, groups);
  return needed.every((name) => claimOf(claims, name) !== undefined);
}

/** The role of the user of a provider. Throws INSUFFICIENT_PERMISSIONS when the user may not sign in. */
export function roleOfClaims(
  { label, require, roles, everyone, claims: names }: ProviderSetting,
  claims: Claims,
  defined: DefinedRoles | undefined,
): GroupRole {
  for (const [name, values] of require) {
    const own = [claimOf(claims, name)].flat();
    if (!own.some((each) => values.includes(String(each))))
      throw noRoleForGroups(
        `Your account at ${label} may not use this gateway: its claim ${name} does not have a value that is required.`,
      );
  }
  const groups = roles.length === 0 ? [] : groupsIn(claims, names.groups);
  const hasRole = roles.some(([group]) => groups.includes(group));
  if (!hasRole && everyone !== undefined) return everyone;
  return roleForGroups(groups, roles, defined);
}

/** Throws INSUFFICIENT_PERMISSIONS when no claim can be a user name here. */
export function usernameIn({ label, claims: names }: ProviderSetting, claims: Claims): string {
  const name =
    claimOf(claims, names.username ?? 'preferred_username') ??
    (names.username === undefined ? claims.email : undefined);
  if (typeof name === 'string' && Check(Username, name)) return name;
  throw noRoleForGroups(
    `${label} sent no claim ${names.username ?? 'preferred_username'} that can be a user name here.`,
  );
}

/** The result is undefined without a claim that can be an address. */
export function emailIn({ claims: names }: ProviderSetting, claims: Claims): string | undefined {
  const email = claimOf(claims, names.email ?? 'email');
  return typeof email === 'string' && Check(Email, email) ? email : undefined;
}
