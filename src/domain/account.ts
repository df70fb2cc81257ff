// The accounts of a gateway: users, API keys, roles and scopes, and the principal of a verified request. src/auth verifies
// them, src/persistence stores them.

import { definedFields } from './json.ts';
import { LIMITS } from './limits.ts';
import { isCleanText, NOT_UNICODE } from './text.ts';

/** Permission scopes. Source: ADR 20. */
export const SCOPES = ['gateway:read', 'gateway:write', 'tools:call', 'admin'] as const;
export type Scope = (typeof SCOPES)[number];

export const ROLES = ['admin', 'user'] as const;
export type Role = (typeof ROLES)[number];

/** What each role may do. Source: ADR 20. */
export const ROLE_SCOPES: Readonly<Record<Role, readonly Scope[]>> = {
  admin: SCOPES,
  user: ['gateway:read', 'tools:call'],
};

export interface User {
  /** UUID. */
  readonly id: string;
  readonly username: string;
  readonly email: string;
  readonly role: Role;
  /** Absent: all of the role. */
  readonly scopes?: readonly Scope[];
  /** Absent: all. */
  readonly templates?: readonly string[];
  readonly isActive: boolean;
  /** Bcrypt, or NO_PASSWORD; never leaves the process. */
  readonly passwordHash: string;
  /** ISO 8601; tokens that were issued before are invalid. */
  readonly credentialsChangedAt: string;
  readonly createdAt: string;
  readonly updatedAt: string;
}

/** In place of a hash: a user who signs in at an identity provider only. */
export const NO_PASSWORD = '!';

/** A token that a logout ended before it expired. */
export interface EndedToken {
  /** Claim `jti`. */
  readonly id: string;
  /** Ms since 1970. */
  readonly expiresAtMs: number;
}

/** Most ended tokens of one user that are remembered. */
const MAX_ENDED = 100;

/**
 * The ended tokens of a user with `token` added; undefined if that makes too many. Expired ones are dropped only to make room: a
 * wrong clock may take a token for expired that is valid again once the clock is right.
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

/** What a user may do: the scopes of the role, within those of the account. */
export function scopesOfUser({ role, scopes }: Pick<User, 'role' | 'scopes'>): readonly Scope[] {
  return scopes === undefined
    ? ROLE_SCOPES[role]
    : ROLE_SCOPES[role].filter((scope) => scopes.includes(scope));
}

/** True for an active admin who may manage accounts, which needs all scopes and templates; the last one cannot be removed. */
export function isActiveAdmin({ role, isActive, scopes, templates }: User): boolean {
  return role === 'admin' && isActive && scopes === undefined && templates === undefined;
}

/** A change of a user: a defined field replaces the old one. `scopes: null` and `templates: null` remove the restriction. */
export interface UserChange {
  readonly email?: string | undefined;
  readonly role?: Role | undefined;
  readonly scopes?: readonly Scope[] | null | undefined;
  readonly templates?: readonly string[] | null | undefined;
  readonly isActive?: boolean | undefined;
  readonly passwordHash?: string | undefined;
  /** Default: `updatedAt` if the password, the role or the activity changes. */
  readonly credentialsChangedAt?: string | undefined;
  readonly updatedAt: string;
}

/** An API key as stored, without its secret. */
export interface ApiKey {
  /** The public part of the key: 16 lower-case hexadecimal digits. */
  readonly id: string;
  readonly name: string;
  /** At least one; restricted by the present role of the owner. */
  readonly permissions: readonly Scope[];
  readonly templates?: readonly string[];
  /** ISO 8601; absent = never. */
  readonly expiresAt?: string;
  /** Id of the user who created it; absent for the operator without an account. The key is deleted with its owner. */
  readonly ownerId?: string;
  /** SHA-256 of the secret part, hexadecimal. */
  readonly secretHash: string;
  readonly createdAt: string;
  readonly lastUsedAt?: string;
}

/** The scopes that any client may get. The others are for clients that an admin has added with them. */
export const CLIENT_SCOPES: readonly Scope[] = ['tools:call', 'gateway:read'];

/** The path of a resource: `''` for the whole gateway, `/mcp` for all templates as one server, `/mcp/{template}`. */
export type ResourcePath = '' | '/mcp' | `/mcp/${string}`;

