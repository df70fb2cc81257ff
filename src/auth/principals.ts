// The Principal of a user or a key, and the status of its account: pure functions of stored records. tokens.ts and
// api-keys.ts check credentials; each route names the scope that it needs.

import { hash } from 'node:crypto';
import type { Config } from '../config/config.ts';
import type { GroupRole } from '../config/group-roles.ts';
import {
  type ApiKey,
  CLIENT_SCOPES,
  type DefinedRoles,
  type ResourcePath,
  roleRights,
  SCOPES,
  type Scope,
  scopesOfUser,
  type User,
} from '../domain/accounts/account.ts';
import type { Grant } from '../domain/accounts/grant.ts';
import {
  countedIdOf,
  grantPrincipalId,
  keyPrincipalId,
  type Principal,
  userPrincipalId,
} from '../domain/accounts/principal.ts';
import { commonRights, isRestricted, type Rights, type RightsLists } from '../domain/accounts/rights.ts';
import type { AccessClaims } from './grants/access-tokens.ts';

/** The settings from which rights follow: the hourly limits of users and keys, and the roles. */
export type RightsSettings = Pick<Config, 'userHourlyLimit' | 'apiKeyHourlyLimit'> & {
  readonly roles?: DefinedRoles | undefined;
};

/** The principal of a user. Admins have no hourly limit. */
export function userPrincipal(user: User, { userHourlyLimit, roles }: RightsSettings): Principal {
  const role = roleRights(user.role, roles);
  return principal(
    { id: userPrincipalId(user.id), kind: 'user', name: user.username, userId: user.id },
    new Set(scopesOfUser(user, roles)),
    commonRights(user, role),
    userHourlyLimit,
  );
}

/**
 * The permissions, templates, views and tools of the key that its owner also has now; all of them for a key of the
 * operator, which has no owner. No hourly limit with the scope `admin`.
 */
export function keyPrincipal(
  key: ApiKey,
  owner: User | undefined,
  { apiKeyHourlyLimit, roles }: RightsSettings,
): Principal {
  return principal(
    {
      id: keyPrincipalId(key.id),
      kind: 'api-key',
      name: key.name,
      ...(owner === undefined ? {} : { userId: owner.id }),
    },
    effectiveScopes(key.permissions, owner, roles),
    owner === undefined ? commonRights(key) : commonRights(key, owner, roleRights(owner.role, roles)),
    apiKeyHourlyLimit,
  );
}

/**
 * The rights of an access token: those in it that its grant and its user have now, for the template or view of its
 * audience. `CLIENT_SCOPES` and those of the grant are all that another sign-in of this client could get.
 */
export function accessPrincipal(
  { grantId, audience, scopes }: Pick<AccessClaims, 'grantId' | 'audience' | 'scopes'>,
  grant: Pick<Grant, 'scopes' | 'clientName' | 'lists'>,
  user: User,
  { userHourlyLimit, roles }: RightsSettings,
): Principal {
  const client = {
    name: grant.clientName,
    countedId: userPrincipalId(user.id),
    audience,
    obtainable: effectiveScopes([...CLIENT_SCOPES, ...grant.scopes], user, roles),
  };
  const granted = effectiveScopes(grant.scopes, user, roles);
  const both = [...effectiveScopes(scopes, user, roles)].filter((scope) => granted.has(scope));
  const name = user.username;
  return {
    ...principal(
      { id: grantPrincipalId(grantId, user.id), kind: 'user', name, userId: user.id },
      new Set(both),
      commonRights(openedBy(audience), grant.lists ?? {}, user, roleRights(user.role, roles)),
      userHourlyLimit,
    ),
    client,
  };
}

/** The rights in a token of another issuer, and the role of its groups. */
interface IssuedRights {
  readonly audience: ResourcePath;
  /** Scopes of this gateway that the token names; undefined: the token does not limit the role. */
  readonly scopes: readonly Scope[] | undefined;
  readonly role: GroupRole;
  /** The scopes that the client could get with another token. Default: all of the role. */
  readonly obtainable?: readonly Scope[];
  /** Rights lists of the client. Default: nothing is limited. */
  readonly lists?: RightsLists | undefined;
}

