// Reads or creates the secrets that sign tokens: a setting of the operator, a file beside a SQLite database, or a value in a
// server database. Encryption keys are derived only from a secret outside the database, since a key in the same database
// would protect nothing; hence the two steps. Also reads and writes files with one secret line, such as the first password.

import { randomBytes } from 'node:crypto';
import { constants, type FileHandle, link, open, unlink, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { ConfigError } from '../../config/config-error.ts';
import { codeOf } from '../../domain/errors/errors.ts';
import { LIMITS } from '../../domain/limits.ts';
import { encryptionKeyFrom } from '../../persistence/cipher.ts';
import type { Store } from '../../persistence/store.ts';
import type { Secrets } from './secrets.ts';

const SETTING_NAME = 'signing_secret';

export interface SigningSecrets {
  readonly secrets: Secrets;
  /** Read access to the database is enough to sign tokens. */
  readonly isInDatabase: boolean;
}

const HINT =
  'set GATEWAY_SECRET_KEY instead; a database there also needs a folder that this user may write to';

/**
 * The secrets outside the database: the configured ones, else the one in `keyFile`, which is created when it is
 * missing. Undefined without both: then sharedSecret applies. ConfigError for a secret that is too short, and
 * for a file that cannot be created or read or that others can read.
 */
export async function localSecrets(sources: {
  /** Texts of GATEWAY_SECRET_KEY. */
  readonly configured?: readonly string[] | undefined;
  /** `gateway.key` beside a SQLite file. */
  readonly keyFile?: string | undefined;
}): Promise<Secrets | undefined> {
  const { configured = [], keyFile } = sources;
  const [first, ...others] = configured.map((text) => checkedSecret(text, 'GATEWAY_SECRET_KEY'));
  if (first !== undefined) return [first, ...others];
  if (keyFile === undefined) return undefined;
  const file = { path: keyFile, what: 'the signing secret', hint: HINT };
  return [checkedSecret(await ensureSecretFile(file, newSecret()), keyFile)];
}

/**
 * The secret that all gateways on one database server share; without a database, a secret of this process alone, whose tokens
 * end with it. DATABASE_UNAVAILABLE.
 */
export async function sharedSecret({
  kind,
  settings,
}: Pick<Store, 'kind' | 'settings'>): Promise<SigningSecrets> {
  if (kind === 'memory') return { secrets: [Buffer.from(newSecret())], isInDatabase: false };
  const before = await settings.read(SETTING_NAME);
  if (before === undefined) await settings.exchange(SETTING_NAME, undefined, newSecret());
  const kept = before ?? (await settings.read(SETTING_NAME)) ?? ''; // another gateway may have written it first
  const secret = checkedSecret(kept, `the setting ${SETTING_NAME} of the database`);
  return { secrets: [secret], isInDatabase: true };
}

/** 256 random bits, as text for a file or a setting. */
function newSecret(): string {
  return randomBytes(LIMITS.secretBytes).toString('base64url');
}

function checkedSecret(text: string, source: string): Uint8Array {
  const secret = Buffer.from(text);
  if (secret.byteLength >= LIMITS.secretBytes) return secret;
  throw new ConfigError(`${source}: the signing secret needs at least ${LIMITS.secretBytes} bytes`);
}

/** Separates the keys from other uses of the secret, such as signing. */
const LABEL = 'stagedoor encryption at rest';

/**
 * The keys for a cipher: the first encrypts, all of them decrypt. From the texts of GATEWAY_ENCRYPTION_KEY
 * (several during a rotation), then from the signing secrets outside the database, so that the values they
 * encrypted stay readable. With no keys, nothing sensitive can be stored.
 */
export function encryptionKeys(configured: readonly string[], local: readonly Uint8Array[]): Uint8Array[] {
  return [...configured, ...local].map((secret) => encryptionKeyFrom(secret, LABEL));
}

/** Most bytes of a file with one line. */
const LONGEST_BYTES = 4_096;
const ROUNDS = 3;

export interface SecretFile {
  readonly path: string;
  /** What the file contains, for messages: "the signing secret". */
  readonly what: string;
  /** Advice when it cannot be created. */
  readonly hint: string;
}

/** The line in the file; undefined when there is no file. ConfigError for a file that cannot be read, or that others can read. */
export async function readSecretFile({ path, what }: Omit<SecretFile, 'hint'>): Promise<string | undefined> {
  let file: FileHandle;
  try {
    // O_NONBLOCK: opening a pipe would wait for a writer.
    file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw new ConfigError(`${path}: ${what} cannot be read: ${codeOf(error) ?? 'unknown'}`, error);
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
    if (size > LONGEST_BYTES)
      throw new ConfigError(`${path}: not a file with a secret: it has ${size} bytes`);
    return (await file.readFile('utf8')).trim();
  } finally {
    await file.close();
  }
}

/**
 * Writes the line, with mode 0600, unless the file exists; resolves with the present line, whichever process
 * wrote it, once it survives a power failure. The folder must exist. ConfigError.
 */
export async function ensureSecretFile(file: SecretFile, line: string): Promise<string> {
  // Repeated because another process may have deleted its own file meanwhile, whose secret was void.
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
