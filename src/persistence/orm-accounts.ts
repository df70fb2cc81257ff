// Users and API keys on a database. Every change locks the row of the revision first, so two nodes cannot demote the last
// two admins at the same moment.

import { raw } from '@mikro-orm/core';
import type { SqlEntityManager } from '@mikro-orm/sql';
import { type ApiKey, isActiveAdmin, type User, type UserChange, usernameKey } from '../domain/account.ts';
import { duplicateUsername, lastAdmin, userNotFound } from '../domain/account-errors.ts';
import { withChange } from './account-change.ts';
import { apiKeyOf, rowOfApiKey, rowOfUser, userOf } from './account-rows.ts';
import type { Tables } from './entities.ts';
import type { OrmSession } from './orm-session.ts';
import type { AccountStore } from './store.ts';

const AS_IT_IS = { disableIdentityMap: true } as const;
const IN_ORDER = { orderBy: { position: 'asc' }, ...AS_IT_IS } as const;

/** Keys touched by one statement. */
const BATCH = 100;

export class OrmAccounts implements AccountStore {
  readonly #session: OrmSession;

  constructor(session: OrmSession) {
    this.#session = session;
  }

  listUsers(): Promise<User[]> {
    return this.#session.run(async (em, { users }) => (await em.findAll(users, IN_ORDER)).map(userOf));
  }

  findUser(id: string): Promise<User | undefined> {
    return this.#session.run((em, tables) => userById(em, tables, id));
  }

  findUsers(ids: readonly string[]): Promise<User[]> {
    return this.#session.run(async (em, { users }) =>
      (await em.find(users, { id: { $in: [...ids] } }, AS_IT_IS)).map(userOf),
    );
  }

  findUserByName(username: string): Promise<User | undefined> {
    return this.#session.run((em, tables) => userByName(em, tables, username));
  }

  insertUser(user: User): Promise<void> {
    return this.#session.change(async (em, tables, position) => {
      if ((await userByName(em, tables, user.username)) !== undefined) throw duplicateUsername(user.username);
      await em.insert(tables.users, { ...rowOfUser(user), position });
    });
  }

  changeUser(id: string, change: UserChange): Promise<User> {
    return this.#session.change(async (em, tables) => {
      const user = await userById(em, tables, id);
      if (user === undefined) throw userNotFound(id);
      const changed = withChange(user, change);
      await keepAnAdmin(em, tables, user, changed);
      await em.nativeUpdate(tables.users, { id }, rowOfUser(changed));
      return changed;
    });
  }

  deleteUser(id: string): Promise<void> {
    return this.#session.change(async (em, tables) => {
      const user = await userById(em, tables, id);
      if (user === undefined) throw userNotFound(id);
      await keepAnAdmin(em, tables, user, undefined);
      await em.nativeDelete(tables.apiKeys, { ownerId: id });
      await em.nativeDelete(tables.users, { id });
    });
  }

  listApiKeys(): Promise<ApiKey[]> {
    return this.#session.run(async (em, { apiKeys }) => (await em.findAll(apiKeys, IN_ORDER)).map(apiKeyOf));
  }

  findApiKey(id: string): Promise<ApiKey | undefined> {
    return this.#session.run(async (em, { apiKeys }) => {
      const row = await em.findOne(apiKeys, { id }, AS_IT_IS);
      return row === null ? undefined : apiKeyOf(row);
    });
  }

  findApiKeys(ids: readonly string[]): Promise<ApiKey[]> {
    return this.#session.run(async (em, { apiKeys }) =>
      (await em.find(apiKeys, { id: { $in: [...ids] } }, AS_IT_IS)).map(apiKeyOf),
    );
  }

  insertApiKey(key: ApiKey): Promise<void> {
    return this.#session.change(async (em, { apiKeys }, position) => {
      await em.insert(apiKeys, { ...rowOfApiKey(key), position });
    });
  }

  deleteApiKey(id: string): Promise<boolean> {
    return this.#session.changeIf(async (em, { apiKeys }) => (await em.nativeDelete(apiKeys, { id })) > 0);
  }

  async touchApiKeys(lastUsedAt: ReadonlyMap<string, string>): Promise<void> {
    // In one order on every node, so that two of them do not wait for each other.
    const touches = [...lastUsedAt].sort(([one], [other]) => (one < other ? -1 : 1));
    for (let start = 0; start < touches.length; start += BATCH)
      await this.#touch(touches.slice(start, start + BATCH).map(([id, at]) => ({ id, at: new Date(at) })));
  }

  /** One statement for all of them: `set last_used_at = case id when .. then .. end`. */
  #touch(touches: readonly { readonly id: string; readonly at: Date }[]): Promise<void> {
    return this.#session.write(async (em, { apiKeys }) => {
      const isOlder = touches.map(({ id, at }) => ({
        id,
        $or: [{ lastUsedAt: null }, { lastUsedAt: { $lt: at } }],
      }));
      const cases = touches.map(() => 'when ? then ?').join(' ');
      const values = touches.flatMap(({ id, at }) => [id, at]);
      const newTime = raw(`case ?? ${cases} else ?? end`, ['id', ...values, 'last_used_at']);
      await em.nativeUpdate(apiKeys, { $or: isOlder }, { lastUsedAt: newTime });
    });
  }
}

async function userById(em: SqlEntityManager, { users }: Tables, id: string): Promise<User | undefined> {
  const row = await em.findOne(users, { id }, AS_IT_IS);
  return row === null ? undefined : userOf(row);
}

async function userByName(
  em: SqlEntityManager,
  { users }: Tables,
  username: string,
): Promise<User | undefined> {
  const row = await em.findOne(users, { usernameKey: usernameKey(username) }, AS_IT_IS);
  return row === null ? undefined : userOf(row);
}

/** LAST_ADMIN when the change would leave no active admin. */
async function keepAnAdmin(
  em: SqlEntityManager,
  { users }: Tables,
  before: User,
  after: User | undefined,
): Promise<void> {
  if (!isActiveAdmin(before) || (after !== undefined && isActiveAdmin(after))) return;
  const others = await em.count(users, { role: 'admin', isActive: 1, id: { $ne: before.id } });
  if (others === 0) throw lastAdmin();
}
