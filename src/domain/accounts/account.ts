// The accounts of a gateway: users, API keys, roles and scopes. src/auth verifies them, src/persistence stores them.

import { definedFields } from '../json/json.ts';
import { LIMITS } from '../limits.ts';
import { isCleanText, NOT_UNICODE } from '../text.ts';
import { isRestricted, type RightsLists } from './rights.ts';

/** The permission scopes. Source: ADR 20. */
export const SCOPES = ['gateway:read', 'gateway:write', 'tools:call', 'admin'] as const;
export type Scope = (typeof SCOPES)[number];

/** True for the name of a scope. */
export function isScope(text: string): text is Scope {
  return SCOPES.some((scope) => scope === text);
}

/** The roles that no setting defines. */
export const ROLES = ['admin', 'user'] as const;
/** One of `ROLES`, or a role that the setting `roles` defines or did define. */
export type Role = string;

export function isBuiltIn(role: Role): role is (typeof ROLES)[number] {
  return ROLES.some((each) => each === role);
}

/** The form of the name of a user. */
export const USERNAME_PATTERN = '^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$';

/** The names of defined roles, with the built-in ones. */
export const ROLE_PATTERN = '^[a-z][a-z0-9-]{0,30}$';

/** The scopes and lists that a role gives at most. */
export interface RoleRights extends RightsLists {
  readonly scopes: readonly Scope[];
}

/** The roles of the settings, by name. */
export type DefinedRoles = Readonly<Record<string, RoleRights>>;

/** The rights of a role; none for one that is not defined any more. */
export function roleRights(role: Role, defined?: DefinedRoles): RoleRights {
  if (isBuiltIn(role)) return { scopes: ROLE_SCOPES[role] };
  return (defined !== undefined && Object.hasOwn(defined, role) && defined[role]) || NO_RIGHTS;
}

const NO_RIGHTS: RoleRights = { scopes: [], templates: [], views: [], tools: [] };

/** The scopes of each role. Source: ADR 20. */
export const ROLE_SCOPES: Readonly<Record<(typeof ROLES)[number], readonly Scope[]>> = {
  admin: SCOPES,
  user: ['gateway:read', 'tools:call'],
};

export interface User extends RightsLists {
  /** A UUID. */
  readonly id: string;
  readonly username: string;
  readonly email: string;
  readonly role: Role;
  /** The scopes of this user only. Absent: all scopes of the role. */
  readonly scopes?: readonly Scope[];
  readonly isActive: boolean;
  /** A hash of bcrypt, or NO_PASSWORD; never leaves the process. */
  readonly passwordHash: string;
  /** ISO 8601; tokens that were issued before are invalid. */
  readonly credentialsChangedAt: string;
  readonly createdAt: string;
  readonly updatedAt: string;
}

/** The text in place of a password hash for a user who signs in at an identity provider only. */
export const NO_PASSWORD = '!';

/** How a user signed in: with a password here, or at an identity provider. */
export type SignedInBy = 'password' | 'provider';

/** A token that a logout ended before it expired. */
export interface EndedToken {
  /** Claim `jti`. */
  readonly id: string;
  /** Ms since 1970. */
  readonly expiresAtMs: number;
}

/** The most ended tokens of one user that are remembered. */
const MAX_ENDED = 100;

/**
 * The ended tokens of a user with `token` added; undefined if that makes too many. Expired ones are dropped only to make room: a
 * wrong clock may take a token for expired that is valid again once the clock is right. `nowMs`: 0 where it is in doubt.
 */
export function withEndedToken(
  ended: readonly EndedToken[],
  token: EndedToken,
  nowMs: number,
): readonly EndedToken[] | undefined {
  const others = ended.filter(({ id }) => id !== token.id);
  const kept = others.length < MAX_ENDED ? others : others.filter(({ expiresAtMs }) => expiresAtMs > nowMs);
  return kept.length < MAX_ENDED ? [...kept, token] : undefined;
}

/** The form in which names are compared: `Ada` and `ada` are one user. */
export function usernameKey(username: string): string {
  return username.toLowerCase();
}

/** The scopes of a user: those of the role that the account may have. */
export function scopesOfUser(
  { role, scopes }: Pick<User, 'role' | 'scopes'>,
  defined?: DefinedRoles,
): readonly Scope[] {
  const own = roleRights(role, defined).scopes;
  return scopes === undefined ? own : own.filter((scope) => scopes.includes(scope));
}

/** True for an active admin who may manage accounts, which needs all scopes and rights; the last one cannot be removed. */
export function isActiveAdmin(user: User): boolean {
  return user.role === 'admin' && user.isActive && user.scopes === undefined && !isRestricted(user);
}

