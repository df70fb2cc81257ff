// The principal of a verified request: its rights, its id, and whose user it counts for.

import { type ResourcePath, SCOPES, type Scope } from './account.ts';
import type { Rights } from './rights.ts';

/** The verified caller of a request; shared by all requests with the same credentials. */
export interface Principal extends Rights {
  /**
   * `anonymous`, `user:<id>`, `key:<id>`, of an access token `grant:<id>@<user>`, of a token of another issuer `issuer:<hash>`,
   * which is also the `<user>` of its subject's grants. Limits count for `countedIdOf(id)`.
   */
  readonly id: string;
  readonly kind: 'anonymous' | 'user' | 'api-key';
  /** The name for people and the audit log: the user name, or the name of the key. */
  readonly name: string;
  /** The user, or the owner of the key. */
  readonly userId?: string;
  readonly scopes: ReadonlySet<Scope>;
  /** Requests per hour; absent = no limit. */
  readonly hourlyLimit?: number;
  /** The MCP client that acts for the user, when the caller has an access token. */
  readonly client?: ClientOfUser;
}

interface ClientOfUser {
  /** The name for people; the client has chosen it. */
  readonly name: string;
  /** `countedIdOf` the principal of the client, made once. */
  readonly countedId: string;
  /** The resource for which the token works: see domain/accounts/resource.ts. */
  readonly audience: ResourcePath;
  /** The scopes that another sign-in could get: the account has them, and the client may ask for them. */
  readonly obtainable: ReadonlySet<Scope>;
}

const USER = 'user:';
const KEY = 'key:';
const GRANT = 'grant:';

export function userPrincipalId(userId: string): string {
  return `${USER}${userId}`;
}

/** The id of the principal of an API key. */
export function keyPrincipalId(keyId: string): string {
  return `${KEY}${keyId}`;
}

/** The ids of the users among these principals, without duplicates; an access token is not its user. */
export function userIdsOf(principalIds: readonly string[]): readonly string[] {
  return idsBehind(USER, principalIds);
}

/** The ids of the API keys among these principals, without duplicates. */
export function keyIdsOf(principalIds: readonly string[]): readonly string[] {
  return idsBehind(KEY, principalIds);
}

function idsBehind(kind: string, principalIds: readonly string[]): readonly string[] {
  return [...new Set(principalIds.flatMap((id) => (id.startsWith(kind) ? id.slice(kind.length) : [])))];
}

/** True for a user, an API key and an access token: a stored row says whether it may still authenticate. */
export function isStoredPrincipal(principalId: string): boolean {
  return [USER, KEY, GRANT].some((kind) => principalId.startsWith(kind));
}

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

/** The id of the principal of a subject of another issuer. `hash`: of the issuer and the subject. */
export function issuerPrincipalId(hash: string): string {
  return `${ISSUER}${hash}`;
}

/** True for a caller that another issuer vouches for: it has no account here. */
export function isOfIssuer(principalId: string): boolean {
  return countedIdOf(principalId).startsWith(ISSUER);
}

/**
 * The id for which the limits and shares of a principal count: of the user of an access token, so that several
 * clients get no more than one; else its own.
 */
export function countedIdOf(principalId: string): string {
  if (!principalId.startsWith(GRANT)) return principalId;
  const user = principalId.slice(principalId.lastIndexOf('@') + 1);
  return user.startsWith(ISSUER) ? user : userPrincipalId(user);
}

/** True for principals whose limits and shares count together. */
export function isOfSameUser(principalId: string, otherId: string): boolean {
  return principalId === otherId || countedIdOf(principalId) === countedIdOf(otherId);
}

/** `countedIdOf` a principal, without making it for each request. */
export function countedIdOfCaller({ id, client }: Pick<Principal, 'id' | 'client'>): string {
  return client?.countedId ?? id;
}

/**
 * The user who has signed in, by an MCP client or not; undefined for every other caller: an API key has no
 * accounts of its own.
 */
export function userIdIn(principalId: string): string | undefined {
  const countedId = countedIdOf(principalId);
  return countedId.startsWith(USER) ? countedId.slice(USER.length) : undefined;
}

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
