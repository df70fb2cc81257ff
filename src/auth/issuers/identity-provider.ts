// One identity provider (`auth.providers`), of which this gateway is a client: the address to which users are sent, and the
// answers of the provider about them. The library checks state, nonce, issuer and signatures; it is loaded with the first
// sign-in. Source: OpenID Connect Core, ADR 214.

import type { LookupFunction } from 'node:net';
import type { Configuration, CustomFetch, IDToken, ResponseBodyError } from 'openid-client';
import { isSafeUrl } from '../../config/issuer-settings.ts';
import type { ProviderSetting } from '../../config/provider-settings.ts';
import { type Clock, HOUR_MS } from '../../domain/time/clock.ts';
import { askOutside, OutsideFailure, responseOf } from '../../net/outside/outside-request.ts';
import { type Claims, claimOf } from './claims.ts';
import { SKEW_SECONDS } from './issuer-keys.ts';

/** The longest wait for one answer, in seconds. */
const TIMEOUT_SECONDS = 5;
/** The largest answer, in bytes: tokens may contain many groups. */
const MAX_ANSWER_BYTES = 256 * 1024;
/** Metadata is read again after this time; a failure is remembered for a shorter one. In ms. */
const FRESH_MS = HOUR_MS;
const FAILED_MS = 5_000;
const GOOGLE = 'https://accounts.google.com';
/** Gives refresh tokens without a prompt, which would ask users for a consent that companies leave to their admins. */
const ENTRA = 'login.microsoftonline.com';

/** The answer of a provider about a user. */
export interface ProviderAnswer {
  readonly subject: string;
  readonly claims: Claims;
  /** If it is undefined, the provider cannot be asked again. */
  readonly refreshToken?: string | undefined;
}

/**
 * A provider gave no answer, or refused. `isOver`: for good, so that the sign-in or session ends; else a later
 * attempt may succeed. The message is for people and repeats nothing of an answer.
 */
export class ProviderFailure extends Error {
  readonly isOver: boolean;

  constructor(message: string, { isOver = false } = {}) {
    super(message);
    this.name = 'ProviderFailure';
    this.isOver = isOver;
  }
}

/** Random values of one sign-in, which its callback and the tokens must match. */
export interface SignInProof {
  readonly state: string;
  readonly nonce: string;
  /** The code verifier of PKCE. */
  readonly verifier: string;
}

type Library = typeof import('openid-client');

/** A way in which a client shows its secret. */
type ClientAuth = 'ClientSecretBasic' | 'ClientSecretPost';

interface DiscoveredProvider {
  readonly library: Library;
  readonly configuration: Configuration;
  /** How the gateway authenticates in the requests of this configuration. */
  readonly auth: ClientAuth;
  readonly atMs: number;
}

interface IdentityProviderOptions {
  readonly clock: Clock;
  /** Whether refresh tokens can be kept. */
  readonly keepsSecrets: boolean;
  readonly warn: (line: string) => void;
  /** That of SystemLookups: each user is asked about by requests of its own. */
  readonly lookup: LookupFunction;
}

/** A provider of the settings. Its metadata document is read when a user signs in, and kept. */
export class IdentityProvider {
  readonly setting: ProviderSetting;
  readonly #options: IdentityProviderOptions;
  #known: DiscoveredProvider | undefined;
  #failedAtMs = Number.NEGATIVE_INFINITY;
  #reading: Promise<DiscoveredProvider> | undefined;
  /** The way in which its client shows the secret: the default of the specification until it is refused. */
  #auth: ClientAuth = 'ClientSecretBasic';

  constructor(setting: ProviderSetting, options: IdentityProviderOptions) {
    this.setting = setting;
    this.#options = options;
  }

