// Reads the claims of another authorization server: single claims, groups, and the role that groups have here.

import type { GroupRole, GroupRoles } from '../../config/group-roles.ts';
import { type DefinedRoles, isBuiltIn } from '../../domain/accounts/account.ts';
import { noRoleForGroups } from '../../domain/errors/account-errors.ts';
import { isJsonObject } from '../../domain/json/json.ts';
import { scopesOfRole } from '../principals.ts';

/** The claim of this name, which may contain dots; if there is none, the name is a path: `realm_access.roles`. */
export function claimOf(payload: unknown, name: string): unknown {
  if (!isJsonObject(payload)) return undefined;
  if (Object.hasOwn(payload, name)) return payload[name];
  const [first = '', ...rest] = name.split('.');
  return rest.length > 0 && Object.hasOwn(payload, first)
    ? claimOf(payload[first], rest.join('.'))
    : undefined;
}

/** INSUFFICIENT_PERMISSIONS when there are too many to be in the token. */
export function groupsIn(payload: Readonly<Record<string, unknown>>, name = 'groups'): readonly string[] {
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
 * templates. Every pair of a scope and a template is so one that a single group gives. INSUFFICIENT_PERMISSIONS
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