/** The verified caller of a request; shared by all requests with the same credentials. */
export interface Principal {
  /** `anonymous`, `user:<id>`, `key:<id>`, of an access token `grant:<id>@<user>`, of a token of another issuer `issuer:<hash>`, which is also the `<user>` of its subject's grants. Limits are counted by `holderOf` it. */
  readonly id: string;
  readonly kind: 'anonymous' | 'user' | 'api-key';
  /** For people and the audit log: the user name, or the name of the key. */
  readonly name: string;
  /** The user, or the owner of the key. */
  readonly userId?: string;
  readonly scopes: ReadonlySet<Scope>;
  /** Absent = all. */
  readonly templates?: ReadonlySet<string>;
  /** Requests per hour; absent = no limit. */
  readonly hourlyLimit?: number;
  /** Of an access token: the MCP client that acts for the user. */
  readonly client?: ClientOfUser;
}

interface ClientOfUser {
  /** For people; the client has chosen it. */
  readonly name: string;
  /** `holderOf` its principal, made once. */
  readonly holderId: string;
  /** Where its token works: see domain/resource.ts. */
  readonly audience: ResourcePath;
  /** What another sign-in could get: the account has it, and the client may ask for it. */
  readonly obtainable: ReadonlySet<Scope>;
}

const GRANT = 'grant:';

/** The id of the principal of an access token. It names the user, so that what is counted by user needs no look-up. */
export function grantPrincipalId(grantId: string, userId: string): string {
  return `${GRANT}${grantId}@${userId}`;
}

/** The grant of such an id; undefined for an id of another kind. */
export function grantIdIn(principalId: string): string | undefined {
  return principalId.startsWith(GRANT)
    ? principalId.slice(GRANT.length, principalId.lastIndexOf('@'))
    : undefined;
}

const ISSUER = 'issuer:';

/** The id of the principal of a subject of another issuer. `hash`: of both. */
export function issuerPrincipalId(hash: string): string {
  return `${ISSUER}${hash}`;
}

/** True for a caller that another issuer vouches for: it has no account here. */
export function isOfIssuer(principalId: string): boolean {
  return holderOf(principalId).startsWith(ISSUER);
}

/** Whose limits and shares count for a principal: the user of an access token, so that several clients get no more than one; else itself. */
export function holderOf(principalId: string): string {
  if (!principalId.startsWith(GRANT)) return principalId;
  const user = principalId.slice(principalId.lastIndexOf('@') + 1);
  return user.startsWith(ISSUER) ? user : `user:${user}`;
}

/** The user who has signed in, by an MCP client or not; undefined for every other caller: an API key has no accounts of its own. */
export function userIdIn(principalId: string): string | undefined {
  const holder = holderOf(principalId);
  return holder.startsWith(USER) ? holder.slice(USER.length) : undefined;
}

const USER = 'user:';

/** The name of a principal for people and the audit log: with its client, if it has one. */
export function nameOf({ name, client }: Pick<Principal, 'name' | 'client'>): string {
  return client === undefined ? name : nameWithClient(name, client.name);
}

export function nameWithClient(username: string, clientName: string): string {
  return `${username} via ${clientName}`;
}

/** Every caller while authentication is off. */
export const ANONYMOUS: Principal = {
  id: 'anonymous',
  kind: 'anonymous',
  name: 'anonymous',
  scopes: new Set(SCOPES),
};

/** The caller of a route without authentication: it has no scope and no template. */
export const NO_PRINCIPAL: Principal = {
  id: 'nobody',
  kind: 'anonymous',
  name: 'nobody',
  scopes: new Set(),
  templates: new Set(),
};

/** True when the principal has one of the scopes; `admin` implies the others. */
export function mayDo({ scopes }: Principal, anyOf: readonly Scope[]): boolean {
  return scopes.has('admin') || anyOf.some((scope) => scopes.has(scope));
}

/** True when the principal may use the template; for others the template does not exist. */
export function mayUse({ templates }: Pick<Principal, 'templates'>, template: string): boolean {
  return templates === undefined || templates.has(template);
}

/**
 * The user after a change; each store calls it inside its transaction. `templates: null` removes the restriction. Two changes
 * of credentials never have the same time, not even on two nodes, because a token is valid for one `credentialsChangedAt`.
 */
export function withChange(
  user: User,
  { scopes, templates, credentialsChangedAt, ...change }: UserChange,
): User {
  const { scopes: scopesBefore, templates: before, ...rest } = user;
  const { passwordHash, role = user.role, isActive = user.isActive, updatedAt } = change;
  const isVoid = passwordHash !== undefined || role !== user.role || isActive !== user.isActive;
  const changedAt = credentialsChangedAt ?? (isVoid ? updatedAt : undefined);
  const fields = definedFields({
    ...change,
    credentialsChangedAt: changedAt && laterThan(user.credentialsChangedAt, changedAt),
    scopes: scopes === undefined ? scopesBefore : (scopes ?? undefined),
    templates: templates === undefined ? before : (templates ?? undefined),
  });
  return { ...rest, ...fields };
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
