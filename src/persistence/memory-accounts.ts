// The accounts without a database. The rules are those of every AccountStore (spec/conformance/accounts.ts).

import { type ApiKey, isActiveAdmin, type User, type UserChange, usernameKey } from '../domain/account.ts';
import { duplicateUsername, lastAdmin, userNotFound } from '../domain/account-errors.ts';
import { withChange } from './account-change.ts';
import type { AccountStore } from './store.ts';

/** Users and keys in memory; hands out copies. `changed` is called after every change that others must hear of. */
export class MemoryAccounts implements AccountStore {
  readonly #users = new Map<string, User>();
  readonly #keys = new Map<string, ApiKey>();
  readonly #changed: () => void;

  constructor(changed: () => void) {
    this.#changed = changed;
  }

  async listUsers(): Promise<User[]> {
    return structuredClone([...this.#users.values()]);
  }

  async findUser(id: string): Promise<User | undefined> {
    return structuredClone(this.#users.get(id));
  }

  async findUsers(ids: readonly string[]): Promise<User[]> {
    return structuredClone(ids.flatMap((id) => this.#users.get(id) ?? []));
  }

  async findUserByName(username: string): Promise<User | undefined> {
    return structuredClone(this.#named(username));
  }

  async insertUser(user: User): Promise<void> {
    if (this.#named(user.username) !== undefined) throw duplicateUsername(user.username);
    this.#users.set(user.id, structuredClone(user));
    this.#changed();
  }

  async changeUser(id: string, change: UserChange): Promise<User> {
    const user = this.#existing(id);
    const changed = withChange(user, change);
    this.#keepAnAdmin(user, changed);
    this.#users.set(id, structuredClone(changed));
    this.#changed();
    return changed;
  }

  async deleteUser(id: string): Promise<void> {
    this.#keepAnAdmin(this.#existing(id), undefined);
    this.#users.delete(id);
    for (const key of this.#keys.values()) if (key.ownerId === id) this.#keys.delete(key.id);
    this.#changed();
  }

  async listApiKeys(): Promise<ApiKey[]> {
    return structuredClone([...this.#keys.values()]);
  }

  async findApiKey(id: string): Promise<ApiKey | undefined> {
    return structuredClone(this.#keys.get(id));
  }

  async findApiKeys(ids: readonly string[]): Promise<ApiKey[]> {
    return structuredClone(ids.flatMap((id) => this.#keys.get(id) ?? []));
  }

  async insertApiKey(key: ApiKey): Promise<void> {
    this.#keys.set(key.id, structuredClone(key));
    this.#changed();
  }

  async deleteApiKey(id: string): Promise<boolean> {
    const existed = this.#keys.delete(id);
    if (existed) this.#changed();
    return existed;
  }

  async touchApiKeys(lastUsedAt: ReadonlyMap<string, string>): Promise<void> {
    for (const [id, at] of lastUsedAt) {
      const key = this.#keys.get(id);
      if (key !== undefined && (key.lastUsedAt ?? '') < at) this.#keys.set(id, { ...key, lastUsedAt: at });
    }
  }

  #named(username: string): User | undefined {
    const wanted = usernameKey(username);
    return [...this.#users.values()].find((user) => usernameKey(user.username) === wanted);
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
