// The user that programs run as: the gateway must be root to give them another user than its own.

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { promisify } from 'node:util';
import { ConfigError } from '../config/config-error.ts';
import { messageOf } from '../domain/errors/errors.ts';
import type { ProgramUser } from '../domain/instances/command.ts';

/** The longest wait for the directory of users, in ms: it may be on another machine. */
const MAX_LOOKUP_MS = 10_000;

/**
 * The user with this name or number. Throws ConfigError unless this process is root and `getent` knows the user,
 * which is not root: a program must not keep rights that it was meant to lose.
 */
export async function programUser(name: string, ownUid = process.getuid?.()): Promise<ProgramUser> {
  if (ownUid !== 0)
    throw new ConfigError(`stdio.user: only root can start programs as another user (${name})`);
  const asked = promisify(execFile)('getent', ['passwd', '--', name], { timeout: MAX_LOOKUP_MS });
  const { stdout } = await asked.catch((error) => {
    throw new ConfigError(`stdio.user: there is no user "${name}" (${messageOf(error).trim()})`, error);
  });
  const [, , uid, gid, , home = '/'] = stdout.trim().split(':');
  if (Number(uid) === 0) throw new ConfigError(`stdio.user: "${name}" is root itself`);
  return { uid: Number(uid), gid: Number(gid), home: existsSync(home) ? home : '/' };
}