/** The rights of the role, limited by the token and its audience. */
export function issuedPrincipal(
  { id, name, clientName }: Pick<Principal, 'id' | 'name'> & { readonly clientName: string },
  { audience, scopes = SCOPES, role, obtainable = SCOPES, lists = {} }: IssuedRights,
  { userHourlyLimit, roles }: RightsSettings,
): Principal {
  const within = (wanted: readonly Scope[]) =>
    scopesOfRole(role, roles).filter((scope) => wanted.includes('admin') || wanted.includes(scope));
  return {
    ...principal(
      { id, kind: 'user', name },
      new Set(within(scopes)),
      commonRights(openedBy(audience), lists, role, roleRights(role.role, roles)),
      userHourlyLimit,
    ),
    client: {
      name: clientName,
      countedId: countedIdOf(id),
      audience,
      obtainable: new Set(within(obtainable)),
    },
  };
}

/** The scopes that a mapping of groups gives: those it names, as far as its role has them; without names all of the role. */
export function scopesOfRole({ role, scopes }: GroupRole, roles?: DefinedRoles): readonly Scope[] {
  const own = roleRights(role, roles).scopes;
  return scopes?.filter((scope) => own.includes(scope)) ?? own;
}

/** `admin` is expanded before the intersection, so that the admin key of a demoted owner has the rights of its owner. */
function effectiveScopes(
  permissions: readonly Scope[],
  owner: User | undefined,
  roles: DefinedRoles | undefined,
): ReadonlySet<Scope> {
  const wanted = permissions.includes('admin') ? SCOPES : permissions;
  const allowed = owner === undefined ? SCOPES : scopesOfUser(owner, roles);
  return new Set(wanted.filter((scope) => allowed.includes(scope)));
}

/** The rights that the path of an audience opens: the name after `/mcp/` is that of a template or of a view. */
function openedBy(audience: ResourcePath): RightsLists {
  if (!audience.startsWith('/mcp/')) return {};
  const names = [audience.slice('/mcp/'.length)];
  return { templates: names, views: names };
}

function principal(
  identity: Pick<Principal, 'id' | 'kind' | 'name' | 'userId'>,
  scopes: ReadonlySet<Scope>,
  rights: Rights,
  hourlyLimit: number,
): Principal {
  return {
    ...identity,
    scopes,
    ...rights,
    ...(scopes.has('admin') ? {} : { hourlyLimit }),
  };
}

/** The part of an account that decides how long its sessions may stay open, whatever credentials opened them. */
export interface AccountStatus {
  /** The user, or the owner of the key. */
  readonly userId?: string;
  /** Changes with the permissions and with the credentials of the account. */
  readonly stamp: string;
  /** The expiry of a key, in ms since 1970; infinite for users, since a user can log in again. */
  readonly endsAtMs: number;
}

/**
 * The status of a user, or of a key with its owner, whose permissions limit it. A change of password, role or activity changes
 * `credentialsChangedAt`.
 */
export function statusOf(
  owner: User | undefined,
  key?: Pick<ApiKey, 'expiresAt' | keyof RightsLists>,
  grant?: Pick<Grant, 'expiresAt'>,
): AccountStatus {
  const expiresAt = grant?.expiresAt ?? key?.expiresAt;
  const endsAtMs = expiresAt === undefined ? Number.POSITIVE_INFINITY : Date.parse(expiresAt);
  const ofKey = key && isRestricted(key) ? [key.templates, key.views, key.tools] : undefined;
  if (owner === undefined) return { stamp: ofKey === undefined ? '' : digestOf(ofKey), endsAtMs };
  const { id: userId, credentialsChangedAt, scopes, templates, views, tools } = owner;
  return {
    userId,
    stamp: digestOf([credentialsChangedAt, scopes, templates, views, tools, ofKey]),
    endsAtMs,
  };
}

/** Lists are long, and thousands of stamps are kept. */
function digestOf(value: unknown): string {
  return hash('sha256', JSON.stringify(value), 'base64url');
}

/** False for a user that was deleted or disabled. */
export function isActive(user: User | undefined): user is User {
  return user?.isActive === true;
}
