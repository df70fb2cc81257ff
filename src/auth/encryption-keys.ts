// Derives the keys that encrypt stored secrets from what the operator gave or from the signing secret.
// A key is never derived from something that lies in the same database: that would be a lock with its key in it.

import { encryptionKeyFrom } from '../persistence/cipher.ts';
import type { SigningSecret } from './signing-secret.ts';

/** Keeps this use of a secret apart from every other, as from signing. */
const LABEL = 'stagedoor encryption at rest';

/**
 * The keys for a vault: the first one encrypts, all of them decrypt. From the texts of GATEWAY_ENCRYPTION_KEY (several
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
