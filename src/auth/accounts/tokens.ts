// Signs and reads the tokens of logins: JWT with HS256 only. authenticator.ts checks that the user still exists and has the same
// credentials.

import { createSecretKey, type KeyObject, randomUUID } from 'node:crypto';
import { JWSSignatureVerificationFailed, JWTExpired } from 'jose/errors';
import { SignJWT } from 'jose/jwt/sign';
import { type JWTVerifyOptions, jwtVerify } from 'jose/jwt/verify';
import {
  type DefinedRoles,
  type SignedInBy,
  scopesOfUser,
  type User,
} from '../../domain/accounts/account.ts';
import { invalidCredentials, tokenExpired } from '../../domain/errors/account-errors.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Clock } from '../../domain/time/clock.ts';
import { type Secrets, secretId } from '../secrets/secrets.ts';

const ALGORITHM = 'HS256';
const ISSUER = 'stagedoor';
/** The ids in a token, which queries contain: no database accepts any text. */
const ID = /^[A-Za-z0-9-]{1,64}$/;

interface TokenClaims {
  readonly userId: string;
  /** Claim `jti`. */
  readonly id: string;
  /**
   * Claim `credentials_at`: the time of the user's last change of credentials when the token was issued, in
   * ms since 1970. It must still be that time. `iat` would not distinguish tokens issued just before and just
   * after a change: it has whole seconds of one node's clock.
   */
  readonly credentialsAtMs: number;
  readonly expiresAtMs: number;
  /** Claim `of_provider`: true after a sign-in at a provider. */
  readonly signedInBy: SignedInBy;
}

interface Issued {
  readonly id: string;
  readonly accessToken: string;
  readonly expiresInSeconds: number;
  readonly expiresAtMs: number;
}

interface TokenOptions {
  /** The first signs, all verify. */
  readonly secrets: Secrets;
  readonly lifetimeMs: number;
  readonly wall: Clock['wall'];
  /** The roles of the settings. Default: there are none. */
  readonly roles?: DefinedRoles | undefined;
}

/** Signs tokens with the first secret, and reads tokens that any of the secrets has signed. */
export class Tokens {
  readonly #keys: readonly [KeyObject, ...KeyObject[]];
  /** Id of the key that signs. */
  readonly #keyId: string;
  readonly #lifetimeSeconds: number;
  readonly #wall: Clock['wall'];
  readonly #roles: DefinedRoles | undefined;

  constructor({ secrets, lifetimeMs, wall, roles }: TokenOptions) {
    this.#roles = roles;
    if (secrets.some(({ byteLength }) => byteLength < LIMITS.secretBytes))
      throw new RangeError(`The signing secret has fewer than ${LIMITS.secretBytes} bytes.`);
    const [first, ...others] = secrets;
    this.#keys = [createSecretKey(first), ...others.map((secret) => createSecretKey(secret))];
    this.#keyId = secretId(first);
    this.#lifetimeSeconds = Math.floor(lifetimeMs / 1000);
    this.#wall = wall;
  }

  async issue(user: User, signedInBy: SignedInBy): Promise<Issued> {
    const id = `${this.#keyId}-${randomUUID()}`;
    const issuedAt = Math.floor(this.#wall() / 1000);
    const expiresAt = issuedAt + this.#lifetimeSeconds;
    const accessToken = await new SignJWT({
      role: user.role,
      scope: scopesOfUser(user, this.#roles).join(' '),
      credentials_at: Date.parse(user.credentialsChangedAt),
      ...(signedInBy === 'provider' && { of_provider: true }),
    })
      .setProtectedHeader({ alg: ALGORITHM, typ: 'JWT' })
      .setSubject(user.id)
      .setIssuer(ISSUER)
      .setJti(id)
      .setIssuedAt(issuedAt)
      .setExpirationTime(expiresAt)
      .sign(this.#keys[0]);
    return { id, accessToken, expiresInSeconds: this.#lifetimeSeconds, expiresAtMs: expiresAt * 1000 };
  }

  /** Throws TOKEN_EXPIRED for a valid token that has expired, else INVALID_CREDENTIALS. */
  async read(token: string): Promise<TokenClaims> {
    const options = {
      algorithms: [ALGORITHM],
      issuer: ISSUER,
      requiredClaims: ['sub', 'iat', 'exp', 'jti'],
      currentDate: new Date(this.#wall()),
    };
    const { payload } = await this.#verified(token, options).catch((thrown: unknown) => {
      // The error has no cause: some errors of the library contain the claims.
      throw thrown instanceof JWTExpired ? tokenExpired() : invalidCredentials();
    });
    const { sub = '', jti = '', exp = 0, credentials_at: credentialsAtMs, of_provider: ofProvider } = payload;
    // jose does not check the types of the ids.
    const areIds = [sub, jti].every((id) => typeof id === 'string' && ID.test(id));
    if (!areIds || typeof credentialsAtMs !== 'number') throw invalidCredentials();
    return {
      userId: sub,
      id: jti,
      credentialsAtMs,
      expiresAtMs: exp * 1000,
      signedInBy: ofProvider === true ? 'provider' : 'password',
    };
  }

  /** Verifies a token by each key in turn, until one fits. */
  async #verified(token: string, options: JWTVerifyOptions) {
    for (const key of this.#keys.slice(0, -1)) {
      try {
        return await jwtVerify(token, key, options);
      } catch (thrown) {
        if (!(thrown instanceof JWSSignatureVerificationFailed)) throw thrown;
      }
    }
    return jwtVerify(token, this.#keys.at(-1) ?? this.#keys[0], options);
  }
}
