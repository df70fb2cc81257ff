// The connection of an account at a backend that wants OAuth. It belongs to a user, or is shared by all callers. Source: ADR 218.

/** The owner of a connection that all callers use; any other owner is the id of a user. */
export const SHARED = 'shared';

/** The way in which callers reach a backend that wants OAuth. An instance without it does not use the vault. */
export interface InstanceAuth {
  /** The owners of the accounts. `user`: each user has one; `shared`: all callers use one. */
  readonly who: 'user' | 'shared';
  /** The id of the gateway as a client of the authorization server. Default: it registers itself, or shows its document. */
  readonly clientId?: string;
  readonly clientSecret?: string;
  /** The scopes to ask for. Default: those that the backend asks for. */
  readonly scopes?: readonly string[];
}

/**
 * The way in which the authorization server knows the gateway: by an id that an admin gave, its document, or a
 * registration that it made.
 */
export type WayToBeKnown = 'given' | 'document' | 'registration';

/**
 * The reason why there is no token. `none`: never connected; `ended`: the account has to be connected again;
 * `scopes`: the same, with more scopes.
 */
export type WhyNotConnected = 'none' | 'ended' | 'scopes';

/** The account that has to be connected before a call can be made. */
export interface ConnectionNeed {
  readonly template: string;
  readonly instanceId: string;
  readonly who: InstanceAuth['who'];
  readonly why: WhyNotConnected;
  /** The address at which this caller connects it. Absent: unknown, or the caller may not connect it. */
  readonly url?: string | undefined;
}

/** A connection, without its tokens. */
export interface AccountConnection {
  /** The id for people and programs: it names the connection without its owner. */
  readonly id: string;
  /** The owner: SHARED, or the id of a user. */
  readonly owner: string;
  readonly issuer: string;
  /** The URL of the resource that its tokens are for. They are sent to the origin of this URL only. */
  readonly resource: string;
  readonly scopes: readonly string[];
  readonly state: 'connected' | 'ended';
  /** The reason why it has to be connected again, as a clause; null while that is not needed. */
  readonly reason: string | null;
  /** ISO 8601, as all times here. */
  readonly connectedAt: string;
  /** The time at which the access token expires; null: never. */
  readonly expiresAt: string | null;
}

/** A change of a connection, on this node, or seen by it. */
export interface ConnectionChange {
  readonly type: 'connected' | 'disconnected' | 'refresh-failed';
  readonly owner: string;
  readonly issuer: string;
  readonly resource: string;
  /** A clause. */
  readonly reason?: string;
}

/** True for the endpoint, and for a parent path of it: another resource is another server. */
export function isResourceOf(resource: string, endpoint: string): boolean {
  const [resourceUrl, own] = [URL.parse(resource), URL.parse(endpoint)];
  if (resourceUrl === null || own === null || resourceUrl.origin !== own.origin) return false;
  const path = resourceUrl.pathname.replace(/\/$/, '');
  const isParent =
    own.pathname === resourceUrl.pathname || own.pathname === path || own.pathname.startsWith(`${path}/`);
  return isParent && (resourceUrl.search === '' || resourceUrl.search === own.search);
}
