// The interface of authentication, which create-auth.ts implements. Types only. HTTP gets the principal of a request from it; each route
// names the scope that it needs.

import type { Observable } from 'rxjs';
import type { Principal, User } from '../domain/account.ts';
import type { AuditEntry, AuditedCall, AuditFilter } from '../domain/audit.ts';
import type { JsonFields } from '../domain/json.ts';
import type { Accounts } from './accounts.ts';

export interface Auth {
  /** False: every caller is the anonymous admin; accounts can be managed nevertheless. */
  readonly isEnabled: boolean;
  readonly accounts: Accounts;
  readonly audit: Audit;
  readonly limiter: RateLimiter;
  /**
   * The principal of these credentials; without a promise when they are cached, which is the hot path.
   * AUTHENTICATION_REQUIRED, INVALID_CREDENTIALS, TOKEN_EXPIRED; DATABASE_UNAVAILABLE for credentials that were not
   * verified before the database became unavailable.
   */
  authenticate(credentials: Credentials): Principal | Promise<Principal>;
  /**
   * Hot: the id of a principal that lost permissions, or may have lost some, because a key was revoked or a user was changed or
   * deleted. Changes on this node at once; changes on other nodes and expired keys only for the principals of `watchSessions`.
   * Completes with `close`.
   */
  readonly changed$: Observable<string>;
  /**
   * Checks the principals with open sessions or streams, whose ids `open` returns, every 2 s and when accounts changed. Only stale
   * entries are queried. Does nothing while authentication is off.
   */
  watchSessions(open: () => Iterable<string>): void;
  /** INVALID_CREDENTIALS in the same time for an unknown user and a wrong password; TOO_MANY_ATTEMPTS. */
  login(attempt: LoginAttempt): Promise<IssuedToken>;
  /**
   * Ends the token of verified credentials: here at once, on other nodes within 10 s. An API key stays valid.
   * DATABASE_UNAVAILABLE.
   */
  logout(credentials: Credentials): Promise<void>;
  /** Writes all buffered entries and closes the connection to Redis; bounded in time. */
  close(): Promise<void>;
}

/** The two headers as received. */
export interface Credentials {
  /** `Authorization`, the scheme included. */
  readonly authorization?: string | undefined;
  /** `X-API-Key`. */
  readonly apiKey?: string | undefined;
}

export interface LoginAttempt {
  readonly username: string;
  readonly password: string;
  /** Address of the client, by which failures are counted. */
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

export type NewCall = Omit<AuditEntry, 'id' | 'at' | 'action' | 'address' | 'call'> & {
  readonly address?: string | undefined;
  readonly call: Omit<AuditedCall, 'instance' | 'digest' | 'arguments'> & {
    readonly instance?: string | undefined;
  };
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
