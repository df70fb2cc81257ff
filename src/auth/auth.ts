// What the rest of the program sees of authentication: one handle, made by create-auth.ts. Types only.
// HTTP asks it who is calling; which scope a route needs is the route's business.

import type { Observable } from 'rxjs';
import type { ApiKey, AuditEntry, Principal, Role, Scope, User } from '../domain/account.ts';

export interface Auth {
  /** False: every caller is the anonymous admin. Accounts can be managed all the same. */
  readonly isEnabled: boolean;
  readonly accounts: Accounts;
  readonly audit: Audit;
  readonly limiter: RateLimiter;
  /**
   * Who these credentials belong to. Without a promise when they were verified before: this is the hot path.
   * AUTHENTICATION_REQUIRED, INVALID_CREDENTIALS, TOKEN_EXPIRED; DATABASE_UNAVAILABLE for those who were not verified
   * before the database went away.
   */
  authenticate(credentials: Credentials): Principal | Promise<Principal>;
  /**
   * Hot: the id of a principal who may not do any more what they were let in for, or perhaps not: a key was revoked, a
   * user was changed or deleted. At once what happened on this node; what happened on others, and that a key has expired,
   * only of those who are looked after. Completes with `close`.
   */
  readonly changed$: Observable<string>;
  /**
   * Has those looked after who have something open, whom `open` names by the ids of their principals: every 2 s, and
   * when the accounts changed. The store is asked about them only when it may have news. Nothing while it is off.
   */
  lookAfter(open: () => Iterable<string>): void;
  /** INVALID_CREDENTIALS in the same time for an unknown user and a wrong password; TOO_MANY_ATTEMPTS. */
  login(attempt: LoginAttempt): Promise<IssuedToken>;
  /** Writes what is not written yet and lets go of Redis; bounded in time. */
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

/** Users and keys as admins manage them. Every change is in force on this node when its promise resolves. */
export interface Accounts {
  users(): Promise<User[]>;
  /** USER_NOT_FOUND. */
  user(id: string): Promise<User>;
  /** VALIDATION_ERROR for a bad password, DUPLICATE_USERNAME. */
  createUser(input: NewUser): Promise<User>;
  /** USER_NOT_FOUND, LAST_ADMIN, VALIDATION_ERROR. A new password, or losing the role or the account, voids all tokens. */
  changeUser(id: string, change: UserUpdate): Promise<User>;
  /** Also deletes the user's keys. USER_NOT_FOUND, LAST_ADMIN. */
  deleteUser(id: string): Promise<void>;
  apiKeys(): Promise<ApiKeyView[]>;
  /** The only moment at which the key itself is known. */
  createApiKey(input: NewApiKey): Promise<{ readonly apiKey: ApiKeyView; readonly key: string }>;
  /** API_KEY_NOT_FOUND. */
  revokeApiKey(id: string): Promise<void>;
}

export interface NewUser {
  readonly username: string;
  readonly email: string;
  readonly password: string;
  readonly role: Role;
  readonly templates?: readonly string[] | undefined;
}

/** A field that is there replaces; `templates: null` lifts the restriction. */
export interface UserUpdate {
  readonly email?: string | undefined;
  readonly password?: string | undefined;
  readonly role?: Role | undefined;
  readonly templates?: readonly string[] | null | undefined;
  readonly isActive?: boolean | undefined;
}

export interface NewApiKey {
  readonly name: string;
  readonly permissions: readonly Scope[];
  readonly templates?: readonly string[] | undefined;
  /** ISO 8601 with an offset or `Z`, in the future. */
  readonly expiresAt?: string | undefined;
  /** The user who makes it; absent when the operator does, without an account. */
  readonly ownerId?: string | undefined;
}

/** A key with what is true of it now. */
export interface ApiKeyView {
  readonly apiKey: ApiKey;
  /** False when it has expired or its owner is gone or disabled. */
  readonly isActive: boolean;
  /** Name of the owner; null when the operator made it. */
  readonly createdBy: string | null;
}

/** Who did what. Recording never fails a request and never waits: entries are written in batches. */
export interface Audit {
  record(entry: Omit<AuditEntry, 'id' | 'at'>): void;
  /** Newest first; what was recorded before is in it. */
  list(page: { readonly limit: number; readonly before?: string | undefined }): Promise<AuditEntry[]>;
}

export interface RateLimiter {
  /**
   * Counts a request, or `count` of them at once, of a principal that has an `hourlyLimit`; without a promise when this
   * process counts for itself. When counting fails the request is allowed. What is one too many has been counted, too.
   */
  take(principal: Principal, count?: number): RateLimit | Promise<RateLimit>;
  /**
   * The window as it is, for what is free; one in which nothing was counted would begin now. Undefined without a limit,
   * and when this process does not count for itself: nobody is to wait for it.
   */
  look(principal: Principal): RateLimit | undefined;
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
