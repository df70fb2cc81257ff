// The keys that sign access tokens: ES256, in one row that all nodes share.

import { createPublicKey, generateKeyPair, hash, type KeyObject } from 'node:crypto';
import { promisify } from 'node:util';
import Type from 'typebox';
import { type Clock, DAY_MS } from '../../domain/time/clock.ts';
import { oauthKey, rowReader } from '../../persistence/oauth-rows.ts';
import type { OAuthRow, OAuthStore } from '../../persistence/oauth-store.ts';

interface SigningKey {
  readonly kid: string;
  /** The private key as a JSON Web Key. */
  readonly jwk: Readonly<Record<string, string>>;
  /** The time of creation, in ms since 1970. */
  readonly createdMs: number;
}

const readKeys: (row: OAuthRow) => readonly SigningKey[] = rowReader(
  Type.Array(
    Type.Object({
      kid: Type.String(),
      jwk: Type.Record(Type.String(), Type.String()),
      createdMs: Type.Number(),
    }),
  ),
);

export interface KeySet {
  /** Version of the row: it changes with the keys. */
  readonly version: number;
  /** The key that signs. */
  readonly signing: SigningKey;
  /** All that verify, the signing one included. */
  readonly published: readonly SigningKey[];
}

/** A key signs from this age on, unless it is the first. */
const ANNOUNCED_MS = DAY_MS;
const ROTATED_MS = 90 * DAY_MS;
/** The longest life of an access token. */
const TOKEN_MS = DAY_MS;
/** The longest time until a change of another node is seen. */
const CHECK_MS = 10_000;
const ROUNDS = 5;
const KEY = oauthKey('key', 'signing');

interface OAuthKeysOptions {
  readonly clock: Clock;
  readonly store: Pick<OAuthStore, 'find' | 'replace' | 'delete'>;
}

/**
 * Reads the keys that sign access tokens, and makes the next one when it is time. A new key is published a day before
 * it signs, so that no verifier meets a key that it has not seen; an old one stays published until its last token has
 * expired. Source: ADR 202.
 */
export class OAuthKeys {
  readonly #options: OAuthKeysOptions;
  #known: { readonly keys: KeySet; readonly atMs: number } | undefined;
  #reading: Promise<KeySet> | undefined;
  #publicKeys: { readonly version: number; readonly keys: ReadonlyMap<string, KeyObject> } | undefined;

  constructor(options: OAuthKeysOptions) {
    this.#options = options;
  }

  /**
   * The present keys; makes the first, and the next one when it is time. Throws DATABASE_UNAVAILABLE, unless they were read
   * before.
   */
  async current(): Promise<KeySet> {
    const { now } = this.#options.clock;
    if (this.#known !== undefined && now() - this.#known.atMs < CHECK_MS) return this.#known.keys;
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
    });
    try {
      return await this.#reading;
    } catch (thrown) {
      if (this.#known === undefined) throw thrown;
      return this.#known.keys;
    }
  }

  /** The keys that verify, by `kid`. */
  async publicKeys(): Promise<ReadonlyMap<string, KeyObject>> {
    const { version, published } = await this.current();
    if (this.#publicKeys?.version !== version) {
      const keys = published.map(
        ({ kid, jwk }) => [kid, createPublicKey({ key: jwk, format: 'jwk' })] as const,
      );
      this.#publicKeys = { version, keys: new Map(keys) };
    }
    return this.#publicKeys.keys;
  }

  /** The next use reads the row again: another node may have changed it. */
  forget(): void {
    this.#known &&= { ...this.#known, atMs: Number.NEGATIVE_INFINITY };
  }

  async #read(): Promise<KeySet> {
    const { store, clock } = this.#options;
    for (let round = 0; ; round += 1) {
      const [row] = await store.find('key', [KEY]);
      const stored = row === undefined ? [] : readKeys(row);
      const keys = await rotated(stored, clock.wall());
      const version = keys === stored ? (row?.version ?? 0) : await this.#store(keys, row);
      if (version !== undefined) {
        const set = { version, signing: signingOf(keys, clock.wall()), published: keys };
        this.#known = { keys: set, atMs: clock.now() };
        return set;
      }
      if (round >= ROUNDS) throw new Error('the signing keys cannot be stored');
      // A row that cannot be decrypted is found by no node: its key is lost, and with it the tokens that it signed.
      if (row === undefined && round > 0 && (await store.find('key', [KEY])).length === 0)
        await store.delete('key', [KEY]);
    }
  }

  /** Replaces the row; the new version, undefined when another node was first. */
  async #store(keys: readonly SigningKey[], row: OAuthRow | undefined): Promise<number | undefined> {
    const { store, clock } = this.#options;
    const createdAt = row?.createdAt ?? new Date(clock.wall()).toISOString();
    const version = row?.version ?? 0;
    const isMine = await store.replace(
      { kind: 'key', key: KEY, createdAt, value: JSON.stringify(keys) },
      version,
    );
    return isMine ? version + 1 : undefined;
  }
}

/** The key that signs now. `keys`: newest first. */
function signingOf(keys: readonly SigningKey[], nowMs: number): SigningKey {
  const signing = keys.find(({ createdMs }) => createdMs <= nowMs - ANNOUNCED_MS) ?? keys.at(-1);
  if (signing === undefined) throw new Error('there is no signing key');
  return signing;
}

/** The keys after a rotation; the same list while nothing is to be changed. */
async function rotated(keys: readonly SigningKey[], nowMs: number): Promise<readonly SigningKey[]> {
  const [newest] = keys;
  if (newest === undefined) return [await newKey(nowMs)];
  const signing = signingOf(keys, nowMs);
  // The keys before it stopped signing when this one began.
  const isOver = signing.createdMs + ANNOUNCED_MS + TOKEN_MS <= nowMs;
  const kept = isOver ? keys.slice(0, keys.indexOf(signing) + 1) : keys;
  if (newest.createdMs + ROTATED_MS <= nowMs) return [await newKey(nowMs), ...kept];
  return kept.length === keys.length ? keys : kept;
}

async function newKey(createdMs: number): Promise<SigningKey> {
  const { privateKey } = await promisify(generateKeyPair)('ec', { namedCurve: 'P-256' });
  const { kty = '', crv = '', x = '', y = '', d = '' } = privateKey.export({ format: 'jwk' });
  // Source: RFC 7638.
  const kid = hash('sha256', JSON.stringify({ crv, kty, x, y }), 'base64url');
  return { kid, jwk: { kty, crv, x, y, d }, createdMs };
}
