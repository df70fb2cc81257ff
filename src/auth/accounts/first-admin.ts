// Creates the first admin of a database that has none and delivers its password to the operator only. It
// prints and logs nothing: it returns messages as data.

import { unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { ConfigError } from '../../config/config-error.ts';
import { makeFolders } from '../../config/make-folders.ts';
import {
  type DefinedRoles,
  isActiveAdmin,
  isBuiltIn,
  passwordIssue,
  type User,
  usernameKey,
} from '../../domain/accounts/account.ts';
import { codeOf, hasCode } from '../../domain/errors/errors.ts';
import { counted } from '../../domain/text.ts';
import type { Clock } from '../../domain/time/clock.ts';
import type { AccountStore } from '../../persistence/store.ts';
import { ensureSecretFile, readSecretFile } from '../secrets/secret-file.ts';
import { FIRST_ADMIN, newUser } from './accounts.ts';
import { type FirstPassword, randomPassword } from './first-password.ts';
import type { Passwords } from './passwords.ts';

const WHAT = 'the password of the first admin';

interface FirstAdminOptions {
  readonly accounts: AccountStore;
  readonly passwords: Passwords;
  /** GATEWAY_ADMIN_PASSWORD. */
  readonly configuredPassword?: string | undefined;
  /** The configured password, or the one to use instead of a random one, with its hash. */
  readonly prepared?: FirstPassword | undefined;
  /** True: the caller prints the password. False: it is written to a file. */
  readonly isTerminal: boolean;
  /** Absolute path of that file, which belongs to this database alone; a missing folder is created. */
  readonly passwordFile: string;
  readonly wall: Clock['wall'];
  /** Roles of the settings: a user with another role has no rights, which is a warning. */
  readonly roles?: DefinedRoles;
}

export interface Announcements {
  /** Lines for the log. */
  readonly warnings: readonly string[];
  /** Lines for a terminal, never for the log. */
  readonly notices: readonly string[];
}

/**
 * Creates `admin` (`admin@localhost`) when there is no active admin of all templates and no user of that name. The
 * last such admin cannot be removed, so this happens once: an `admin` that another admin deleted is not created
 * again at the next start, whatever is configured. Throws ConfigError for an invalid password and for a file that cannot
 * be created or that others can read, DATABASE_UNAVAILABLE. Of several gateways that start at once, only one
 * announces it.
 */
export async function ensureFirstAdmin(options: FirstAdminOptions): Promise<Announcements> {
  const { configuredPassword } = options;
  const issue = configuredPassword === undefined ? undefined : passwordIssue(configuredPassword);
  if (issue !== undefined) throw new ConfigError(`GATEWAY_ADMIN_PASSWORD: ${issue.msg}`);
  const users = await options.accounts.findUsers();
  const lost = lostRoles(users, options.roles);
  const exists = users.some((user) => isActiveAdmin(user) || usernameKey(user.username) === FIRST_ADMIN);
  const created = exists ? undefined : await create(options);
  if (created !== undefined) return { ...created, warnings: [...lost, ...created.warnings] };
  await deleteVoidPassword(options);
  const ignored = 'the configured admin password is not used: an admin already exists';
  return { warnings: configuredPassword === undefined ? lost : [...lost, ignored], notices: [] };
}

/** One line for each role of users that is not defined. */
function lostRoles(users: readonly User[], roles: DefinedRoles = {}): readonly string[] {
  const lost = users.filter(({ role }) => !isBuiltIn(role) && !Object.hasOwn(roles, role));
  return [...Map.groupBy(lost, ({ role }) => role)].map(
    ([role, { length }]) =>
      `the role ${role} of ${counted(length, 'user')} is not defined in the settings (roles): such users have no rights`,
  );
}

/** Deletes the file with the first password, which is no longer valid. */
export async function forgetInitialPassword(passwordFile: string): Promise<void> {
  await unlink(passwordFile).catch((error: unknown) => {
    if (codeOf(error) !== 'ENOENT') throw error;
  });
}

/** Resolves with undefined when another process created the admin first. */
async function create(options: FirstAdminOptions): Promise<Announcements | undefined> {
  const { configuredPassword, prepared, isTerminal, passwordFile: path } = options;
  const random = prepared?.password ?? randomPassword();
  const password = configuredPassword ?? (isTerminal ? random : await passwordInFile(path, random));
  if (!(await insert(options, password))) return undefined;
  if (configuredPassword !== undefined)
    return { warnings: [], notices: ['created the user "admin" with the configured password'] };
  if (!isTerminal) return { warnings: [`created the user "admin"; its password is in ${path}`], notices: [] };
  return {
    warnings: [],
    notices: [`created the user "admin"; its password, shown only once: ${password}`],
  };
}

/**
 * Writes the password to the file before the admin exists: after a crash in between, or an unknown outcome in
 * the database, there must be no admin with an unknown password. An existing file was written by such a start
 * or by a concurrent one: its password is used, so that it is valid whichever process creates the admin.
 */
async function passwordInFile(path: string, password: string): Promise<string> {
  try {
    makeFolders(dirname(path), 0o700);
  } catch {
    // The error of the file below explains the failure.
  }
  const hint = 'set GATEWAY_ADMIN_PASSWORD, or start on a terminal once';
  const present = await ensureSecretFile({ path, what: WHAT, hint }, password);
  if (passwordIssue(present) === undefined) return present;
  throw new ConfigError(`${path}: the file holds no valid password; delete it to get a new one`);
}

/** False when another process created the admin first. */
async function insert(options: FirstAdminOptions, password: string): Promise<boolean> {
  const { accounts, passwords, prepared, wall } = options;
  const admin = { username: FIRST_ADMIN, email: `${FIRST_ADMIN}@localhost`, role: 'admin' } as const;
  try {
    // An earlier start may have written another password to the file.
    const hash = await (prepared?.password === password ? prepared.hash : passwords.hash(password));
    await accounts.insertUser(newUser(admin, hash, wall()));
    return true;
  } catch (error) {
    if (hasCode(error, 'DUPLICATE_USERNAME')) return false;
    throw error;
  }
}

/**
 * Deletes the file unless the admin has its password: the password may have been changed on another node or
 * by the command line, or another process created the admin with another password.
 */
async function deleteVoidPassword({ accounts, passwords, passwordFile }: FirstAdminOptions): Promise<void> {
  // A file that cannot be read does not prevent the start, and is not deleted: its password may be valid.
  const written = await readSecretFile({ path: passwordFile, what: WHAT }).catch(() => undefined);
  if (written === undefined) return;
  const admin = await accounts.findUserByName(FIRST_ADMIN);
  if (!(await passwords.matches(written, admin?.passwordHash))) await forgetInitialPassword(passwordFile);
}
