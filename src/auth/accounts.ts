// Management of users and API keys: checks, hashes, stores, and notifies the authenticator at once. HTTP authorizes the caller
// and writes the audit log; the store applies the rules that need a transaction.

import { randomUUID } from 'node:crypto';
import { Check } from 'typebox/schema';
import {
  type ApiKey,
  Email,
  KeyName,
  SCOPES,
  type Scope,
  TemplateList,
  type User,
  Username,
  usernameKey,
} from '../domain/account.ts';
import { apiKeyNotFound, userNotFound, validationFailed } from '../domain/error-catalogue.ts';
import type { ValidationItem } from '../domain/errors.ts';
import { hasUnseen, isCleanText, timestampOf } from '../domain/text.ts';
import type { AccountStore } from '../persistence/store.ts';
import { MOST_FOUND } from '../persistence/store.ts';
import { newKey } from './api-keys.ts';
import type { Accounts, ApiKeyView, NewApiKey, NewUser, UserUpdate } from './auth.ts';
import { type Passwords, passwordIssues } from './passwords.ts';

/** Name of the user that a first start creates. Source: ADR 16. */
export const FIRST_ADMIN = 'admin';

/** Earlier verifications of this user (keys included) or this key are void. */
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
  /** Stores the times of use of keys, for lists. */
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

  async names(principalIds: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const [users, keys] = await Promise.all([
      inParts(idsBehind('user:', principalIds), (ids) => this.#store.findUsers(ids)),
      inParts(idsBehind('key:', principalIds), (ids) => this.#store.findApiKeys(ids)),
    ]);
    return new Map([
      ...users.map(({ id, username }) => [`user:${id}`, username] as const),
      ...keys.map(({ id, name }) => [`key:${id}`, name] as const),
    ]);
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

/** The ids of principals of one kind, each once. */
function idsBehind(kind: string, principalIds: readonly string[]): readonly string[] {
  return [...new Set(principalIds.flatMap((id) => (id.startsWith(kind) ? id.slice(kind.length) : [])))];
}

async function inParts<T>(
  ids: readonly string[],
  find: (ids: readonly string[]) => Promise<readonly T[]>,
): Promise<readonly T[]> {
  const parts: T[][] = [];
  for (let start = 0; start < ids.length; start += MOST_FOUND)
    parts.push([...(await find(ids.slice(start, start + MOST_FOUND)))]);
  return parts.flat();
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

// Checks what is new about an account before it is stored, in the words of the API. HTTP checks shapes by its own schemas; this
// is the last word, also for the command line that works on the database.

const USERNAME_RULE =
  'String should be up to 64 letters, digits, dots, hyphens, underscores and @, and start with a letter or a digit';

/** VALIDATION_ERROR with all issues. */
export function checkNewUser(input: NewUser): void {
  refuse([...nameIssues(input.username), ...fieldIssues(input)]);
}

/** VALIDATION_ERROR with all issues. */
export function checkUserUpdate(change: UserUpdate): void {
  refuse(fieldIssues(change));
}

/** VALIDATION_ERROR with all issues; returns the time of expiry in UTC. `nowMs`: since 1970. */
export function checkNewApiKey(input: NewApiKey, nowMs: number): string | undefined {
  const expiresAtMs = input.expiresAt === undefined ? undefined : timestampOf(input.expiresAt);
  refuse([
    ...(Check(KeyName, input.name) && isCleanText(input.name)
      ? []
      : [
          item('name', 'string_pattern_mismatch', 'String should have 1 to 128 characters, none of them NUL'),
        ]),
    ...permissionIssues(input.permissions),
    ...templateIssues(input.templates),
    ...expiryIssues(expiresAtMs, nowMs),
  ]);
  return expiresAtMs === undefined ? undefined : new Date(expiresAtMs).toISOString();
}

function fieldIssues({ email, password, templates }: UserUpdate): ValidationItem[] {
  const isEmail = email === undefined || (Check(Email, email) && isCleanText(email) && !hasUnseen(email));
  return [
    ...(isEmail ? [] : [item('email', 'value_error', 'Value error, this is no e-mail address')]),
    ...(password === undefined ? [] : passwordIssues(password)),
    ...templateIssues(templates),
  ];
}

function nameIssues(username: string): ValidationItem[] {
  if (Check(Username, username)) return [];
  return [item('username', 'string_pattern_mismatch', USERNAME_RULE)];
}

function templateIssues(templates: readonly string[] | null | undefined): ValidationItem[] {
  if (templates === undefined || templates === null || Check(TemplateList, templates)) return [];
  return [item('templates', 'value_error', 'Value error, templates are up to 1000 different template names')];
}

function permissionIssues(permissions: readonly Scope[]): ValidationItem[] {
  if (permissions.length === 0) return [item('permissions', 'too_short', 'List should have at least 1 item')];
  const known: readonly string[] = SCOPES;
  return permissions.flatMap((permission, index) =>
    known.includes(permission)
      ? []
      : [
          {
            ...item('permissions', 'enum', `Input should be ${oneOf(SCOPES)}`),
            loc: ['body', 'permissions', index],
          },
        ],
  );
}

function expiryIssues(expiresAtMs: number | undefined, nowMs: number): ValidationItem[] {
  if (expiresAtMs === undefined) return [];
  if (Number.isNaN(expiresAtMs)) {
    const msg = 'Input should be a valid datetime with an offset, such as 2030-01-31T12:00:00Z';
    return [item('expires_at', 'datetime_parsing', msg)];
  }
  return expiresAtMs > nowMs ? [] : [item('expires_at', 'datetime_future', 'Input should be in the future')];
}

function refuse(items: readonly ValidationItem[]): void {
  if (items.length > 0) throw validationFailed(items);
}

function item(field: string, type: string, msg: string): ValidationItem {
  return { loc: ['body', field], msg, type };
}

function oneOf(words: readonly string[]): string {
  const quoted = words.map((word) => `'${word}'`);
  return `${quoted.slice(0, -1).join(', ')} or ${quoted.at(-1)}`;
}
