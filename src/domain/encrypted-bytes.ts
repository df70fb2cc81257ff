// Encrypts texts with AES-256-GCM, and derives keys: for the secrets in a database (persistence/cipher.ts), and for what
// clients keep for the gateway (protocol/modern/state-cipher.ts, authorization-server/refresh-grant.ts).

import { type CipherKey, createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';

const CIPHER = 'aes-256-gcm';
const KEY_BYTES = 32;
/** The bytes of the iv, random for each text: collisions become likely after 2^32 texts under one key (NIST SP 800-38D, 8.3). */
const IV_BYTES = 12;
const TAG_BYTES = 16;
/** The bytes of an encrypted empty text. */
export const MIN_ENCRYPTED_BYTES = IV_BYTES + TAG_BYTES;

/**
 * Derives a key of 32 bytes from a secret, which is random text of at least 32 bytes and no password: HKDF with SHA-256
 * (RFC 5869), no salt. `label` names the purpose of the key: keys of one secret with different labels are independent.
 */
export function encryptionKeyFrom(secret: string | Uint8Array, label: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', secret, '', label, KEY_BYTES));
}

/**
 * Encrypts a text with AES-256-GCM: the iv, the encrypted text and its tag. `purpose`: a text
 * that was encrypted for one cannot be decrypted for another. `given`: at
 * least 12 bytes for the iv, which the caller uses with this key for no other text. Default: random.
 */
export function encryptBytes(key: CipherKey, text: string, purpose: string, given?: Buffer): Buffer {
  const iv = given?.subarray(0, IV_BYTES) ?? randomBytes(IV_BYTES);
  const cipher = createCipheriv(CIPHER, key, iv).setAAD(Buffer.from(purpose));
  return Buffer.concat([iv, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]);
}

/** The text of `encryptBytes`. Throws for another key or purpose, and for bytes that were changed. */
export function decryptBytes(key: CipherKey, bytes: Buffer, purpose: string): string {
  const decipher = createDecipheriv(CIPHER, key, bytes.subarray(0, IV_BYTES), { authTagLength: TAG_BYTES })
    .setAAD(Buffer.from(purpose))
    .setAuthTag(bytes.subarray(-TAG_BYTES));
  const text = decipher.update(bytes.subarray(IV_BYTES, -TAG_BYTES));
  return Buffer.concat([text, decipher.final()]).toString('utf8');
}