  /** A new proof, and where its user signs in. Throws ProviderFailure. */
  async begin(redirectUri: string): Promise<{ readonly proof: SignInProof; readonly location: string }> {
    return this.#ask(async ({ library, configuration }) => {
      const proof = {
        state: library.randomState(),
        nonce: library.randomNonce(),
        verifier: library.randomPKCECodeVerifier(),
      };
      const location = library.buildAuthorizationUrl(configuration, {
        redirect_uri: redirectUri,
        state: proof.state,
        nonce: proof.nonce,
        code_challenge: await library.calculatePKCECodeChallenge(proof.verifier),
        code_challenge_method: 'S256',
        ...this.#scopes(configuration),
      });
      return { proof, location: location.href };
    });
  }

  /** `answer`: the address to which the provider sent the browser. Throws ProviderFailure. */
  finish(answer: URL, { state, nonce, verifier }: SignInProof): Promise<ProviderAnswer> {
    return this.#ask(async (known) => {
      const tokens = await known.library.authorizationCodeGrant(known.configuration, answer, {
        expectedState: state,
        expectedNonce: nonce,
        pkceCodeVerifier: verifier,
        idTokenExpected: true,
      });
      return this.#answerOf(known, tokens, tokens.claims());
    });
  }

  /**
   * The present answer of the provider about the user of this refresh token. `onRenewed` gets the next refresh token, also when a
   * later step fails: most of them work once. Throws ProviderFailure.
   */
  refresh(
    refreshToken: string,
    sub: string,
    onRenewed?: (refreshToken: string) => void,
  ): Promise<ProviderAnswer> {
    return this.#ask(async (known) => {
      const tokens = await known.library.refreshTokenGrant(known.configuration, refreshToken);
      onRenewed?.(tokens.refresh_token ?? refreshToken);
      const answer = await this.#answerOf(known, tokens, tokens.claims() ?? { sub });
      return { ...answer, refreshToken: tokens.refresh_token ?? refreshToken };
    });
  }

  /** The ID token, and the userinfo where a claim is missing that the settings name. */
  async #answerOf(
    { library, configuration }: DiscoveredProvider,
    tokens: { readonly access_token: string; readonly refresh_token?: string },
    idToken: (Partial<IDToken> & { readonly sub: string }) | undefined,
  ): Promise<ProviderAnswer> {
    if (idToken === undefined)
      throw new ProviderFailure(`${this.setting.label} sent no ID token`, { isOver: true });
    const { subject = 'sub', username = 'preferred_username', email = 'email' } = this.setting.claims;
    const { groups = 'groups' } = this.setting.claims;
    const wanted = [subject, username, email, ...(this.setting.roles.length > 0 ? [groups] : [])];
    const required = this.setting.require.map(([claim]) => claim);
    const isMissing = [...wanted, ...required].some((name) => claimOf(idToken, name) === undefined);
    const hasInfo = configuration.serverMetadata().userinfo_endpoint !== undefined;
    const info =
      isMissing && hasInfo
        ? await library
            .fetchUserInfo(configuration, tokens.access_token, idToken.sub)
            .catch((thrown: unknown) => {
              if (!isRefusedInfo(thrown)) throw thrown;
              throw new ProviderFailure(`${this.setting.label} says nothing about this user any more`, {
                isOver: true,
              });
            })
        : undefined;
    const claims: Claims = { ...info, ...idToken };
    const value = claimOf(claims, subject);
    if (typeof value !== 'string' || value === '')
      throw new ProviderFailure(`${this.setting.label} sent no claim ${subject}`, { isOver: true });
    return { subject: value, claims, refreshToken: tokens.refresh_token };
  }

  #scopes(configuration: Configuration): Record<string, string> {
    const { issuer } = this.setting;
    const scope = 'openid profile email';
    if (!this.#options.keepsSecrets) return { scope };
    if (issuer === GOOGLE) return { scope, access_type: 'offline', prompt: 'consent' };
    const { scopes_supported: known = ['offline_access'] } = configuration.serverMetadata();
    if (!known.includes('offline_access')) return { scope };
    const prompt = new URL(issuer).hostname === ENTRA ? {} : { prompt: 'consent' };
    return { scope: `${scope} offline_access`, ...prompt };
  }

  async #ask<T>(run: (known: DiscoveredProvider) => Promise<T>): Promise<T> {
    let known: DiscoveredProvider | undefined;
    try {
      known = await this.#current();
      return await run(known);
    } catch (thrown) {
      if (known === undefined || !isWrongAuth(known, thrown)) throw this.#failureOf(thrown);
    }
    // The client is registered for the other way, unless another request has found that out meanwhile.
    if (known.auth === this.#auth)
      this.#auth = known.auth === 'ClientSecretBasic' ? 'ClientSecretPost' : 'ClientSecretBasic';
    try {
      return await run(await this.#current());
    } catch (thrown) {
      throw this.#failureOf(thrown);
    }
  }

  async #current(): Promise<DiscoveredProvider> {
    const { now } = this.#options.clock;
    const known = this.#known;
    if (known?.auth === this.#auth && now() - known.atMs <= FRESH_MS) return known;
    if (now() - this.#failedAtMs < FAILED_MS)
      throw new ProviderFailure(`${this.setting.label} cannot be reached at this moment`);
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading.catch((thrown: unknown) => {
      this.#failedAtMs = now();
      throw thrown;
    });
  }

  async #read(): Promise<DiscoveredProvider> {
    const { issuer, clientId, clientSecret } = this.setting;
    const auth = this.#auth;
    const library = await import('openid-client');
    const client = { client_secret: clientSecret, [library.clockTolerance]: SKEW_SECONDS };
    const configuration = await library.discovery(
      new URL(issuer),
      clientId,
      client,
      library[auth](clientSecret),
      {
        // `boundedFetch` refuses URLs that are neither https nor on loopback.
        execute: [library.allowInsecureRequests, library.enableNonRepudiationChecks],
        [library.customFetch]: boundedFetch(this.#options),
        timeout: TIMEOUT_SECONDS,
      },
    );
    this.#known = { library, configuration, auth, atMs: this.#options.clock.now() };
    return this.#known;
  }

  #failureOf(thrown: unknown): ProviderFailure {
    if (thrown instanceof ProviderFailure) return thrown;
    const code = providerError(thrown);
    const { label, issuer } = this.setting;
    if (code === 'invalid_grant')
      return new ProviderFailure(`${label} has ended the sign-in of this user`, { isOver: true });
    if (code === 'access_denied')
      return new ProviderFailure(`${label} did not sign you in`, { isOver: true });
    // The line has only a code: an answer may contain anything.
    this.#options.warn(`the provider ${issuer} (auth.providers) cannot be used: ${providerReason(thrown)}`);
    return new ProviderFailure(`${label} cannot be reached at this moment`);
  }
}

