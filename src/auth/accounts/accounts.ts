// Manages users and API keys: hashes and stores them, and notifies the authenticator of changes. The routes
// authorize the caller, check the fields by their schemas and write the audit log; the store applies the rules
// that need a transaction.

import { randomUUID } from 'node:crypto';
import {
  type ApiKey,
  type ApiKeyChange,
  type CreatedId,
  passwordIssue,
  type User,
  type UserChange,
  usernameKey,
} from '../../domain/accounts/account.ts';
import {
  grantIdIn,
  grantPrincipalId,
  keyIdsOf,
  keyPrincipalId,
  nameWithClient,
  userIdsOf,
  userPrincipalId,
} from '../../domain/accounts/principal.ts';
import { isRestricted, type RightsLists, tooLongLists } from '../../domain/accounts/rights.ts';
import { apiKeyNotFound, keptAdmin, userNotFound } from '../../domain/errors/account-errors.ts';
import { restOfChange } from '../../domain/errors/gateway-errors.ts';
import { validationFailed } from '../../domain/errors/request-errors.ts';
import { definedFields } from '../../domain/json/json.ts';
import { timestampOf } from '../../domain/text.ts';
import type { Clock } from '../../domain/time/clock.ts';
import type { AccountStore } from '../../persistence/store.ts';
import { type Grants, usersOf } from '../grants/grants.ts';
import { newKey } from './api-keys.ts';
import type { HashCaller, Passwords } from './passwords.ts';

/** Name of the user that the first start creates. */
export const FIRST_ADMIN = 'admin';

/** True for `admin`, which may always log in with its password: identity providers may fail. */
export function isFirstAdmin({ username }: Pick<User, 'username'>): boolean {
  return usernameKey(username) === FIRST_ADMIN;
}

/** Lists of rights as they are written: null for all. */
type WrittenLists = Pick<UserChange, 'templates' | 'views' | 'tools'>;

/** `scopes`: null for all of the role. */
type NewUser = Pick<User, 'username' | 'email' | 'role'> &
  Pick<UserChange, 'scopes'> &
  WrittenLists & { readonly password: string };

/** A change of a user as an admin writes it, with a new password in plain text; else as in UserChange. */
type UserUpdate = Pick<UserChange, 'email' | 'role' | 'scopes' | 'isActive'> &
  WrittenLists & { readonly password?: string | undefined };

export type NewApiKey = Pick<ApiKey, 'name' | 'permissions'> &
  WrittenLists & {
    /** ISO 8601 with an offset or `Z`, in the future; null for never. */
    readonly expiresAt?: string | null | undefined;
    /** The user that creates it; absent for the operator without an account. */
    readonly ownerId?: string | undefined;
  };

export interface ShownApiKey {
  readonly apiKey: ApiKey;
  /** False when it has expired or its owner was deleted or disabled. */
  readonly isActive: boolean;
  /** Name of the owner; null when the operator created it. */
  readonly createdBy: string | null;
}

export interface AccountsOptions {
  readonly store: AccountStore;
  readonly passwords: Passwords;
  readonly wall: Clock['wall'];
  /**
   * Called after each change that voids verifications, with the principal id of the key or the user; that of a user
   * concerns the keys of the user, too.
   */
  readonly onChange?: (principalId: string) => void;
  /** Called with the id of each new key. */
  readonly onKeyCreated?: (id: string) => void;
  /** Called when the first admin gets a new password or is deleted. Must not throw. */
  readonly onAdminPasswordChanged?: (() => void) | undefined;
  /** Whether the first admin has to stay: identity providers give roles. Default: false. */
  readonly keepsFirstAdmin?: boolean | undefined;
  /** The grants of MCP clients; undefined where there are none. */
  readonly grants?: Pick<Grants, 'find'> | undefined;
  /** Writes the times of use of keys, before a list of keys is read. */
  readonly flushKeyUse?: () => Promise<void>;
}

/** Users and keys for admins. Every change is in force on this node when its promise resolves. */
export class Accounts {
  readonly #options: AccountsOptions;
  readonly #store: AccountStore;

  constructor(options: AccountsOptions) {
    this.#options = options;
    this.#store = options.store;
  }

  userIds(): Promise<readonly CreatedId[]> {
    return this.#store.userIds();
  }

  /** The users with these ids. Default: all. */
  users(ids?: readonly string[]): Promise<User[]> {
    return this.#store.findUsers(ids);
  }

