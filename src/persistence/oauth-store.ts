// The store of the authorization server and of connections to backends.

/** The kinds of rows of the table `oauth`. */
export const OAUTH_KINDS = [
  'key',
  'client',
  'document',
  'grant',
  'interaction',
  'code',
  'device',
  'refresh',
  'assertion',
  'sign-in',
  'identity',
  'signing-in',
  'connection',
  'connecting',
  'visit',
  'backend',
  'own-client',
  'confirmation',
] as const;
export type OAuthKind = (typeof OAUTH_KINDS)[number];

/** One row of the authorization server, or of connections to backends: a client, a grant, a code, a signing key or the like. */
export interface OAuthRow {
  readonly kind: OAuthKind;
  /** The SHA-256 of kind and id, in hex: most ids are credentials. */
  readonly key: string;
  /** The grant to which the row belongs; of a grant its own id. All rows of a grant end with it. */
  readonly grantId?: string | undefined;
  readonly userId?: string | undefined;
  /** The SHA-256 of the id of the client, in hex: an id may be a long URL. */
  readonly clientKey?: string | undefined;
  /** ISO 8601, as all times here. */
  readonly createdAt: string;
  /** The time of the last use. Undefined: never. */
  readonly usedAt?: string | undefined;
  readonly consumedAt?: string | undefined;
  /** The time from which on a sweep deletes it. Undefined: never. */
  readonly expiresAt?: string | undefined;
  /** The version: 1 at first, and 1 more with each `save` and `replace`. The store counts it. */
  readonly version: number;
  /** The value as text. It is encrypted in the database where there is a cipher. */
  readonly value: string;
}

/** The rows that have all of these values. */
export interface OAuthFilter {
  readonly kind?: OAuthKind | undefined;
  /** The first digits of the key. */
  readonly keyPrefix?: string | undefined;
  readonly grantId?: string | undefined;
  /** Null: only rows that belong to no user. */
  readonly userId?: string | null | undefined;
  readonly clientKey?: string | undefined;
  /** False: only rows without `usedAt`. */
  readonly isUsed?: false | undefined;
}

/** The most keys that one operation of an OAuthStore deletes, and most rows that a sweep does: databases limit the values in a list. */
export const MAX_OAUTH_ROWS = 500;

/**
 * The authorization server and connections. A row that has expired is returned until a sweep deletes it. On a file only `replace`
 * and `end` wait for the disk, as in SessionStore. Only `end` changes the revision: access tokens of a grant that has ended are
 * verified again.
 */
export interface OAuthStore {
  /** The rows of these keys, any number of them, without those that do not exist or cannot be decrypted. */
  find(kind: OAuthKind, keys: readonly string[]): Promise<OAuthRow[]>;
  /** The rows that the filter selects, newest first. */
  list(filter: OAuthFilter, limit: number): Promise<OAuthRow[]>;
  count(filter: OAuthFilter): Promise<number>;
  /** Inserts or replaces by kind and key. A row that was consumed stays so. */
  save(row: Omit<OAuthRow, 'version'>): Promise<void>;
  /** Replaces the row that still has this version; 0: inserts it if there is none. False when nothing was changed. */
  replace(row: Omit<OAuthRow, 'version'>, version: number): Promise<boolean>;
  /** True once, for one caller on all nodes. False when there is no such row, or it was consumed before. */
  consume(kind: OAuthKind, key: string, at: string): Promise<boolean>;
  /** Sets `usedAt` by key; unknown keys are ignored. */
  touch(kind: OAuthKind, usedAt: ReadonlyMap<string, string>): Promise<void>;
  /** Resolves with the number of deleted rows. `version`: only in this version. */
  delete(kind: OAuthKind, keys: readonly string[], version?: number): Promise<number>;
  /** The oldest rows that the filter selects, the oldest first, without their values: also those that cannot be decrypted. */
  oldest(filter: OAuthFilter, limit: number): Promise<Pick<OAuthRow, 'key' | 'createdAt'>[]>;
  /** Deletes all rows of a grant, a user or a client. False when there was none. */
  end(
    filter: Pick<OAuthRow, 'grantId' | 'userId' | 'clientKey'> & Pick<OAuthFilter, 'kind'>,
  ): Promise<boolean>;
  /** Deletes rows whose `expiresAt` is not later. Resolves with their number, at most MAX_OAUTH_ROWS: 0 when it is done. */
  sweep(now: string): Promise<number>;
}