const CODE = /^[A-Za-z_]{1,60}$/;

/** True when the provider refuses how the client has shown its secret, and knows the other way. */
function isWrongAuth({ configuration, auth }: DiscoveredProvider, thrown: unknown): boolean {
  const methods = configuration.serverMetadata().token_endpoint_auth_methods_supported;
  const other = auth === 'ClientSecretBasic' ? 'client_secret_post' : 'client_secret_basic';
  // Some do not decode the secret in the header, in which the library encodes `-` as the specification says;
  // Glewlwyd answers the latter.
  const codes: readonly unknown[] = ['invalid_client', 'unauthorized_client'];
  return methods?.includes(other) === true && codes.includes(providerError(thrown));
}

/** The `error` of an answer of the provider; undefined without one. */
function providerError(thrown: unknown): string | undefined {
  if (!(thrown instanceof Error) || !('error' in thrown)) return undefined;
  const { error } = thrown as ResponseBodyError;
  return typeof error === 'string' && CODE.test(error) ? error : undefined;
}

/**
 * The userinfo is that of another user, or is refused for this token: an answer, unlike no answer and errors of
 * the provider. A 403 without a challenge may be that of a proxy, or for too many requests. Source: RFC 6750, 3.
 */
function isRefusedInfo(thrown: unknown): boolean {
  const { code, cause, status } = Object(thrown);
  const isRefused = status === undefined ? Object(cause).status === 401 : status === 401 || status === 403;
  return isRefused || code === 'OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED';
}

function providerReason(thrown: unknown): string {
  const code = providerError(thrown);
  if (code !== undefined) return `it answers ${code}`;
  if (!(thrown instanceof Error)) return 'its answer is not understood';
  if (thrown.cause instanceof OutsideFailure) return `it ${thrown.cause.message}`;
  const { code: own } = thrown as NodeJS.ErrnoException;
  // The library's own words, without any received text.
  return typeof own === 'string' && CODE.test(own) ? `${thrown.message} (${own})` : 'it does not answer';
}

function boundedFetch({ clock: { alarm }, lookup }: IdentityProviderOptions): CustomFetch {
  return async (address, { method, headers, body }) => {
    if (!isSafeUrl(address.replace(/[?#].*$/s, ''))) throw new TypeError('not https');
    const answer = await askOutside(new URL(address), {
      ...{ method, headers, alarm, lookup, mostBytes: MAX_ANSWER_BYTES },
      timeoutMs: TIMEOUT_SECONDS * 1_000,
      body: body == null ? undefined : String(body),
    });
    return responseOf(answer);
  };
}
