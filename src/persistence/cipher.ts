// Encrypts the secrets of backends in a database. An encrypted text is `v1.<key id>.<base64url of iv, ciphertext and tag>`,
// see domain/encrypted-bytes.ts. The caller provides the keys.

import { createSecretKey, hash } from 'node:crypto';
import { decryptBytes, encryptBytes, MIN_ENCRYPTED_BYTES } from '../domain/encrypted-bytes.ts';
import { OperatorError } from '../domain/errors/errors.ts';

/** Encrypts and decrypts texts. A text that was encrypted for one purpose cannot be decrypted for another. */
export interface Cipher {
  /** Encrypts a text. `purpose`: template, instance and field of the text. */
  encrypt(text: string, purpose: string): string;
  /** Decrypts a text. Throws CipherError when no key fits or the text was changed. */
  decrypt(encrypted: string, purpose: string): string;
  /** Whether the text names the key that encrypts. That does not show whether it can be decrypted. */
  isCurrent(encrypted: string): boolean;
}

/** The error of a text that cannot be encrypted or decrypted. The message may name the key, never a part of the text. */
export class CipherError extends OperatorError {
  override readonly name = 'CipherError';
}

const CIPHER_FORM = 'v1';
const ENCRYPTED = /^v1\.([0-9a-f]{8})\.([A-Za-z0-9_-]+)$/;

/**
 * A cipher with one or more keys of 32 bytes each: the first encrypts, all decrypt. To rotate, put a new key first and remove
 * the old key when no text needs it any more. RangeError without a key; `encrypt` throws one for a key of another length.
 */
export function createCipher(keys: readonly Uint8Array[]): Cipher {
  // The id identifies a key and does not reveal it. Decryption with the bytes of a key takes five times as long.
  const ring = keys.map((key) => ({ id: hash('sha256', key).slice(0, 8), key: createSecretKey(key) }));
  const [first] = ring;
  if (first === undefined) throw new RangeError('a cipher needs a key');
  return {
    encrypt(text, purpose) {
      // Decryption would return another character for a lone surrogate.
      if (!text.isWellFormed()) throw new CipherError('the text to be encrypted is not well-formed Unicode');
      return `${CIPHER_FORM}.${first.id}.${encryptBytes(first.key, text, purpose).toString('base64url')}`;
    },
    isCurrent: (encrypted) => encrypted.startsWith(`${CIPHER_FORM}.${first.id}.`),
    decrypt(encrypted, purpose) {
      const [, id = '', encoded = ''] = ENCRYPTED.exec(encrypted) ?? [];
      const bytes = Buffer.from(encoded, 'base64url');
      if (bytes.length < MIN_ENCRYPTED_BYTES) throw new CipherError('this is not an encrypted text');
      const known = ring.find((entry) => entry.id === id);
      if (known === undefined) {
        throw new CipherError(`encrypted with the key ${id}, which is not among the encryption keys`);
      }
      try {
        return decryptBytes(known.key, bytes, purpose);
      } catch (thrown) {
        throw new CipherError(
          `encrypted with the key ${id}, but changed since, or encrypted for another purpose`,
          { cause: thrown },
        );
      }
    },
  };
}
