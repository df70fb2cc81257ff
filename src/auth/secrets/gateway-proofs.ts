// Proves to clients that this gateway knows their credentials, which they send over plain HTTP only then. Source: ADR 88.

import { createHmac } from 'node:crypto';
import { tooManyProofs } from '../../domain/errors/account-errors.ts';
import { LruMap } from '../../domain/memory/lru-map.ts';
import { WindowCounter } from '../../domain/memory/window-counter.ts';
import type { Clock } from '../../domain/time/clock.ts';
import { networkOf } from '../../net/network-of.ts';
import type { AccountStore } from '../../persistence/store.ts';
import { type OwnAddress, proofOf } from './proof.ts';
import { type Secrets, secretId } from './secrets.ts';

/** The secret with which a client can check that a gateway knows its token. */
export interface TokenProof {
  readonly keyId: string;
  /** The secret in hex; see `proofOf`. */
  readonly secret: string;
}

/** A command, and each bridge of a machine that is in use, asks once a second. */
const PER_ADDRESS_AND_MINUTE = 3_000;
const MAX_ADDRESSES = 20_000;
/** The most queries at the same time, and the most known secrets. */
const MAX_QUERIES = 8;
const MAX_SECRETS = 1_000;

/**
 * Makes the proofs, and the secrets with which the holder of a token checks one. The questions of an address are
 * counted.
 */
export class GatewayProofs {
  /** The secrets by their ids. Any other id is that of a token, for which the first secret counts. */
  readonly #secrets: ReadonlyMap<string, Uint8Array>;
  readonly #first: Uint8Array;
  readonly #now: Clock['now'];
  readonly #accounts: Pick<AccountStore, 'findApiKeys'>;
  readonly #attempts = new WindowCounter({ windowSeconds: 60, keys: MAX_ADDRESSES });
  /** The hashed secrets of API keys, by id: they never change. */
  readonly #known = new LruMap<string>(MAX_SECRETS);
  #queries = 0;

  /** `secrets`: of tokens. */
  constructor(secrets: Secrets, accounts: Pick<AccountStore, 'findApiKeys'>, now: Clock['now']) {
    this.#now = now;
    this.#first = secrets[0];
    this.#secrets = new Map(secrets.map((secret) => [secretId(secret), secret]));
    this.#accounts = accounts;
  }

  /** The proof secret of the token with this id, which begins with the id of the secret that signed the token. */
  secretOf(tokenId: string): string {
    const [id = ''] = tokenId.split('-', 1);
    return createHmac('sha256', this.#secrets.get(id) ?? this.#first)
      .update(`proof of ${tokenId}`)
      .digest('hex');
  }

  /** The secret with which our own command line checks the proof before it sends a token of this grant. */
  proofOfGrant(grantId: string): TokenProof {
    const keyId = `${secretId(this.#first)}-${grantId}`;
    return { keyId, secret: this.secretOf(keyId) };
  }

  /**
   * The proof for a client with this address. An unknown id gets a proof of a secret that no client has, so that
   * answers do not reveal which ids exist. Throws TOO_MANY_ATTEMPTS, DATABASE_UNAVAILABLE.
   */
  async prove(
    { keyId, nonce }: { readonly keyId: string; readonly nonce: string },
    own: OwnAddress,
    clientAddress: string,
  ): Promise<string> {
    const { count, endsInMs } = this.#attempts.add(
      networkOf(clientAddress),
      this.#now(),
      1,
      PER_ADDRESS_AND_MINUTE,
    );
    if (count > PER_ADDRESS_AND_MINUTE) throw tooManyProofs(Math.max(1, Math.ceil(endsInMs / 1000)));
    return proofOf((await this.#keySecret(keyId)) ?? this.secretOf(keyId), nonce, own);
  }

  /** Resolves with undefined for an id of no key. */
  async #keySecret(keyId: string): Promise<string | undefined> {
    const known = this.#known.get(keyId);
    if (known !== undefined || !KEY_ID.test(keyId)) return known;
    if (this.#queries >= MAX_QUERIES) throw tooManyProofs(1);
    this.#queries += 1;
    try {
      const [key] = await this.#accounts.findApiKeys([keyId]);
      if (key !== undefined) this.#known.set(keyId, key.secretHash);
      return key?.secretHash;
    } finally {
      this.#queries -= 1;
    }
  }
}

/** The id of a secret; all other ids are those of tokens. */
const KEY_ID = /^[0-9a-f]{16}$/;
