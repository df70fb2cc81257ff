// The connection of an account at a backend that wants OAuth. It belongs to a user, or is shared by all callers. Source: ADR 218.

/** The owner of a connection that all callers use; any other owner is the id of a user. */
export const SHARED = 'shared';

/** How callers reach a backend that wants OAuth; an instance without it has nothing to do with the vault. */
export interface InstanceAuth {
  /** `user`: each user with an own account; `shared`: all with one. */
  readonly who: 'user' | 'shared';
  /** The gateway as a client of the authorization server. Default: it registers itself, or shows its document. */
  readonly clientId?: string;
  readonly clientSecret?: string;
  /** Default: what the backend asks for. */
  readonly scopes?: readonly string[];
}

/** How the authorization server knows the gateway: by an id that an admin gave, its document, or a registration that it made. */
export type WayToBeKnown = 'given' | 'document' | 'registration';

/** Why there is no token. `none`: never connected; `ended`: the account has to be connected again; `scopes`: with more scopes. */
export type WhyNotConnected = 'none' | 'ended' | 'scopes';

/** What has to be connected before a call can be made. */
export interface ConnectionNeed {
  readonly template: string;
  readonly instanceId: string;
  readonly who: InstanceAuth['who'];
  readonly why: WhyNotConnected;
  /** Where this caller connects it. Absent: unknown, or it may not. */
  readonly url?: string | undefined;
}

/** A connection, without its tokens. */
export interface AccountConnection {
  /** For people and programs: names it without saying whose it is. */
  readonly id: string;
  /** SHARED, or the id of a user. */
  readonly owner: string;
  readonly issuer: string;
  /** The URL of what its tokens are for. They are sent to its origin only. */
  readonly resource: string;
  readonly scopes: readonly string[];
  readonly state: 'connected' | 'ended';
  /** Why it has to be connected again, as a clause; null while it need not. */
  readonly reason: string | null;
  /** ISO 8601, as all times here. */
  readonly connectedAt: string;
  /** When the access token expires; null: never. */
  readonly expiresAt: string | null;
}

/** Something happened to a connection, on this node. */
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
