// The form of an API key: `sd_<id>_<secret>`. The id finds the record, the secret proves the right to it and is kept as
// its SHA-256 only: it has 256 random bits, so a slow hash would protect nothing.

import { hash, randomBytes, timingSafeEqual } from 'node:crypto';

const PATTERN = /^sd_([0-9a-f]{16})_([A-Za-z0-9_-]{43})$/;
const ID_BYTES = 8;
const SECRET_BYTES = 32;

/** A key in its parts. */
export interface ParsedKey {
  /** 16 lower-case hexadecimal digits. */
  readonly id: string;
  /** 43 url-safe characters. */
  readonly secret: string;
}

/** A new key; `key` is shown once and kept nowhere. */
export function newKey(): { readonly key: string; readonly id: string; readonly secretHash: string } {
  const id = randomBytes(ID_BYTES).toString('hex');
  const secret = randomBytes(SECRET_BYTES).toString('base64url');
  return { key: `sd_${id}_${secret}`, id, secretHash: hashOf(secret) };
}

/** The parts of a key; undefined when the text has another form. */
export function parseKey(key: string): ParsedKey | undefined {
  const [, id, secret] = PATTERN.exec(key) ?? [];
  return id === undefined || secret === undefined ? undefined : { id, secret };
}

/** Compares in constant time. */
export function isSecretOf(secret: string, secretHash: string): boolean {
  const given = Buffer.from(hashOf(secret), 'hex');
  const kept = Buffer.from(secretHash, 'hex');
  return given.length === kept.length && timingSafeEqual(given, kept);
}

function hashOf(secret: string): string {
  return hash('sha256', secret, 'hex');
}
