// Verifies the access tokens of MCP clients, which the authorization server has issued: JWT (`at+jwt`, ES256) of this issuer
// for a resource of this gateway.

import type { KeyObject } from 'node:crypto';
import { JWTExpired } from 'jose/errors';
import { jwtVerify } from 'jose/jwt/verify';
import { isScope, type ResourcePath, type Scope } from '../../domain/accounts/account.ts';
import type { GatewayAddress } from '../../domain/accounts/resource.ts';
import { invalidCredentials, tokenExpired } from '../../domain/errors/account-errors.ts';
import { hasCode } from '../../domain/errors/errors.ts';
import { jsonIn } from '../../domain/json/json.ts';
import type { Clock } from '../../domain/time/clock.ts';

const ALGORITHM = 'ES256';
const TYPE = 'at+jwt';
/** An id of a grant or a user in a token, as queries may contain it: no database accepts any text. */
const ID = /^(?:issuer:)?[A-Za-z0-9_-]{1,64}$/;

export interface AccessClaims {
  readonly userId: string;
  readonly grantId: string;
  readonly clientId: string;
  readonly audience: ResourcePath;
  readonly scopes: readonly Scope[];
  readonly expiresAtMs: number;
}

/** The claims of a token for any resource, also one that this gateway does not have. */
export type SignedClaims = Omit<AccessClaims, 'audience'>;

/**
 * True for an access token, also of another issuer; false for a token of a login, which is signed with a secret.
 * Nothing is verified.
 */
export function isAccessToken(token: string): boolean {
  const { alg, typ } = headerOf(token);
  return typ === TYPE || (typeof alg === 'string' && !alg.startsWith('HS'));
}

function headerOf(token: string): { readonly alg?: unknown; readonly typ?: unknown } {
  const [head = ''] = token.split('.', 1);
  return Object(jsonIn(Buffer.from(head, 'base64url').toString()));
}

/**
 * Reads access tokens, for one resource or for any. They are distinguished from login tokens before any key is
 * chosen: no key of one kind ever verifies a token of the other. Source: RFC 9068, ADR 206.
 */
export class AccessTokens {
  /** The keys of this issuer, by `kid`. */
  readonly #publicKeys: () => Promise<ReadonlyMap<string, KeyObject>>;
  readonly #address: Pick<GatewayAddress, 'issuer' | 'pathOf'>;
  readonly #wall: Clock['wall'];

  constructor(
    publicKeys: () => Promise<ReadonlyMap<string, KeyObject>>,
    address: Pick<GatewayAddress, 'issuer' | 'pathOf'>,
    wall: Clock['wall'],
  ) {
    this.#publicKeys = publicKeys;
    this.#address = address;
    this.#wall = wall;
  }

  /**
   * Throws TOKEN_EXPIRED for a valid token that has expired, else INVALID_CREDENTIALS; DATABASE_UNAVAILABLE before the
   * keys are known.
   */
  async read(token: string): Promise<AccessClaims> {
    const { aud, ...claims } = await this.#verified(token);
    const audience = typeof aud === 'string' ? this.#address.pathOf(aud) : undefined;
    if (audience === undefined) throw invalidCredentials('The token is for another resource');
    return { ...claims, audience };
  }

  /** Resolves with undefined for a token that `read` refuses whatever its resource is. Throws DATABASE_UNAVAILABLE. */
  async readForAny(token: string): Promise<SignedClaims | undefined> {
    try {
      const { aud: _, ...claims } = await this.#verified(token);
      return claims;
    } catch (thrown) {
      if (hasCode(thrown, 'INVALID_CREDENTIALS') || hasCode(thrown, 'TOKEN_EXPIRED')) return undefined;
      throw thrown;
    }
  }

  async #verified(token: string): Promise<SignedClaims & { readonly aud: unknown }> {
    const keys = await this.#publicKeys();
    const options = {
      algorithms: [ALGORITHM],
      typ: TYPE,
      issuer: this.#address.issuer,
      currentDate: new Date(this.#wall()),
      requiredClaims: ['sub', 'aud', 'exp', 'client_id', 'grant_id'],
    };
    const publicKeyOf = ({ kid = '' }: { kid?: string }) => {
      const key = keys.get(kid);
      if (key === undefined) throw invalidCredentials();
      return key;
    };
    const { payload } = await jwtVerify(token, publicKeyOf, options).catch((thrown: unknown) => {
      // The error has no cause: some errors of the library contain the claims.
      throw thrown instanceof JWTExpired ? tokenExpired() : invalidCredentials();
    });
    const { sub, aud, exp = 0, client_id: clientId, grant_id: grantId, scope = '' } = payload;
    if (!isId(sub) || !isId(grantId) || typeof clientId !== 'string' || typeof scope !== 'string')
      throw invalidCredentials();
    const scopes = scope.split(' ').filter(isScope);
    return { userId: sub, grantId, clientId, aud, scopes, expiresAtMs: exp * 1000 };
  }
}

function isId(value: unknown): value is string {
  return typeof value === 'string' && ID.test(value);
}
