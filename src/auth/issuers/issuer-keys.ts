// The public keys of one other authorization server: fetched when the first token needs them, kept, and fetched again
// when they are old or a token names an unknown one, or is signed by another one than it names.

import type { LookupFunction } from 'node:net';
import type { JWK } from 'jose';
import { createLocalJWKSet } from 'jose/jwks/local';
import { type IssuerSetting, isSafeUrl } from '../../config/issuer-settings.ts';
import { issuerUnavailable } from '../../domain/errors/account-errors.ts';
import { definedFields, isJsonObject, jsonIn } from '../../domain/json/json.ts';
import type { Clock } from '../../domain/time/clock.ts';
import { askOutside, OutsideFailure } from '../../net/outside/outside-request.ts';
import { MAX_UNAVAILABLE_MS } from '../credential-cache.ts';

/** The largest document, in bytes. */
const MAX_ANSWER_BYTES = 64 * 1024;
/** The longest wait for one document, in ms. */
const TIMEOUT_MS = 2_500;
/** Keys are fetched again after this time. */
const FRESH_MS = 10 * 60_000;
/** The largest difference between the clocks of the gateway and of an issuer or provider with which its tokens are accepted. */
export const SKEW_SECONDS = 60;
/** A failure is remembered for this time. */
const AGAIN_MS = 60_000;
/** Keys of at most this age are not fetched again for a token by another one: outsiders can name and sign what they like. */
const UNKNOWN_MS = 5_000;
/** Verifying takes longer with longer lists. */
const MAX_KEYS = 50;

/** Chooses the key of a token. Throws JWKSNoMatchingKey. */
export type IssuerKeySet = ReturnType<typeof createLocalJWKSet>;

interface KnownKeys {
  readonly set: IssuerKeySet;
  readonly atMs: number;
}

/**
 * The keys of one issuer, which all its tokens share. Each fetch is bounded, and a failure is remembered. Source: RFC
 * 7517, RFC 8414, ADR 207.
 */
export class IssuerKeys {
  readonly #setting: Pick<IssuerSetting, 'issuer' | 'jwksUri'>;
  readonly #clock: Clock;
  readonly #log: (line: string) => void;
  readonly #lookup: LookupFunction | undefined;
  #known: KnownKeys | undefined;
  #failedAtMs = Number.NEGATIVE_INFINITY;
  #fetching: Promise<KnownKeys> | undefined;

  /** `lookup`: that of SystemLookups. Default: the system is asked at once. */
  constructor(
    setting: Pick<IssuerSetting, 'issuer' | 'jwksUri'>,
    clock: Clock,
    log: (line: string) => void,
    lookup?: LookupFunction,
  ) {
    this.#setting = setting;
    this.#clock = clock;
    this.#log = log;
    this.#lookup = lookup;
  }

  /**
   * The keys for a token. `isKnown`: it was verified before, so that keys which are a little old are good enough without a wait.
   * Throws ISSUER_UNAVAILABLE.
   */
  async current(isKnown: boolean): Promise<IssuerKeySet> {
    const known = this.#known;
    const ageMs = known === undefined ? Number.POSITIVE_INFINITY : this.#clock.now() - known.atMs;
    if (known !== undefined && ageMs <= FRESH_MS) return known.set;
    const fetched = this.#fetch();
    if (known === undefined || !isKnown || ageMs > FRESH_MS + MAX_UNAVAILABLE_MS) return (await fetched).set;
    fetched.catch(() => {
      // Logged; the next request asks again.
    });
    return known.set;
  }

  /**
   * Newer keys than `used`, by which a token could not be verified: those that were fetched meanwhile, or else are fetched now.
   * undefined when `used` was fetched within UNKNOWN_MS. Throws ISSUER_UNAVAILABLE.
   */
  async newerThan(used: IssuerKeySet): Promise<IssuerKeySet | undefined> {
    const known = this.#known;
    if (known !== undefined && known.set !== used) return known.set;
    if (known !== undefined && this.#clock.now() - known.atMs < UNKNOWN_MS) return undefined;
    return (await this.#fetch()).set;
  }

  async #fetch(): Promise<KnownKeys> {
    if (this.#clock.now() - this.#failedAtMs < AGAIN_MS) throw issuerUnavailable(this.#setting.issuer);
    this.#fetching ??= this.#keys()
      .then((set) => {
        this.#known = { set, atMs: this.#clock.now() };
        return this.#known;
      })
      .catch((thrown: unknown) => {
        this.#failedAtMs = this.#clock.now();
        // The reason has only our own words: an answer may contain anything.
        const reason =
          thrown instanceof Unusable
            ? thrown.message
            : `its server ${thrown instanceof OutsideFailure ? thrown.message : 'cannot be reached'}`;
        this.#log(`the keys of the issuer ${this.#setting.issuer} (auth.issuers) cannot be read: ${reason}`);
        throw issuerUnavailable(this.#setting.issuer);
      })
      .finally(() => {
        this.#fetching = undefined;
      });
    return this.#fetching;
  }

  async #keys(): Promise<IssuerKeySet> {
    const document = await this.#read(this.#setting.jwksUri ?? (await this.#discover()));
    const keys = isJsonObject(document) ? document.keys : undefined;
    if (!Array.isArray(keys) || !keys.every(isJwk)) throw new Unusable('the document has no list of keys');
    if (keys.length > MAX_KEYS) throw new Unusable(`there are more than ${MAX_KEYS} keys`);
    try {
      return createLocalJWKSet({ keys });
    } catch {
      throw new Unusable('the document has no list of keys');
    }
  }

  /** The address of the keys, from the metadata of the issuer. */
  async #discover(): Promise<string> {
    const { issuer } = this.#setting;
    const { origin, pathname } = new URL(issuer);
    const path = pathname.replace(/\/$/, '');
    const places = [
      `${origin}/.well-known/oauth-authorization-server${path}`,
      `${origin}${path}/.well-known/openid-configuration`,
    ];
    let failure: unknown;
    for (const place of places) {
      const metadata = await this.#read(place).catch((thrown: unknown) => {
        failure = thrown;
      });
      if (!isJsonObject(metadata)) continue;
      if (metadata.issuer !== issuer) throw new Unusable('its metadata names another issuer');
      const { jwks_uri: uri } = metadata;
      if (
        typeof uri !== 'string' ||
        !isSafeUrl(uri.replace(/\?.*$/s, '')) ||
        (isHttp(uri) && !isHttp(issuer))
      )
        throw new Unusable('its metadata names no usable `jwks_uri`');
      return uri;
    }
    throw failure ?? new Unusable('its metadata cannot be read');
  }

  /** Follows no redirect. */
  async #read(address: string): Promise<unknown> {
    const { status, body } = await askOutside(new URL(address), {
      headers: { Accept: 'application/json', 'User-Agent': 'stagedoor' },
      alarm: this.#clock.alarm,
      ...definedFields({ lookup: this.#lookup }),
      timeoutMs: TIMEOUT_MS,
      mostBytes: MAX_ANSWER_BYTES,
    });
    if (status !== 200) throw new Unusable(`status ${status}`);
    const document = jsonIn(body.toString());
    if (document === undefined) throw new Unusable('a document is not JSON');
    return document;
  }
}

/** The reason why a document cannot be used, in words for people. */
class Unusable extends Error {}

function isJwk(value: unknown): value is JWK {
  return isJsonObject(value) && typeof value.kty === 'string';
}

function isHttp(url: string): boolean {
  return url.toLowerCase().startsWith('http:');
}
