// The interface of authentication: one handle, made by create-auth.ts. Types only. HTTP asks it for the principal of a
// request; each route names the scope that it needs.

import type { Observable } from 'rxjs';
import type { Principal, User } from '../domain/account.ts';
import type { AuditEntry, AuditedCall, AuditFilter } from '../domain/audit.ts';
import type { JsonFields } from '../domain/json.ts';
import type { Accounts } from './accounts.ts';

export interface Auth {
  /** False: every caller is the anonymous admin. Accounts can be managed all the same. */
  readonly isEnabled: boolean;
  readonly accounts: Accounts;
  readonly audit: Audit;
  readonly limiter: RateLimiter;
  /**
   * The principal of these credentials. Without a promise when they were verified before: this is the hot path.
   * AUTHENTICATION_REQUIRED, INVALID_CREDENTIALS, TOKEN_EXPIRED; DATABASE_UNAVAILABLE for credentials that were not
   * verified before the database went away.
   */
  authenticate(credentials: Credentials): Principal | Promise<Principal>;
  /**
   * Hot: the id of a principal that lost its rights, or may have lost some: a key was revoked, a user was changed or
   * deleted. Changes on this node at once; changes on other nodes and expired keys only for principals that
   * `watchSessions` names. Completes with `close`.
   */
  readonly changed$: Observable<string>;
  /**
   * Checks the principals that have sessions or streams open; `open` names them by id: every 2 s, and when the accounts
   * changed. The store is asked only about entries that are stale. Does nothing while authentication is off.
   */
  watchSessions(open: () => Iterable<string>): void;
  /** INVALID_CREDENTIALS in the same time for an unknown user and a wrong password; TOO_MANY_ATTEMPTS. */
  login(attempt: LoginAttempt): Promise<IssuedToken>;
  /**
   * Ends the token among verified credentials: refused here at once, by other nodes within 10 s. An API key stays valid.
   * DATABASE_UNAVAILABLE.
   */
  logout(credentials: Credentials): Promise<void>;
  /** Writes all buffered entries and closes the connection to Redis; bounded in time. */
  close(): Promise<void>;
}

/** The two headers as they came; absent when the request has none. */
export interface Credentials {
  /** `Authorization`, the scheme included. */
  readonly authorization?: string | undefined;
  /** `X-API-Key`. */
  readonly apiKey?: string | undefined;
}

export interface LoginAttempt {
  readonly username: string;
  readonly password: string;
  /** Of the client; failures are counted by it. */
  readonly address: string;
}

export interface IssuedToken {
  readonly accessToken: string;
  readonly expiresInSeconds: number;
  readonly user: User;
}

/** The log of changes and calls. Recording never fails a request and never waits: entries are written in batches. */
export interface Audit {
  /** A change, or a login. */
  record(entry: Omit<AuditEntry, 'id' | 'at'>): void;
  /** False: calls are not recorded, and `recordCall` does nothing. */
  readonly recordsCalls: boolean;
  /** A call and its arguments, of which a digest is made after this turn of the event loop. */
  recordCall(entry: NewCall, callArguments: JsonFields[string]): void;
  /** Newest first, with all entries recorded before. */
  list(query: AuditQuery): Promise<AuditEntry[]>;
}

export type NewCall = Omit<AuditEntry, 'id' | 'at' | 'call' | 'action'> & {
  readonly call: Omit<AuditedCall, 'digest' | 'arguments'>;
};

export interface AuditQuery extends AuditFilter {
  readonly limit: number;
  /** Id of the last entry of the page before. */
  readonly before?: string | undefined;
  /** Ms since 1970: entries of this time or later. */
  readonly fromMs?: number | undefined;
  /** Entries before this time. */
  readonly toMs?: number | undefined;
}

export interface RateLimiter {
  /**
   * Counts a request, or `count` of them at once, of a principal that has an `hourlyLimit`; without a promise when this
   * process counts for itself. When counting fails the request is allowed. A refused request is not counted.
   */
  take(principal: Principal, count?: number): RateLimit | Promise<RateLimit>;
  /**
   * The present window, without counting; an empty window would begin now. Undefined without a limit, and when Redis
   * counts: this method has no promise.
   */
  peek(principal: Principal): RateLimit | undefined;
}

/** The window of one principal, after what was counted. */
export interface RateLimit {
  readonly limit: number;
  readonly remaining: number;
  /** Unix time at which the window ends, in seconds. */
  readonly resetAtSeconds: number;
  /** Set when this request is one too many. */
  readonly retryAfterSeconds?: number;
}