  /** Throws USER_NOT_FOUND. */
  async user(id: string): Promise<User> {
    const [user] = await this.#store.findUsers([id]);
    if (user === undefined) throw userNotFound(id);
    return user;
  }

  /**
   * Creates a user. `caller`: the one in whose share of the hashes the password is hashed. Throws VALIDATION_ERROR,
   * DUPLICATE_USERNAME, TOO_MANY_ATTEMPTS.
   */
  async createUser(input: NewUser, caller?: HashCaller): Promise<User> {
    checkPassword(input.password);
    checkLists(input);
    const passwordHash = await this.#options.passwords.hash(input.password, caller);
    const user = newUser(input, passwordHash, this.#options.wall());
    await this.#store.insertUser(user);
    return user;
  }

  /** Throws USER_NOT_FOUND, LAST_ADMIN, VALIDATION_ERROR. A change of password, role or activity voids all tokens. */
  async changeUser(id: string, change: UserUpdate, caller?: HashCaller): Promise<User> {
    const { password, ...fields } = change;
    if (password !== undefined) checkPassword(password);
    checkLists(fields);
    const before = await this.user(id);
    const { role = 'admin', isActive = true, scopes = null } = fields;
    const isLimited = scopes !== null || isRestricted(listsOf(fields));
    if (role !== 'admin' || !isActive || isLimited) this.#keepFirstAdmin(before);
    const passwordHash =
      password === undefined ? undefined : await this.#options.passwords.hash(password, caller);
    const updatedAt = new Date(this.#options.wall()).toISOString();
    const user = await this.#store.changeUser(id, { ...fields, passwordHash, updatedAt });
    const isVoid = user.credentialsChangedAt !== before.credentialsChangedAt;
    const { templates, views, tools } = fields;
    const isNarrowed = [fields.scopes, templates, views, tools].some((list) => list !== undefined);
    if (isVoid || isNarrowed) this.#options.onChange?.(userPrincipalId(id));
    if (passwordHash !== undefined) this.#adminChanged(before);
    return user;
  }

  /** Deletes the user with all keys. Throws USER_NOT_FOUND, LAST_ADMIN. */
  async deleteUser(id: string): Promise<void> {
    const before = await this.user(id);
    this.#keepFirstAdmin(before);
    await this.#store.deleteUser(id);
    this.#options.onChange?.(userPrincipalId(id));
    this.#adminChanged(before);
  }

  /** Names of users and keys by the id of their principal, without unknown ones. */
  async names(principalIds: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const ids = new Set(principalIds.flatMap((id) => grantIdIn(id) ?? []));
    const grants = (await this.#options.grants?.find([...ids])) ?? [];
    const named = userIdsOf(principalIds).concat(usersOf(grants));
    const [users, keys] = await Promise.all([
      this.#store.findUsers([...new Set(named)]),
      this.#store.findApiKeys(keyIdsOf(principalIds)),
    ]);
    const usernames = new Map(users.map(({ id, username }) => [id, username]));
    return new Map([
      ...grants.map(
        ({ id, userId, clientName, subject }) =>
          [
            grantPrincipalId(id, userId),
            nameWithClient(subject?.name ?? usernames.get(userId) ?? '', clientName),
          ] as const,
      ),
      ...users.map(({ id, username }) => [userPrincipalId(id), username] as const),
      ...keys.map(({ id, name }) => [keyPrincipalId(id), name] as const),
    ]);
  }

  /** The ids of all keys, in the order of their creation. */
  async apiKeyIds(): Promise<readonly CreatedId[]> {
    await this.#options.flushKeyUse?.();
    return this.#store.apiKeyIds();
  }

  /** The keys with these ids. Default: all. */
  async apiKeys(ids?: readonly string[]): Promise<ShownApiKey[]> {
    const keys = await this.#store.findApiKeys(ids);
    const users = await this.#store.findUsers([...new Set(keys.flatMap(({ ownerId }) => ownerId ?? []))]);
    const owners = new Map(users.map((user) => [user.id, user]));
    return keys.map((key) => apiKeyViewOf(key, owners.get(key.ownerId ?? ''), this.#options.wall()));
  }

  /** Creates an API key. Only this result contains the key itself. Throws VALIDATION_ERROR, USER_NOT_FOUND. */
  async createApiKey(input: NewApiKey): Promise<{ readonly apiKey: ShownApiKey; readonly key: string }> {
    checkLists(input);
    const nowMs = this.#options.wall();
    const expiresAt = checkedExpiry(input.expiresAt ?? undefined, nowMs);
    const owner = input.ownerId === undefined ? undefined : await this.user(input.ownerId);
    const { key, id, secretHash } = newKey();
    const apiKey: ApiKey = {
      id,
      name: input.name,
      permissions: [...new Set(input.permissions)],
      ...listsOf(input),
      ...definedFields({ expiresAt, ownerId: owner?.id }),
      secretHash,
      createdAt: new Date(nowMs).toISOString(),
    };
    await this.#store.insertApiKey(apiKey);
    this.#options.onKeyCreated?.(id);
    return { apiKey: apiKeyViewOf(apiKey, owner, nowMs), key };
  }

  /**
   * Changes an API key, from the next call on; sessions and streams of the key end. Throws API_KEY_NOT_FOUND,
   * VALIDATION_ERROR.
   */
  async changeApiKey(id: string, change: ApiKeyChange): Promise<ShownApiKey> {
    checkLists(change);
    const apiKey = await this.#store.changeApiKey(id, change);
    this.#options.onChange?.(keyPrincipalId(id));
    if (apiKey === undefined) throw apiKeyNotFound(id);
    const [owner] =
      apiKey.ownerId === undefined ? [] : await restOfChange(this.#store.findUsers([apiKey.ownerId]));
    return apiKeyViewOf(apiKey, owner, this.#options.wall());
  }

  /** Throws API_KEY_NOT_FOUND. */
  async revokeApiKey(id: string): Promise<void> {
    const existed = await this.#store.deleteApiKey(id);
    this.#options.onChange?.(keyPrincipalId(id));
    if (!existed) throw apiKeyNotFound(id);
  }

  #keepFirstAdmin(user: User): void {
    if (this.#options.keepsFirstAdmin === true && isFirstAdmin(user)) throw keptAdmin();
  }

  #adminChanged(user: User): void {
    if (isFirstAdmin(user)) this.#options.onAdminPasswordChanged?.();
  }
}

/** A new user, from checked input. */
export function newUser(input: Omit<NewUser, 'password'>, passwordHash: string, nowMs: number): User {
  const at = new Date(nowMs).toISOString();
  const { username, email, role, scopes } = input;
  return {
    id: randomUUID(),
    username,
    email,
    role,
    ...definedFields({ scopes: scopes ?? undefined }),
    ...listsOf(input),
    isActive: true,
    passwordHash,
    credentialsChangedAt: at,
    createdAt: at,
    updatedAt: at,
  };
}

function listsOf({ templates, views, tools }: WrittenLists): RightsLists {
  return definedFields({
    templates: templates ?? undefined,
    views: views ?? undefined,
    tools: tools ?? undefined,
  });
}

function apiKeyViewOf(apiKey: ApiKey, owner: User | undefined, nowMs: number): ShownApiKey {
  const isExpired = apiKey.expiresAt !== undefined && Date.parse(apiKey.expiresAt) <= nowMs;
  const isOwned = apiKey.ownerId === undefined || owner?.isActive === true;
  return { apiKey, isActive: !isExpired && isOwned, createdBy: owner?.username ?? null };
}

/** The time of expiry in UTC. Throws VALIDATION_ERROR. `nowMs`: since 1970. */
function checkedExpiry(text: string | undefined, nowMs: number): string | undefined {
  if (text === undefined) return undefined;
  const atMs = timestampOf(text);
  if (atMs > nowMs) return new Date(atMs).toISOString();
  const loc = ['body', 'expires_at'];
  if (!Number.isNaN(atMs))
    throw validationFailed([{ loc, msg: 'Input should be in the future', type: 'datetime_future' }]);
  const msg = 'Input should be a valid datetime with an offset, such as 2030-01-31T12:00:00Z';
  throw validationFailed([{ loc, msg, type: 'datetime_parsing' }]);
}

function checkPassword(password: string): void {
  const issue = passwordIssue(password);
  if (issue !== undefined) throw validationFailed([{ loc: ['body', 'password'], ...issue }]);
}

/** Throws VALIDATION_ERROR for lists of rights that are too long. */
export function checkLists(lists: WrittenLists): void {
  const issues = tooLongLists(lists).map(({ list, msg }) => ({ loc: ['body', list], msg, type: 'too_long' }));
  if (issues.length > 0) throw validationFailed(issues);
}
