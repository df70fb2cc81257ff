// The accounts of the store without a database: users, API keys and ended tokens.

import {
  type ApiKey,
  type ApiKeyChange,
  type CreatedId,
  type EndedToken,
  isActiveAdmin,
  type User,
  type UserChange,
  usernameKey,
  withChange,
  withEndedToken,
  withKeyChange,
} from '../../domain/accounts/account.ts';
import { duplicateUsername, lastAdmin, userNotFound } from '../../domain/errors/account-errors.ts';
import type { OAuthRow } from '../oauth-store.ts';
import type { AccountStore } from '../store.ts';
import { replaceRow } from './memory-oauth.ts';

/**
 * The accounts. `changed` is called after each change that counts for the revision. The rows of `oauth` that a user has end with
 * the user.
 */
export class MemoryAccounts implements AccountStore {
  readonly #users = new Map<string, User>();
  readonly #keys = new Map<string, ApiKey>();
  readonly #ended = new Map<string, readonly EndedToken[]>();
  readonly #changed: () => void;
  readonly #oauthRows: Map<string, OAuthRow>;

  constructor(changed: () => void, oauthRows: Map<string, OAuthRow>) {
    this.#changed = changed;
    this.#oauthRows = oauthRows;
  }

  async userIds(): Promise<readonly CreatedId[]> {
    return [...this.#users.values()].map(({ id, createdAt }) => ({ id, createdAt }));
  }

  async apiKeyIds(): Promise<readonly CreatedId[]> {
    return [...this.#keys.values()].map(({ id, createdAt }) => ({ id, createdAt }));
  }

  async findUsers(ids: readonly string[] = [...this.#users.keys()]): Promise<User[]> {
    return structuredClone(ids.flatMap((id) => this.#users.get(id) ?? []));
  }

  async findUserByName(username: string): Promise<User | undefined> {
    return structuredClone(this.#named(username));
  }

  async insertUser(user: User): Promise<void> {
    this.#checkName(user);
    this.#users.set(user.id, structuredClone(user));
    this.#changed();
  }

  async insertUserWithIdentity(
    user: User,
    row: Omit<OAuthRow, 'version'>,
    version: number,
  ): Promise<boolean> {
    this.#checkName(user);
    if (!replaceRow(this.#oauthRows, row, version)) return false;
    this.#users.set(user.id, structuredClone(user));
    this.#changed();
    return true;
  }

  async changeUser(id: string, change: UserChange): Promise<User> {
    const user = this.#existing(id);
    const changed = withChange(user, change);
    this.#keepAnAdmin(user, changed);
    this.#users.set(id, structuredClone(changed));
    if (changed.credentialsChangedAt !== user.credentialsChangedAt) this.#ended.delete(id);
    this.#changed();
    return changed;
  }

  async deleteUser(id: string): Promise<void> {
    this.#keepAnAdmin(this.#existing(id), undefined);
    this.#users.delete(id);
    this.#ended.delete(id);
    for (const key of this.#keys.values()) if (key.ownerId === id) this.#keys.delete(key.id);
    for (const row of this.#oauthRows.values()) if (row.userId === id) this.#oauthRows.delete(row.key);
    this.#changed();
  }

  async endToken(userId: string, token: EndedToken, nowMs: number): Promise<boolean> {
    this.#existing(userId);
    const ended = withEndedToken(this.#ended.get(userId) ?? [], token, nowMs);
    if (ended === undefined) return false;
    this.#ended.set(userId, ended);
    this.#changed();
    return true;
  }

  async isTokenEnded(userId: string, tokenId: string): Promise<boolean> {
    return this.#ended.get(userId)?.some(({ id }) => id === tokenId) ?? false;
  }

  async findApiKeys(ids: readonly string[] = [...this.#keys.keys()]): Promise<ApiKey[]> {
    return structuredClone(ids.flatMap((id) => this.#keys.get(id) ?? []));
  }

  async insertApiKey(key: ApiKey): Promise<void> {
    if (key.ownerId !== undefined) this.#existing(key.ownerId);
    this.#keys.set(key.id, structuredClone(key));
    this.#changed();
  }

  async changeApiKey(id: string, change: ApiKeyChange): Promise<ApiKey | undefined> {
    const before = this.#keys.get(id);
    if (before === undefined) return undefined;
    const changed = structuredClone(withKeyChange(before, change));
    this.#keys.set(id, changed);
    this.#changed();
    return structuredClone(changed);
  }

  async deleteApiKey(id: string): Promise<boolean> {
    const existed = this.#keys.delete(id);
    if (existed) this.#changed();
    return existed;
  }

  async touchApiKeys(lastUsedAt: ReadonlyMap<string, string>): Promise<void> {
    for (const [id, at] of lastUsedAt) {
      const key = this.#keys.get(id);
      if (key !== undefined) this.#keys.set(id, { ...key, lastUsedAt: at });
    }
  }

  #named(username: string): User | undefined {
    const wanted = usernameKey(username);
    return [...this.#users.values()].find((user) => usernameKey(user.username) === wanted);
  }

  #checkName({ username }: User): void {
    if (this.#named(username) !== undefined) throw duplicateUsername(username);
  }

  #existing(id: string): User {
    const user = this.#users.get(id);
    if (user === undefined) throw userNotFound(id);
    return user;
  }

  #keepAnAdmin(before: User, after: User | undefined): void {
    if (!isActiveAdmin(before) || (after !== undefined && isActiveAdmin(after))) return;
    const others = [...this.#users.values()].filter((user) => user.id !== before.id && isActiveAdmin(user));
    if (others.length === 0) throw lastAdmin();
  }
}
