// Finds the secret that signs tokens, or makes one: the operator's, a file beside a SQLite database, a setting in a server
// database. In two steps, because a secret outside the database also encrypts what is in it (below).

import { randomBytes } from 'node:crypto';
import { ConfigError } from '../config/config-error.ts';
import { LIMITS } from '../domain/limits.ts';
import { encryptionKeyFrom } from '../persistence/cipher.ts';
import type { Store } from '../persistence/store.ts';
import { ensureSecretFile } from './secret-file.ts';

const SETTING_NAME = 'signing_secret';

export interface SigningSecret {
  readonly secret: Uint8Array;
  /** `process`: it ends with this process, and so do its tokens. */
  readonly source: 'configured' | 'file' | 'database' | 'process';
}

/** Without the right to write a key beside a SQLite file, the database file cannot be written either. */
const HINT = 'set GATEWAY_SECRET_KEY instead; a database there needs a folder that this user may write, too';

/**
 * The secret that is not in the database: the configured one, else the one in `keyFile`, which is made when it is not
 * there. Undefined when there is neither: then sharedSecret. ConfigError for a secret that is too short, and for a file
 * that cannot be made or read or that others can read.
 */
export async function localSecret(sources: {
  /** Text of GATEWAY_SECRET_KEY. */
  readonly configured?: string | undefined;
  /** `gateway.key` beside a SQLite file. */
  readonly keyFile?: string | undefined;
}): Promise<SigningSecret | undefined> {
  const { configured, keyFile } = sources;
  if (configured !== undefined)
    return { secret: longEnough(configured, 'GATEWAY_SECRET_KEY'), source: 'configured' };
  if (keyFile === undefined) return undefined;
  const file = { path: keyFile, what: 'the signing secret', hint: HINT };
  const kept = await ensureSecretFile(file, newSecret());
  return { secret: longEnough(kept, keyFile), source: 'file' };
}

/** The secret of all gateways on a server database; of this process alone when nothing is kept. DATABASE_UNAVAILABLE. */
export async function sharedSecret({
  kind,
  settings,
}: Pick<Store, 'kind' | 'settings'>): Promise<SigningSecret> {
  if (kind === 'memory') return { secret: Buffer.from(newSecret()), source: 'process' };
  const kept = await settings.ensure(SETTING_NAME, newSecret());
  return { secret: longEnough(kept, `the setting ${SETTING_NAME} of the database`), source: 'database' };
}

/** The warning at start when read access to the database allows signing tokens; undefined otherwise. */
export function secretWarning({ source }: SigningSecret): string | undefined {
  if (source !== 'database') return undefined;
  return 'the signing secret is kept in the database: read access to it is enough to sign tokens; set GATEWAY_SECRET_KEY';
}

/** 256 random bits as text, so that a file and a setting hold the same. */
function newSecret(): string {
  return randomBytes(LIMITS.secretBytes).toString('base64url');
}

function longEnough(text: string, source: string): Uint8Array {
  const secret = Buffer.from(text);
  if (secret.byteLength >= LIMITS.secretBytes) return secret;
  throw new ConfigError(`${source}: the signing secret needs at least ${LIMITS.secretBytes} bytes`);
}

// Derives the keys that encrypt stored secrets from what the operator gave or from the signing secret. A key is never derived
// from a value in the same database: that would protect nothing.

/** Keeps this use of a secret apart from every other, as from signing. */
const LABEL = 'stagedoor encryption at rest';

/**
 * The keys for a cipher: the first one encrypts, all of them decrypt. From the texts of GATEWAY_ENCRYPTION_KEY (several
 * while one replaces another), and after those from a signing secret that is not in the database, so that what it
 * encrypted stays readable. None: nothing sensitive can be stored.
 */
export function encryptionKeys(sources: {
  readonly configured: readonly string[];
  readonly signing?: SigningSecret | undefined;
}): Uint8Array[] {
  const { configured, signing } = sources;
  const isOutside = signing?.source === 'configured' || signing?.source === 'file';
  const secrets = [...configured, ...(isOutside && signing !== undefined ? [signing.secret] : [])];
  return secrets.map((secret) => encryptionKeyFrom(secret, LABEL));
}
