// What a user or a key may do right now, as a Principal. Pure: it reads records and decides.
// Whether the credentials are right is tokens.ts and api-keys.ts; which scope a route needs is the route's business.

import {
  type ApiKey,
  type Principal,
  ROLE_SCOPES,
  SCOPES,
  type Scope,
  type User,
} from '../domain/account.ts';

/** Requests per hour of those who have a limit. Source: spec, "Limits" 1. */
export interface HourlyLimits {
  readonly userPerHour: number;
  readonly apiKeyPerHour: number;
}

/** The principal of a person with a token. Admins have no limit. */
export function userPrincipal(user: User, { userPerHour }: HourlyLimits): Principal {
  return principal(
    { id: `user:${user.id}`, kind: 'user', name: user.username, userId: user.id },
    new Set(ROLE_SCOPES[user.role]),
    user.templates,
    userPerHour,
  );
}

/**
 * The principal of a key: its permissions as far as its owner's present role has them, its templates as far as its
 * owner may use them. Without an owner (the operator made it) nothing is cut. Limits: none with the scope `admin`.
 */
export function keyPrincipal(
  key: ApiKey,
  owner: User | undefined,
  { apiKeyPerHour }: HourlyLimits,
): Principal {
  return principal(
    {
      id: `key:${key.id}`,
      kind: 'api-key',
      name: key.name,
      ...(owner === undefined ? {} : { userId: owner.id }),
    },
    effectiveScopes(key.permissions, owner),
    commonTemplates(key.templates, owner?.templates),
    apiKeyPerHour,
  );
}

/** `admin` implies the others before the cut, so that the admin key of a demoted owner does what the owner may do. */
function effectiveScopes(permissions: readonly Scope[], owner: User | undefined): ReadonlySet<Scope> {
  const wanted = permissions.includes('admin') ? SCOPES : permissions;
  const allowed = owner === undefined ? SCOPES : ROLE_SCOPES[owner.role];
  return new Set(wanted.filter((scope) => allowed.includes(scope)));
}

/** Absent = all, so the intersection with an absent list is the other one. */
function commonTemplates(
  one: readonly string[] | undefined,
  other: readonly string[] | undefined,
): readonly string[] | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return one.filter((template) => other.includes(template));
}

function principal(
  who: Pick<Principal, 'id' | 'kind' | 'name' | 'userId'>,
  scopes: ReadonlySet<Scope>,
  templates: readonly string[] | undefined,
  hourlyLimit: number,
): Principal {
  return {
    ...who,
    scopes,
    ...(templates === undefined ? {} : { templates: new Set(templates) }),
    ...(scopes.has('admin') ? {} : { hourlyLimit }),
  };
}
