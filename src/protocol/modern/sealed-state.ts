// Seals what a client has to carry for the gateway from one request to the next: which instance answered, and what that
// one gave it to carry. The client cannot read it, change it, or use it for somebody else or for another request. What
// is sealed, and for whom, is the caller's business.

import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { isJsonObject, type JsonObject } from '../../domain/json.ts';

/** Longest sealed text, in characters. A backend's state that does not fit is refused, and so is a longer text. */
const LONGEST_TEXT = 64 * 1024;
/** How long a client may carry it. */
const LIFE_MS = 60 * 60_000;

/** Says that a text is one of these, and how it was made. */
const VERSION = 'sd1.';
const CIPHER = 'aes-256-gcm';
const SALT_BYTES = 16;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const HEAD_BYTES = SALT_BYTES + NONCE_BYTES + TAG_BYTES;

/** Seals and opens with one key. */
export class Sealer {
  readonly #key: Buffer;
  readonly #now: () => number;

  /** `key` has at least 32 random bytes; whoever has the same one can open it. `now` is a wall clock in ms. */
  constructor(key: Buffer, now: () => number = Date.now) {
    this.#key = key;
    this.#now = now;
  }

  /** The text to carry. It opens only with the same `bound`, for one hour. Undefined when there is too much to carry. */
  seal(content: JsonObject, bound: string): string | undefined {
    const salt = randomBytes(SALT_BYTES);
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, this.#keyOf(salt), nonce, { authTagLength: TAG_BYTES });
    cipher.setAAD(Buffer.from(VERSION + bound));
    const plain = JSON.stringify({ content, until: this.#now() + LIFE_MS });
    const sealed = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final()]);
    const text = VERSION + Buffer.concat([salt, nonce, cipher.getAuthTag(), sealed]).toString('base64url');
    return text.length <= LONGEST_TEXT ? text : undefined;
  }

  /** What was sealed; undefined for everything else: foreign, changed, too old, bound to something else. */
  open(text: string, bound: string): JsonObject | undefined {
    if (!text.startsWith(VERSION) || text.length > LONGEST_TEXT) return undefined;
    const encoded = text.slice(VERSION.length);
    const bytes = Buffer.from(encoded, 'base64url');
    // The decoder skips what it does not know, which would let many texts stand for one.
    if (bytes.length < HEAD_BYTES || bytes.toString('base64url') !== encoded) return undefined;
    const plain = this.#decrypt(bytes, bound);
    if (plain === undefined) return undefined;
    const { content, until } = plain;
    const isCurrent = typeof until === 'number' && until > this.#now();
    return isCurrent && isJsonObject(content) ? content : undefined;
  }

  #decrypt(bytes: Buffer, bound: string): JsonObject | undefined {
    const salt = bytes.subarray(0, SALT_BYTES);
    const nonce = bytes.subarray(SALT_BYTES, SALT_BYTES + NONCE_BYTES);
    const tag = bytes.subarray(SALT_BYTES + NONCE_BYTES, HEAD_BYTES);
    const decipher = createDecipheriv(CIPHER, this.#keyOf(salt), nonce, { authTagLength: TAG_BYTES });
    decipher.setAAD(Buffer.from(VERSION + bound));
    decipher.setAuthTag(tag);
    try {
      const plain = Buffer.concat([decipher.update(bytes.subarray(HEAD_BYTES)), decipher.final()]);
      const value: unknown = JSON.parse(plain.toString('utf8'));
      return isJsonObject(value) ? value : undefined;
    } catch {
      return undefined; // changed, sealed with another key, or bound to something else
    }
  }

  /** A key for each text, so that the number of texts has no bound that a nonce would set. */
  #keyOf(salt: Buffer): Buffer {
    return Buffer.from(hkdfSync('sha256', this.#key, salt, 'sealed state of MCP clients', 32));
  }
}