/** A change of a user: a defined field replaces the old one. Null in place of a list removes the restriction. */
export interface UserChange extends ChangedLists {
  readonly email?: string | undefined;
  readonly role?: Role | undefined;
  readonly scopes?: readonly Scope[] | null | undefined;
  readonly isActive?: boolean | undefined;
  readonly passwordHash?: string | undefined;
  /** The time of the last change of its credentials. Default: `updatedAt` if the password, the role or the activity changes. */
  readonly credentialsChangedAt?: string | undefined;
  readonly updatedAt: string;
}

type ChangedLists = { readonly [L in keyof RightsLists]: RightsLists[L] | null | undefined };

/** Lists of a change: a defined one replaces the old one, and null removes the restriction. */
export type ApiKeyChange = ChangedLists;

/** The fields by which a list of users, or of keys, is ordered. */
export type CreatedId = Pick<ApiKey, 'id' | 'createdAt'>;

/** An API key as stored, without its secret. */
export interface ApiKey extends RightsLists {
  /** The public part of the key: 16 lower-case hexadecimal digits. */
  readonly id: string;
  readonly name: string;
  /** The scopes of the key, at least one; restricted by the present role of the owner. */
  readonly permissions: readonly Scope[];
  /** ISO 8601; absent = never. */
  readonly expiresAt?: string;
  /** The id of the user who created it; absent for the operator without an account. The key is deleted with its owner. */
  readonly ownerId?: string;
  /** The SHA-256 of the secret part, hexadecimal. */
  readonly secretHash: string;
  readonly createdAt: string;
  readonly lastUsedAt?: string;
}

/** The scopes that any MCP client may get. Others write, and are for clients that an admin has added with them. */
export const CLIENT_SCOPES: readonly Scope[] = ['tools:call', 'gateway:read'];

/** The path of a resource: `''` for the whole gateway, `/mcp` for all templates as one server, `/mcp/{template}`. */
export type ResourcePath = '' | '/mcp' | `/mcp/${string}`;

/**
 * The user after a change; each store calls it inside its transaction. Two changes
 * of credentials never have the same time, not even on two nodes, because a token is valid for one `credentialsChangedAt`.
 */
export function withChange(user: User, change: UserChange): User {
  const { scopes, templates, views, tools, ...rest } = user;
  const {
    credentialsChangedAt,
    passwordHash,
    role = user.role,
    isActive = user.isActive,
    updatedAt,
  } = change;
  const isVoid = passwordHash !== undefined || role !== user.role || isActive !== user.isActive;
  const changedAt = credentialsChangedAt ?? (isVoid ? updatedAt : undefined);
  const lists = { scopes, templates, views, tools, ...definedFields(change) };
  const fields = definedFields({
    ...change,
    credentialsChangedAt: changedAt && laterThan(user.credentialsChangedAt, changedAt),
    scopes: lists.scopes ?? undefined,
    templates: lists.templates ?? undefined,
    views: lists.views ?? undefined,
    tools: lists.tools ?? undefined,
  });
  return { ...rest, ...fields };
}

/** The key after a change; each store calls it inside its transaction. */
export function withKeyChange(key: ApiKey, change: ApiKeyChange): ApiKey {
  const { templates, views, tools, ...rest } = key;
  const lists = { templates, views, tools, ...definedFields(change) };
  return {
    ...rest,
    ...definedFields({
      templates: lists.templates ?? undefined,
      views: lists.views ?? undefined,
      tools: lists.tools ?? undefined,
    }),
  };
}

/** The later time; at least 1 ms after `before`. Both are ISO 8601. */
function laterThan(before: string, wanted: string): string {
  return wanted > before ? wanted : new Date(Date.parse(before) + 1).toISOString();
}

/**
 * The rule that a new password breaks, if any: no NUL characters or lone surrogates, at most
 * LIMITS.passwordBytes of UTF-8, at least LIMITS.passwordCharacters characters. The password is not repeated. Source: ADR 16.
 */
export function passwordIssue(password: string): { readonly msg: string; readonly type: string } | undefined {
  const { passwordBytes, passwordCharacters } = LIMITS;
  if (!isCleanText(password)) return NOT_UNICODE;
  if (Buffer.byteLength(password) > passwordBytes)
    return { msg: `String should have at most ${passwordBytes} bytes`, type: 'string_too_long' };
  if ([...password].length >= passwordCharacters) return undefined;
  return { msg: `String should have at least ${passwordCharacters} characters`, type: 'string_too_short' };
}
