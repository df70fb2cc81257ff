// Files with one secret line, such as the signing secret and the first password.

import { randomBytes } from 'node:crypto';
import { constants, type FileHandle, link, open, unlink, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { ConfigError } from '../../config/config-error.ts';
import { contentUpTo } from '../../config/read-file.ts';
import { codeOf } from '../../domain/errors/errors.ts';
import { isCleanText, utf8Text } from '../../domain/text.ts';

/** The most bytes of a file with one line. */
const MAX_FILE_BYTES = 4_096;
const ROUNDS = 3;

interface SecretFile {
  readonly path: string;
  /** The name of the content, for messages: "the signing secret". */
  readonly what: string;
  /** Advice when it cannot be created. */
  readonly hint: string;
}

/**
 * The line in the file; undefined when there is no file. Throws ConfigError for a file that cannot be read, or that others
 * can read.
 */
export async function readSecretFile({ path, what }: Omit<SecretFile, 'hint'>): Promise<string | undefined> {
  const unreadable = (error: unknown) =>
    new ConfigError(`${path}: ${what} cannot be read: ${codeOf(error) ?? 'unknown'}`, error);
  let file: FileHandle;
  try {
    // O_NONBLOCK: opening a pipe would wait for a writer.
    file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw unreadable(error);
  }
  try {
    // Checks the open file, because the path may name another file by now.
    const stats = await file.stat();
    const { mode, size, uid } = stats;
    if (!stats.isFile()) throw new ConfigError(`${path}: not a file with a secret`);
    const me = process.getuid?.();
    if (me !== undefined && uid !== me && uid !== 0)
      throw new ConfigError(`${path}: ${what} belongs to another user, who knows it; "chown" or delete it`);
    if (process.platform !== 'win32' && (mode & 0o077) !== 0)
      throw new ConfigError(
        `${path}: ${what} can be read by other users; "chmod 600" it, or delete it to get a new one (what it encrypted cannot be read then)`,
      );
    const content = size > MAX_FILE_BYTES ? undefined : await contentUpTo(MAX_FILE_BYTES, file);
    if (content === undefined)
      throw new ConfigError(`${path}: not a file with a secret: it has over ${MAX_FILE_BYTES} bytes`);
    const text = utf8Text(content).trim();
    if (!isCleanText(text)) throw new ConfigError(`${path}: ${what} has NUL characters`);
    return text;
  } catch (error) {
    throw error instanceof ConfigError ? error : unreadable(error);
  } finally {
    await file.close();
  }
}

/**
 * Writes the line, with mode 0600, unless the file exists; resolves with the present line, whichever process
 * wrote it, once it survives a power failure. The folder must exist. Throws ConfigError.
 */
export async function ensureSecretFile(file: SecretFile, line: string): Promise<string> {
  // This is repeated because another process may have deleted its own file meanwhile, whose secret was void.
  for (let round = 0; round < ROUNDS; round += 1) {
    const kept = (await readSecretFile(file)) ?? (await makeSecretFile(file, line));
    if (kept !== undefined) return kept;
  }
  throw cannotBeKept(file, 'EEXIST');
}

/** Writes the complete file under another name, then links it to `path`. Undefined when another process linked its file first. */
async function makeSecretFile(file: SecretFile, line: string): Promise<string | undefined> {
  const { path } = file;
  const draft = `${path}.${randomBytes(6).toString('hex')}`;
  try {
    await writeFile(draft, `${line}\n`, { flag: 'wx', mode: 0o600, flush: true });
    await link(draft, path);
    await syncFolder(dirname(path));
    return line;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return undefined;
    throw cannotBeKept(file, codeOf(error) ?? 'unknown', error);
  } finally {
    await unlink(draft).catch(() => {
      // The file was never created; the error above describes the reason.
    });
  }
}

/** Makes the name of a new file durable. Windows does this by itself. */
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
  return new ConfigError(`${path}: ${what} cannot be stored there (${code}); ${hint}`, cause);
}
