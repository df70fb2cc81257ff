// Users and API keys in a database. Each change of an account first locks the row of the revision, so that
// two nodes cannot demote the last two admins at the same time.

import type { EntitySchema } from '@mikro-orm/core';
import type { SqlEntityManager } from '@mikro-orm/sql';
import {
  type ApiKey,
  type CreatedId,
  type EndedToken,
  isActiveAdmin,
  isBuiltIn,
  type User,
  usernameKey,
  withChange,
  withEndedToken,
  withKeyChange,
} from '../../../domain/accounts/account.ts';
import { duplicateUsername, lastAdmin, userNotFound } from '../../../domain/errors/account-errors.ts';
import type { Cipher } from '../../cipher.ts';
import type { AccountStore } from '../../store.ts';
import { readRow } from '../../store-errors.ts';
import type { OrmOperations } from '../connection/orm-operations.ts';
import {
  type Columns,
  columnsOf,
  fromDocument,
  recordOf,
  type TableRow,
  type Tables,
  toDocument,
} from '../entities.ts';
import { lastUsesByWrite, newLastUse } from './last-uses.ts';
import { replacing } from './orm-oauth.ts';
import { inBatches, TableRows } from './table-rows.ts';

export function ormAccounts(operations: OrmOperations, cipher: Cipher | undefined): AccountStore {
  const userIds = () => createdIds<TableRow<'users'>>(operations, ({ users }) => users);
  const apiKeyIds = () => createdIds<TableRow<'apiKeys'>>(operations, ({ apiKeys }) => apiKeys);
  return {
    userIds,
    apiKeyIds,
    findUsers: (ids) =>
      findOfIds(ids ?? userIds(), (some) =>
        operations.run(async (em, { users }) => {
          const rows = new TableRows(em, users, operations);
          return (await rows.find({ id: some }, 'position')).map(userOf);
        }),
      ),
    findUserByName: (username) =>
      operations.run((em, tables) => userWhere(em, tables, { usernameKey: usernameKey(username) })),
    insertUser: (user) => operations.change((em, tables, position) => insertUser(em, tables, user, position)),
    insertUserWithIdentity: async (user, row, version) => {
      const replaceRow = replacing(row, version, operations, cipher);
      const revision = await operations.changeIf(async (em, tables, position) => {
        await insertUser(em, tables, user, position);
        return replaceRow(em, tables);
      });
      return revision !== undefined;
    },
    changeUser: (id, change) =>
      operations.change(async (em, tables) => {
        const user = await existingUser(em, tables, id);
        const changed = withChange(user, change);
        await keepAnAdmin(em, tables, user, changed);
        await em.nativeUpdate(tables.users, { id }, rowOfUser(changed));
        if (changed.credentialsChangedAt !== user.credentialsChangedAt)
          await em.nativeDelete(tables.settings, { name: endedName(id) });
        return changed;
      }),
    deleteUser: (id) =>
      operations.change(async (em, tables) => {
        const user = await existingUser(em, tables, id);
        await keepAnAdmin(em, tables, user, undefined);
        await em.nativeDelete(tables.apiKeys, { ownerId: id });
        await em.nativeDelete(tables.oauth, { userId: id });
        await em.nativeDelete(tables.settings, { name: endedName(id) });
        await em.nativeDelete(tables.users, { id });
      }),
    endToken: async (userId, token, nowMs) => {
      const revision = await operations.changeIf(async (em, tables) => {
        await existingUser(em, tables, userId);
        const before = await endedTokensOf(em, tables, userId);
        const ended = withEndedToken(before ?? [], token, nowMs);
        if (ended === undefined) return false;
        const name = endedName(userId);
        const value = toDocument(ended);
        if (before === undefined) await em.insert(tables.settings, { name, value });
        else await em.nativeUpdate(tables.settings, { name }, { value });
        return true;
      });
      return revision !== undefined;
    },
    isTokenEnded: (userId, tokenId) =>
      operations.run(async (em, tables) => {
        const ended = await endedTokensOf(em, tables, userId);
        return ended?.some(({ id }) => id === tokenId) ?? false;
      }),
    findApiKeys: (ids) =>
      findOfIds(ids ?? apiKeyIds(), (some) =>
        operations.run(async (em, { apiKeys }) => {
          const rows = new TableRows(em, apiKeys, operations);
          return (await rows.find({ id: some }, 'position')).map((row) =>
            readRow('api_keys', row.id, () => recordOf<ApiKey>(row)),
          );
        }),
      ),
    insertApiKey: (key) =>
      operations.change(async (em, tables, position) => {
        if (key.ownerId !== undefined) await existingUser(em, tables, key.ownerId);
        await em.insert(tables.apiKeys, { ...rowOfApiKey(key), position });
      }),
    changeApiKey: async (id, change) => {
      let changed: ApiKey | undefined;
      await operations.changeIf(async (em, { apiKeys }) => {
        const row = await em.findOne(apiKeys, { id });
        if (row === null) return false;
        changed = withKeyChange(
          readRow('api_keys', id, () => recordOf<ApiKey>(row)),
          change,
        );
        await em.nativeUpdate(apiKeys, { id }, rowOfApiKey(changed));
        return true;
      });
      return changed;
    },
    deleteApiKey: async (id) => {
      const revision = await operations.changeIf(
        async (em, { apiKeys }) => (await em.nativeDelete(apiKeys, { id })) > 0,
      );
      return revision !== undefined;
    },
    touchApiKeys: async (lastUsedAt) => {
      for (const uses of lastUsesByWrite(lastUsedAt))
        await operations.write((em, { apiKeys }) =>
          em.nativeUpdate(
            apiKeys,
            { id: { $in: uses.map(([id]) => id) } },
            { lastUsedAt: newLastUse('id', 'last_used_at', uses) },
          ),
        );
    },
  };
}

