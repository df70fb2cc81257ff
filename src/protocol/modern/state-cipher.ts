// Encrypts the state that a client carries for the gateway from one request to the next: the instance that answered, and
// the state of that instance. The client can neither read nor change the text, nor use it for another owner or another
// request. The caller decides on the content, and on the key that binds it.

import { createHmac, hkdfSync, randomBytes } from 'node:crypto';
import { decryptBytes, encryptBytes } from '../../domain/encrypted-bytes.ts';
import { isJsonObject, type JsonObject } from '../../domain/json/json.ts';
import { type Clock, HOUR_MS } from '../../domain/time/clock.ts';

/** The longest encrypted text, in characters. Longer texts are refused, and so is a backend's state that does not fit. */
const MAX_TEXT_LENGTH = 64 * 1024;
const VALID_MS = HOUR_MS;

/** Marks an encrypted text and its format. */
const STATE_FORM = 'sd2.';
const SALT_BYTES = 16;

export type StateKeys = readonly [Buffer, ...Buffer[]];

/** Encrypts with the first key, and decrypts with all keys. */
export class StateCipher {
  readonly #keys: StateKeys;
  readonly #wall: Clock['wall'];

  /**
   * `keys`: at least 32 random bytes each; every holder of a key can decrypt its texts. Texts expire by wall time,
   * since another node may read them, or this one after a restart.
   */
  constructor(keys: StateKeys, { wall }: Clock) {
    this.#wall = wall;
    this.#keys = keys;
  }

  /**
   * The encrypted text, which can be decrypted only with the same `bound`, by default for one hour. Undefined
   * when the content is too long.
   */
  encrypt(content: JsonObject, bound: string, validMs = VALID_MS): string | undefined {
    return this.#encrypted({ content, until: this.#wall() + validMs }, bound, randomBytes(SALT_BYTES));
  }

  /**
   * Encrypts like `encrypt`, but without expiry and with the same text for the same content, so that its holder can
   * compare texts.
   */
  encryptEqually(content: JsonObject, bound: string): string | undefined {
    // The salt, and with it the key and the iv, follows from the content: no key and iv are used for two contents (RFC 5297).
    const mac = createHmac('sha256', this.#keys[0])
      .update(JSON.stringify([STATE_FORM, bound, content]))
      .digest();
    return this.#encrypted({ content }, bound, mac.subarray(0, SALT_BYTES), mac.subarray(SALT_BYTES));
  }

  #encrypted(plain: JsonObject, bound: string, salt: Buffer, iv?: Buffer): string | undefined {
    const encrypted = encryptBytes(
      derivedKey(this.#keys[0], salt),
      JSON.stringify(plain),
      STATE_FORM + bound,
      iv,
    );
    const text = STATE_FORM + Buffer.concat([salt, encrypted]).toString('base64url');
    return text.length <= MAX_TEXT_LENGTH ? text : undefined;
  }

  /** The content; undefined for any other text: foreign, changed, expired, or bound to something else. */
  decrypt(text: string, bound: string): JsonObject | undefined {
    if (!text.startsWith(STATE_FORM) || text.length > MAX_TEXT_LENGTH) return undefined;
    const encoded = text.slice(STATE_FORM.length);
    const bytes = Buffer.from(encoded, 'base64url');
    // The decoder skips unknown characters: many texts would have the same bytes.
    if (bytes.toString('base64url') !== encoded) return undefined;
    for (const key of this.#keys) {
      try {
        const derived = derivedKey(key, bytes.subarray(0, SALT_BYTES));
        const plain = decryptBytes(derived, bytes.subarray(SALT_BYTES), STATE_FORM + bound);
        const { content, until = Number.POSITIVE_INFINITY } = Object(JSON.parse(plain));
        return until > this.#wall() && isJsonObject(content) ? content : undefined;
      } catch {
        // Too short, changed, encrypted with another key, or bound to something else.
      }
    }
    return undefined;
  }
}

/** A key for one text. With one key for all texts, random nonces would bound the number of texts. */
function derivedKey(key: Buffer, salt: Buffer): Buffer {
  return Buffer.from(hkdfSync('sha256', key, salt, 'sealed state of MCP clients', 32));
}
