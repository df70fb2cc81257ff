// A file with one line that only its owner may read: the signing secret beside a SQLite file, the first password. It is
// created as a whole and never replaced: several processes that create it at once all get the same line.

import { randomBytes } from 'node:crypto';
import { constants, type FileHandle, link, open, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { ConfigError } from '../config/config-error.ts';

/** The file is one line. */
const LONGEST_BYTES = 4_096;
const ROUNDS = 3;

export interface SecretFile {
  readonly path: string;
  /** Its content, for messages: "the signing secret". */
  readonly what: string;
  /** Advice where it cannot be created. */
  readonly hint: string;
}

/** The line; undefined when there is no such file. ConfigError for one that cannot be read, or that others can read. */
export async function readSecretFile({ path, what }: Omit<SecretFile, 'hint'>): Promise<string | undefined> {
  let file: FileHandle;
  try {
    // Of a pipe the opening would wait for a writer.
    file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw new ConfigError(`${path}: ${what} cannot be read: ${codeOf(error)}`, error);
  }
  try {
    // Of the open file: the path may lead to another one by now.
    const stats = await file.stat();
    const { mode, size, uid } = stats;
    if (!stats.isFile()) throw new ConfigError(`${path}: this is no file with a secret`);
    const me = process.getuid?.();
    if (me !== undefined && uid !== me && uid !== 0)
      throw new ConfigError(`${path}: ${what} belongs to another user, who knows it; "chown" or delete it`);
    if (process.platform !== 'win32' && (mode & 0o077) !== 0)
      throw new ConfigError(
        `${path}: ${what} can be read by other users; "chmod 600" it, or delete it to get a new one (what it encrypted cannot be read then)`,
      );
    if (size > LONGEST_BYTES)
      throw new ConfigError(`${path}: this is no file with a secret: it has ${size} bytes`);
    return (await file.readFile('utf8')).trim();
  } finally {
    await file.close();
  }
}

/**
 * Writes the line unless there is one, with mode 0600; resolves with the present line, whichever process wrote it, once it
 * survives a power cut. Its folder must exist. ConfigError.
 */
export async function ensureSecretFile(file: SecretFile, line: string): Promise<string> {
  // Another round when the other file is gone: another process deleted it because its secret is void.
  for (let round = 0; round < ROUNDS; round += 1) {
    const kept = (await readSecretFile(file)) ?? (await makeSecretFile(file, line));
    if (kept !== undefined) return kept;
  }
  throw cannotBeKept(file, 'EEXIST');
}

/**
 * Makes the file complete under another name first: of several processes one gives its own the right name. Undefined for
 * the others.
 */
async function makeSecretFile(file: SecretFile, line: string): Promise<string | undefined> {
  const { path } = file;
  const draft = `${path}.${randomBytes(6).toString('hex')}`;
  try {
    const handle = await open(draft, 'wx', 0o600);
    try {
      await handle.writeFile(`${line}\n`);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await link(draft, path);
    await syncFolder(dirname(path));
    return line;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return undefined;
    throw cannotBeKept(file, codeOf(error), error);
  } finally {
    await unlink(draft).catch(() => {
      // It was never created; the error above describes the reason.
    });
  }
}

/** The name of a new file is in its folder, which has to be written, too. Windows does that by itself. */
async function syncFolder(path: string): Promise<void> {
  if (process.platform === 'win32') return;
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

function cannotBeKept({ path, what, hint }: SecretFile, code: string, cause?: unknown): ConfigError {
  return new ConfigError(`${path}: ${what} cannot be kept there (${code}); ${hint}`, cause);
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
}
