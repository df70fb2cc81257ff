// API keys: their format `sd_<id>_<secret>`, and the times of their use. The record is found by the id. Only the
// SHA-256 of the secret is stored: the secret has 256 random bits, so a slow hash would not protect it better.

import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Clock } from '../../domain/time/clock.ts';
import type { AccountStore } from '../../persistence/store.ts';
import { Flusher } from '../flusher.ts';

const PATTERN = /^sd_([0-9a-f]{16})_([A-Za-z0-9_-]{43})$/;
const ID_BYTES = 8;
const SECRET_BYTES = 32;

/** A new key; `key` is shown once and not stored. */
export function newKey(): { readonly key: string; readonly id: string; readonly secretHash: string } {
  const id = randomBytes(ID_BYTES).toString('hex');
  const secret = randomBytes(SECRET_BYTES).toString('base64url');
  return { key: `sd_${id}_${secret}`, id, secretHash: hashOf(secret) };
}

/** True for an API key; tokens contain dots and never start like this. */
export function isKey(credential: string): boolean {
  return credential.startsWith('sd_');
}

/** The result is undefined for text of another format. */
export function parseKey(key: string): { readonly id: string; readonly secret: string } | undefined {
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

// Stores the times of use of API keys once a minute: `last_used_at` is for display only.

const FLUSH_MS = 60_000;
const MAX_KEYS = 10_000;

/** Collects the times at which keys were used, and writes them in groups; `close` writes the last ones. */
export class KeyUse {
  readonly #accounts: Pick<AccountStore, 'touchApiKeys'>;
  readonly #flusher: Flusher;
  #lastUsedMs = new Map<string, number>();

  constructor(accounts: Pick<AccountStore, 'touchApiKeys'>, clock: Clock) {
    this.#flusher = new Flusher(FLUSH_MS, () => this.#write(), clock);
    this.#accounts = accounts;
  }

  used(keyId: string, atMs: number): void {
    if (this.#lastUsedMs.size === 0) this.#flusher.later();
    if (this.#lastUsedMs.size < MAX_KEYS || this.#lastUsedMs.has(keyId)) this.#lastUsedMs.set(keyId, atMs);
  }

  /** Writes all times, within 1 s. Never rejects: failed writes are repeated later. */
  flush(): Promise<void> {
    return this.#flusher.beforeReading();
  }

  close(): Promise<void> {
    return this.#flusher.close();
  }

  async #write(): Promise<boolean> {
    const writing = this.#lastUsedMs;
    this.#lastUsedMs = new Map();
    try {
      const times = [...writing].map(([id, atMs]) => [id, new Date(atMs).toISOString()] as const);
      await this.#accounts.touchApiKeys(new Map(times));
    } catch {
      // The database is unavailable. Times that were recorded meanwhile are newer and are not overwritten.
      this.#lastUsedMs = new Map([...writing, ...this.#lastUsedMs]);
    }
    return this.#lastUsedMs.size > 0;
  }
}
