// Reads or creates the secrets that sign tokens: a setting of the operator, a file beside a SQLite database, or a value in a
// server database. Encryption keys are derived only from a secret outside the database, since a key in the same database
// would protect nothing; hence the two steps.

import { randomBytes } from 'node:crypto';
import { ConfigError } from '../../config/config-error.ts';
import { encryptionKeyFrom } from '../../domain/encrypted-bytes.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Store } from '../../persistence/store.ts';
import { ensureSecretFile } from './secret-file.ts';
import type { Secrets } from './secrets.ts';

const SETTING_NAME = 'signing_secret';

export interface SigningSecrets {
  readonly secrets: Secrets;
  /** True when the secret is in the database: read access to it is enough to sign tokens. */
  readonly isInDatabase: boolean;
}

const HINT =
  'set GATEWAY_SECRET_KEY instead; a database there also needs a folder that this user may write to';

/**
 * The secrets outside the database: the configured ones, else the one in `keyFile`, which is created when it is
 * missing. Undefined without both: then sharedSecret applies. Throws ConfigError for a secret that is too short, and
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
 * end with it. Throws DATABASE_UNAVAILABLE. `mayMake`: false for a process that joins others, which have made it; ConfigError
 * when they have not.
 */
export async function sharedSecret(
  { kind, settings }: Pick<Store, 'kind' | 'settings'>,
  mayMake = true,
): Promise<SigningSecrets> {
  if (kind === 'memory') return { secrets: [Buffer.from(newSecret())], isInDatabase: false };
  const before = await settings.read(SETTING_NAME);
  if (before === undefined && !mayMake) throw new ConfigError('the signing secret is gone: put it back');
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
