// Encrypts what must not be readable in a database: secrets of backends. A sealed text is
// `v1.<key id>.<base64url of iv, ciphertext and tag>`, AES-256-GCM. Which keys there are is decided by the caller.

import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto';

/** Seals and opens texts. What is sealed for one purpose cannot be opened for another. */
export interface Cipher {
  /** `purpose` names the owner of the text: template, instance and field. */
  seal(text: string, purpose: string): string;
  /** Throws VaultError when no key fits or the text was changed. */
  open(sealed: string, purpose: string): string;
}

/** A text that cannot be sealed or opened. The message names the key at most, never what was or is in the text. */
export class CipherError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'VaultError';
  }
}

const VERSION = 'v1';
const CIPHER = 'aes-256-gcm';
const KEY_BYTES = 32;
/** A random one per text: collisions come into reach after 2^32 texts under one key (NIST SP 800-38D, 8.3). */
const IV_BYTES = 12;
const TAG_BYTES = 16;
const SEALED = /^v1\.([0-9a-f]{8})\.([A-Za-z0-9_-]+)$/;

/**
 * A vault of one or more keys of 32 bytes each: the first seals, all open. To rotate, put a new key in front and drop
 * the old one when nothing is sealed with it any more. Throws RangeError for no key or one of another length.
 */
export function createCipher(keys: readonly Uint8Array[]): Cipher {
  for (const { byteLength } of keys) {
    if (byteLength !== KEY_BYTES) throw new RangeError(`a key has ${KEY_BYTES} bytes, not ${byteLength}`);
  }
  const ring = keys.map((key) => ({ id: keyIdOf(key), key: Uint8Array.from(key) }));
  const [sealing] = ring;
  if (sealing === undefined) throw new RangeError('a vault needs a key');
  return {
    seal(text, purpose) {
      // A lone surrogate would come back as another character.
      if (!text.isWellFormed()) throw new CipherError('the text to be sealed is not well-formed Unicode');
      const iv = randomBytes(IV_BYTES);
      const cipher = createCipheriv(CIPHER, sealing.key, iv).setAAD(Buffer.from(purpose));
      const sealed = Buffer.concat([iv, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]);
      return `${VERSION}.${sealing.id}.${sealed.toString('base64url')}`;
    },
    open(sealed, purpose) {
      const [, id = '', encoded = ''] = SEALED.exec(sealed) ?? [];
      const bytes = Buffer.from(encoded, 'base64url');
      if (bytes.length < IV_BYTES + TAG_BYTES) throw new CipherError('this is not a sealed text');
      const fitting = ring.find((entry) => entry.id === id);
      if (fitting === undefined) {
        throw new CipherError(`sealed with the key ${id}, which is not among the encryption keys`);
      }
      try {
        return decrypt(fitting.key, bytes, purpose);
      } catch (thrown) {
        throw new CipherError(
          `sealed with the key ${id}, but changed since, or sealed for something else`,
          thrown,
        );
      }
    },
  };
}

/**
 * 32 bytes for `createVault` from a secret: HKDF with SHA-256 (RFC 5869) and no salt. Secrets are random texts of at least
 * 32 bytes, not passwords. `label` says what the key is for: keys of one secret with two labels have nothing in common.
 */
export function encryptionKeyFrom(secret: string | Uint8Array, label: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', secret, '', label, KEY_BYTES));
}

/** The first 8 hexadecimal digits of the key's SHA-256: enough to find it again, too little to learn it. */
function keyIdOf(key: Uint8Array): string {
  return createHash('sha256').update(key).digest('hex').slice(0, 8);
}

function decrypt(key: Uint8Array, bytes: Buffer, purpose: string): string {
  const decipher = createDecipheriv(CIPHER, key, bytes.subarray(0, IV_BYTES), { authTagLength: TAG_BYTES })
    .setAAD(Buffer.from(purpose))
    .setAuthTag(bytes.subarray(-TAG_BYTES));
  const text = decipher.update(bytes.subarray(IV_BYTES, -TAG_BYTES));
  return Buffer.concat([text, decipher.final()]).toString('utf8');
}
