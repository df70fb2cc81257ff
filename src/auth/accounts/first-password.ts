// Hashes the password of the first admin before there is a database to ask for one: another thread does it while the rest of the
// program is loaded, and the start does not wait for it. Source: ADR 251.

import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import type { Config } from '../../config/config.ts';
import { passwordIssue } from '../../domain/accounts/account.ts';
import { describeDatabase } from '../../persistence/database-url.ts';
import type { Passwords } from './passwords.ts';

export interface FirstPassword {
  readonly password: string;
  readonly hash: Promise<string>;
}

/** 18 random bytes are 24 url-safe characters. */
const PASSWORD_BYTES = 18;

/** A password of 24 characters, with 144 random bits. */
export function randomPassword(): string {
  return randomBytes(PASSWORD_BYTES).toString('base64url');
}

/**
 * The result is undefined when no admin will be created, or when only the database can tell. Never fails: the start reports
 * wrong settings.
 */
export function beginFirstPassword(
  config: Pick<Config, 'authEnabled' | 'adminPassword' | 'databaseUrl' | 'folder'>,
  passwords: Passwords,
): FirstPassword | undefined {
  const { authEnabled, adminPassword: password = randomPassword() } = config;
  if (!authEnabled || passwordIssue(password) !== undefined || !isNew(config)) return undefined;
  const hash = passwords.hash(password);
  hash.catch(() => {
    // Reported where it is awaited, which a start that fails earlier does not reach.
  });
  return { password, hash };
}

/** True for a database in memory, and for a file that does not exist yet. */
function isNew({ databaseUrl, folder }: Pick<Config, 'databaseUrl' | 'folder'>): boolean {
  try {
    const { place, file } = describeDatabase(databaseUrl, folder);
    return file === undefined ? place === 'memory' : !existsSync(file);
  } catch {
    return false; // not a URL of a database
  }
}