async function createdIds<Row extends { readonly id: string; readonly createdAt: Date }>(
  operations: OrmOperations,
  tableOf: (tables: Tables) => EntitySchema<Row & { readonly position: number }>,
): Promise<CreatedId[]> {
  return operations.run(async (em, tables) => {
    const rows = await new TableRows(em, tableOf(tables), operations).all(['id', 'createdAt'], 'position');
    return rows.map(({ id, createdAt }) => ({ id, createdAt: createdAt.toISOString() }));
  });
}

async function findOfIds<T>(
  wanted: readonly string[] | Promise<readonly CreatedId[]>,
  find: (ids: readonly string[]) => Promise<readonly T[]>,
): Promise<T[]> {
  return inBatches(wanted instanceof Promise ? (await wanted).map(({ id }) => id) : wanted, find);
}

async function userWhere(
  em: SqlEntityManager,
  { users }: Tables,
  where: { readonly id: string } | { readonly usernameKey: string },
): Promise<User | undefined> {
  const row = await em.findOne(users, where);
  return row === null ? undefined : userOf(row);
}

/** Throws DUPLICATE_USERNAME. */
async function insertUser(em: SqlEntityManager, tables: Tables, user: User, position: number): Promise<void> {
  const namesake = await userWhere(em, tables, { usernameKey: usernameKey(user.username) });
  if (namesake !== undefined) throw duplicateUsername(user.username);
  await em.insert(tables.users, { ...rowOfUser(user), position });
}

/** The user with this id. Throws USER_NOT_FOUND. */
async function existingUser(em: SqlEntityManager, tables: Tables, id: string): Promise<User> {
  const user = await userWhere(em, tables, { id });
  if (user === undefined) throw userNotFound(id);
  return user;
}

function endedName(userId: string): string {
  return `ended-tokens:${userId}`;
}

async function endedTokensOf(
  em: SqlEntityManager,
  { settings }: Tables,
  userId: string,
): Promise<EndedToken[] | undefined> {
  const row = await em.findOne(settings, { name: endedName(userId) });
  // Written by `endToken`.
  return row === null
    ? undefined
    : readRow('settings', row.name, () => fromDocument(row.value) as EndedToken[]);
}

/** The columns of an active admin: see `isActiveAdmin`. */
const ACTIVE_ADMIN = {
  role: 'admin',
  isActive: 1,
  scopes: null,
  templates: null,
  views: null,
  tools: null,
} as const;

/** Throws LAST_ADMIN when the change would leave no active admin of all templates. */
async function keepAnAdmin(
  em: SqlEntityManager,
  { users }: Tables,
  before: User,
  after: User | undefined,
): Promise<void> {
  if (!isActiveAdmin(before) || (after !== undefined && isActiveAdmin(after))) return;
  const others = await em.count(users, { ...ACTIVE_ADMIN, id: { $ne: before.id } });
  if (others === 0) throw lastAdmin();
}

function rowOfUser(user: User): Columns<TableRow<'users'>> {
  const role = isBuiltIn(user.role)
    ? { role: user.role, definedRole: undefined }
    : { role: DEFINED, definedRole: user.role };
  const lists = { scopes: undefined, ...NO_LISTS };
  return columnsOf({ ...lists, ...user, ...role, usernameKey: usernameKey(user.username) });
}

/** The role in the column of a user with a defined role. An earlier version finds no rights for it. */
const DEFINED = 'defined';

function userOf({ usernameKey: _, definedRole, ...row }: TableRow<'users'>): User {
  return readRow('users', row.id, () => ({
    ...recordOf<User>({ ...row, role: definedRole || row.role }),
    isActive: row.isActive === 1,
  }));
}

export function rowOfApiKey(key: ApiKey): Columns<TableRow<'apiKeys'>> {
  const optional = { expiresAt: undefined, ownerId: undefined, lastUsedAt: undefined };
  return columnsOf({ ...NO_LISTS, ...optional, ...key });
}

const NO_LISTS = { templates: undefined, views: undefined, tools: undefined };
