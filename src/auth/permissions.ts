// The Principal of a user or a key, and the status of its account: pure functions of stored records. tokens.ts and api-keys.ts check
// credentials; each route names the scope that it needs.

import type { Config } from '../config/config.ts';
import type { GroupRole } from '../config/issuer-settings.ts';
import {
  type ApiKey,
  CLIENT_SCOPES,
  grantPrincipalId,
  holderOf,
  type Principal,
  type ResourcePath,
  ROLE_SCOPES,
  SCOPES,
  type Scope,
  scopesOfUser,
  type User,
} from '../domain/account.ts';
import type { Grant } from '../domain/grant.ts';
import type { AccessClaims } from './access-tokens.ts';

export type HourlyLimits = Pick<Config, 'userHourlyLimit' | 'apiKeyHourlyLimit'>;

/** The principal of a user. Admins have no hourly limit. */
export function userPrincipal(user: User, { userHourlyLimit }: HourlyLimits): Principal {
  return principal(
    { id: `user:${user.id}`, kind: 'user', name: user.username, userId: user.id },
    new Set(scopesOfUser(user)),
    user.templates,
    userHourlyLimit,
  );
}

/**
 * The permissions and templates of the key that its owner also has now; all of them for a key of the
 * operator, which has no owner. No hourly limit with the scope `admin`.
 */
export function keyPrincipal(
  key: ApiKey,
  owner: User | undefined,
  { apiKeyHourlyLimit }: HourlyLimits,
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
    apiKeyHourlyLimit,
  );
}

/**
 * The rights of an access token: those in it that its grant and its user have now, for the templates of its audience. `CLIENT_SCOPES`
 * and those of the grant are all that another sign-in of this client could get.
 */
export function accessPrincipal(
  { grantId, audience, scopes }: Pick<AccessClaims, 'grantId' | 'audience' | 'scopes'>,
  grant: Pick<Grant, 'scopes' | 'clientName'>,
  user: User,
  { userHourlyLimit }: HourlyLimits,
): Principal {
  const own = audience.startsWith('/mcp/') ? [audience.slice('/mcp/'.length)] : undefined;
  const client = {
    name: grant.clientName,
    holderId: `user:${user.id}`,
    audience,
    obtainable: effectiveScopes([...CLIENT_SCOPES, ...grant.scopes], user),
  };
  const granted = effectiveScopes(grant.scopes, user);
  const both = [...effectiveScopes(scopes, user)].filter((scope) => granted.has(scope));
  const name = user.username;
  return {
    ...principal(
      { id: grantPrincipalId(grantId, user.id), kind: 'user', name, userId: user.id },
      new Set(both),
      commonTemplates(own, user.templates),
      userHourlyLimit,
    ),
    client,
  };
}

/** What a token of another issuer says, and the role of its groups. */
interface IssuedRights {
  readonly audience: ResourcePath;
  /** Those of this gateway that the token names; undefined: it does not limit the role. */
  readonly scopes: readonly Scope[] | undefined;
  readonly role: GroupRole;
  /** What the client could get with another token. Default: all of the role. */
  readonly obtainable?: readonly Scope[];
}

/** The rights of the role, limited by the token and its audience. */
export function issuedPrincipal(
  { id, name, clientName }: Pick<Principal, 'id' | 'name'> & { readonly clientName: string },
  { audience, scopes = SCOPES, role, obtainable = SCOPES }: IssuedRights,
  { userHourlyLimit }: HourlyLimits,
): Principal {
  const own = audience.startsWith('/mcp/') ? [audience.slice('/mcp/'.length)] : undefined;
  const within = (wanted: readonly Scope[]) =>
    scopesOfRole(role).filter((scope) => wanted.includes('admin') || wanted.includes(scope));
  return {
    ...principal(
      { id, kind: 'user', name },
      new Set(within(scopes)),
      commonTemplates(own, role.templates),
      userHourlyLimit,
    ),
    client: { name: clientName, holderId: holderOf(id), audience, obtainable: new Set(within(obtainable)) },
  };
}

export function scopesOfRole({ role, scopes }: GroupRole): readonly Scope[] {
  return scopes ?? ROLE_SCOPES[role];
}

/** `admin` is expanded before the intersection, so that the admin key of a demoted owner has the rights of its owner. */
function effectiveScopes(permissions: readonly Scope[], owner: User | undefined): ReadonlySet<Scope> {
  const wanted = permissions.includes('admin') ? SCOPES : permissions;
  const allowed = owner === undefined ? SCOPES : scopesOfUser(owner);
  return new Set(wanted.filter((scope) => allowed.includes(scope)));
}

/** The intersection; an absent list contains all templates. */
function commonTemplates(
  left: readonly string[] | undefined,
  right: readonly string[] | undefined,
): readonly string[] | undefined {
  if (left === undefined || right === undefined) return left ?? right;
  return left.filter((template) => right.includes(template));
}

function principal(
  identity: Pick<Principal, 'id' | 'kind' | 'name' | 'userId'>,
  scopes: ReadonlySet<Scope>,
  templates: readonly string[] | undefined,
  hourlyLimit: number,
): Principal {
  return {
    ...identity,
    scopes,
    ...(templates === undefined ? {} : { templates: new Set(templates) }),
    ...(scopes.has('admin') ? {} : { hourlyLimit }),
  };
}

/** The part of an account that decides how long its sessions may stay open, whatever credentials opened them. */
export interface AccountStatus {
  /** The user, or the owner of the key. */
  readonly userId?: string;
  /** Changes with the permissions and with the credentials of the account. */
  readonly stamp: string;
  /** Expiry of a key, in ms since 1970; infinite for users, who can log in again. */
  readonly endsAtMs: number;
}

/**
 * The status of a user, or of a key with its owner: a key never changes, but the permissions of its owner limit it. A change of
 * password, role or activity changes `credentialsChangedAt`.
 */
export function statusOf(
  owner: User | undefined,
  key?: Pick<ApiKey, 'expiresAt'>,
  grant?: Pick<Grant, 'expiresAt'>,
): AccountStatus {
  const expiresAt = grant?.expiresAt ?? key?.expiresAt;
  const endsAtMs = expiresAt === undefined ? Number.POSITIVE_INFINITY : Date.parse(expiresAt);
  if (owner === undefined) return { stamp: '', endsAtMs };
  const { id: userId, credentialsChangedAt, scopes, templates } = owner;
  const stamp = `${credentialsChangedAt} ${scopes?.join() ?? '*'} ${templates?.join() ?? '*'}`;
  return { userId, stamp, endsAtMs };
}

export function isActive(user: User | undefined): user is User {
  return user?.isActive === true;
}
