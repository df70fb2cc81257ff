// Users and API keys as admins manage them: checks, hashes, stores, and tells the authenticator at once.
// Who may do this and what the audit log says of it is http; rules that need a transaction are the store's.

import { randomUUID } from 'node:crypto';
import { type ApiKey, type User, usernameKey } from '../domain/account.ts';
import { apiKeyNotFound, userNotFound } from '../domain/account-errors.ts';
import type { AccountStore } from '../persistence/store.ts';
import { checkNewApiKey, checkNewUser, checkUserUpdate } from './account-input.ts';
import { newKey } from './api-keys.ts';
import type { Accounts, ApiKeyView, NewApiKey, NewUser, UserUpdate } from './auth.ts';
import type { Passwords } from './passwords.ts';

/** Name of the user that a first start creates. Source: decisions, "First start". */
export const FIRST_ADMIN = 'admin';

/** What was verified about this user (keys included) or this key is no longer so. */
export type AccountChange = { readonly userId: string } | { readonly keyId: string };

export interface ManagedAccountsOptions {
  readonly store: AccountStore;
  readonly passwords: Passwords;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Called after each change that voids something, before its promise resolves. */
  readonly onChange: (change: AccountChange) => void;
  /** The first admin has a new password or is gone; failures are the callee's to deal with. */
  readonly onAdminPasswordChanged?: (() => void) | undefined;
  /** Writes down when keys were used, so that lists tell it. */
  readonly flushKeyUse: () => Promise<void>;
}

export class ManagedAccounts implements Accounts {
  readonly #options: ManagedAccountsOptions;
  readonly #store: AccountStore;

  constructor(options: ManagedAccountsOptions) {
    this.#options = options;
    this.#store = options.store;
  }

  users(): Promise<User[]> {
    return this.#store.listUsers();
  }

  async user(id: string): Promise<User> {
    const user = await this.#store.findUser(id);
    if (user === undefined) throw userNotFound(id);
    return user;
  }

  async createUser(input: NewUser): Promise<User> {
    checkNewUser(input);
    const user = newUser(input, await this.#options.passwords.hash(input.password), this.#options.now());
    await this.#store.insertUser(user);
    return user;
  }

  async changeUser(id: string, change: UserUpdate): Promise<User> {
    checkUserUpdate(change);
    const { email, password, role, templates, isActive } = change;
    const before = await this.user(id);
    const passwordHash = password === undefined ? undefined : await this.#options.passwords.hash(password);
    const isVoid =
      passwordHash !== undefined ||
      (role ?? before.role) !== before.role ||
      (isActive ?? before.isActive) !== before.isActive;
    const at = new Date(this.#options.now()).toISOString();
    const user = await this.#store.changeUser(id, {
      ...(email === undefined ? {} : { email }),
      ...(role === undefined ? {} : { role }),
      ...(templates === undefined ? {} : { templates }),
      ...(isActive === undefined ? {} : { isActive }),
      ...(passwordHash === undefined ? {} : { passwordHash }),
      ...(isVoid ? { credentialsChangedAt: at } : {}),
      updatedAt: at,
    });
    const isHarmless = [password, role, templates, isActive].every((field) => field === undefined);
    if (!isHarmless) this.#options.onChange({ userId: id });
    if (passwordHash !== undefined) this.#adminChanged(before);
    return user;
  }

  async deleteUser(id: string): Promise<void> {
    const before = await this.user(id);
    await this.#store.deleteUser(id);
    this.#options.onChange({ userId: id });
    this.#adminChanged(before);
  }

  async apiKeys(): Promise<ApiKeyView[]> {
    await this.#options.flushKeyUse();
    const [keys, users] = await Promise.all([this.#store.listApiKeys(), this.#store.listUsers()]);
    const owners = new Map(users.map((user) => [user.id, user]));
    return keys.map((key) => viewOf(key, owners.get(key.ownerId ?? ''), this.#options.now()));
  }

  async createApiKey(input: NewApiKey): Promise<{ readonly apiKey: ApiKeyView; readonly key: string }> {
    const nowMs = this.#options.now();
    const expiresAt = checkNewApiKey(input, nowMs);
    const owner = input.ownerId === undefined ? undefined : await this.user(input.ownerId);
    const { key, id, secretHash } = newKey();
    const apiKey: ApiKey = {
      id,
      name: input.name,
      permissions: [...new Set(input.permissions)],
      ...(input.templates === undefined ? {} : { templates: input.templates }),
      ...(expiresAt === undefined ? {} : { expiresAt }),
      ...(owner === undefined ? {} : { ownerId: owner.id }),
      secretHash,
      createdAt: new Date(nowMs).toISOString(),
    };
    await this.#store.insertApiKey(apiKey);
    return { apiKey: viewOf(apiKey, owner, nowMs), key };
  }

  async revokeApiKey(id: string): Promise<void> {
    const existed = await this.#store.deleteApiKey(id);
    this.#options.onChange({ keyId: id });
    if (!existed) throw apiKeyNotFound(id);
  }

  #adminChanged({ username }: User): void {
    if (usernameKey(username) === FIRST_ADMIN) this.#options.onAdminPasswordChanged?.();
  }
}

/** A user as it is first stored; the input was checked. */
export function newUser(input: Omit<NewUser, 'password'>, passwordHash: string, nowMs: number): User {
  const at = new Date(nowMs).toISOString();
  const { username, email, role, templates } = input;
  return {
    id: randomUUID(),
    username,
    email,
    role,
    ...(templates === undefined ? {} : { templates }),
    isActive: true,
    passwordHash,
    credentialsChangedAt: at,
    createdAt: at,
    updatedAt: at,
  };
}

function viewOf(apiKey: ApiKey, owner: User | undefined, nowMs: number): ApiKeyView {
  const isExpired = apiKey.expiresAt !== undefined && Date.parse(apiKey.expiresAt) <= nowMs;
  const isOwned = apiKey.ownerId === undefined || owner?.isActive === true;
  return { apiKey, isActive: !isExpired && isOwned, createdBy: owner?.username ?? null };
}
