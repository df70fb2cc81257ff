// The way of a browser to an identity provider and back: each sign-in is one row, taken once, and bound to the browser
// that began it by a cookie of its own, so that several pages may be on their way.

import { hash, randomBytes } from 'node:crypto';
import Type from 'typebox';
import type { CompanyAccounts } from '../../auth/issuers/company-accounts.ts';
import {
  type IdentityProvider,
  type ProviderAnswer,
  ProviderFailure,
  type SignInProof,
} from '../../auth/issuers/identity-provider.ts';
import { PROVIDER_CALLBACK } from '../../config/provider-settings.ts';
import type { User } from '../../domain/accounts/account.ts';
import { userPrincipalId } from '../../domain/accounts/principal.ts';
import { asGatewayError } from '../../domain/errors/errors.ts';
import type { NewEntry } from '../../domain/events/audit-entries.ts';
import type { Clock } from '../../domain/time/clock.ts';
import { OutsiderCounter } from '../../net/outsider-counter.ts';
import { oauthKey, rowReader } from '../../persistence/oauth-rows.ts';
import type { OAuthRow, OAuthStore } from '../../persistence/oauth-store.ts';
import { type OAuthExchange, redirect, sendPage } from '../oauth-exchange.ts';
import { faultPage, tooManyPage } from '../pages/page.ts';
import { cookieName, cookiesIn, randomCookie, setCookies } from './browser-cookies.ts';
import type { SignInTrail } from './sign-in-trail.ts';

const LIFE_SECONDS = 600;
/** Sign-ins on their way in one browser: a further one ends the oldest. */
const MAX_OPEN = 8;
const NAME = /_[\w-]{16}$/;

/** The purpose of a sign-in at a provider, which says how it goes on. */
export type Purpose =
  | { readonly kind: 'interaction'; readonly uid: string }
  | { readonly kind: 'device'; readonly code: string }
  | { readonly kind: 'connections'; readonly path: string }
  | { readonly kind: 'console' };

/** The continuation of a sign-in for one purpose. */
export interface Continuation {
  /** The path of this gateway to which the browser goes when the provider did not sign the user in. */
  readonly back: string;
  /** Signs the browser in: the path to which it goes, and the headers with the cookies, as `[name, value, ...]`. */
  go(
    user: User,
    exchange: OAuthExchange,
  ): Promise<{ readonly path: string; readonly headers: readonly string[] }>;
}

interface ProviderSignInsOptions {
  readonly clock: Clock;
  readonly store: OAuthStore;
  readonly providers: readonly IdentityProvider[];
  readonly accounts: CompanyAccounts;
  readonly address: { readonly issuer: string };
  readonly trail: SignInTrail;
  /** Sign-ins that one network begins within a minute: each is a row, and needs no account. */
  readonly perMinute: number;
  readonly continue: (purpose: Purpose) => Continuation;
}

interface Begun {
  readonly provider: string;
  readonly proof: SignInProof;
  /** Hash of the cookie. */
  readonly browser: string;
  readonly purpose: Purpose;
}

const text = Type.String();

const readBegun: (row: OAuthRow) => Begun = rowReader(
  Type.Object({
    provider: text,
    proof: Type.Object({ state: text, nonce: text, verifier: text }),
    browser: text,
    purpose: Type.Union([
      Type.Object({ kind: Type.Literal('interaction'), uid: text }),
      Type.Object({ kind: Type.Literal('device'), code: text }),
      Type.Object({ kind: Type.Literal('connections'), path: text }),
      Type.Object({ kind: Type.Literal('console') }),
    ]),
  }),
);

/**
 * Begins sign-ins at identity providers, and finishes them. The next page is named by a purpose, never by an address.
 * Source: ADR 214.
 */
export class ProviderSignIns {
  readonly #begun: OutsiderCounter;
  readonly #options: ProviderSignInsOptions;

  constructor(options: ProviderSignInsOptions) {
    this.#options = options;
    this.#begun = new OutsiderCounter({ windowSeconds: 60, perNetwork: options.perMinute });
  }

  get choices(): readonly { readonly id: string; readonly label: string }[] {
    return this.#options.providers.map(({ setting: { id, label } }) => ({ id, label }));
  }

  /**
   * Sends a browser, which is at the address of the gateway, to the provider; it comes back to the purpose. False
   * for an unknown provider. Throws ProviderFailure while the provider cannot be reached.
   */
  async begin({ request, response, address }: OAuthExchange, id: string, purpose: Purpose): Promise<boolean> {
    const provider = this.#providerOf(id);
    if (provider === undefined) return false;
    const { store, clock } = this.#options;
    if (this.#begun.add(address, clock.now()) !== undefined) {
      sendPage(response, tooManyPage(), ['Retry-After', '60']);
      return true;
    }
    const { proof, location } = await provider.begin(this.#redirectUri(id));
    const browser = randomBytes(32).toString('base64url');
    const open = new Set(this.#cookiesIn(request.headers.cookie).map(({ name }) => name));
    // Browsers send the oldest first. Source: RFC 6265, 5.4.
    const ended = [...open].slice(0, Math.max(0, open.size - MAX_OPEN + 1));
    const begun: Begun = { provider: id, proof, browser: hash('sha256', browser), purpose };
    await store.save({
      kind: 'signing-in',
      key: oauthKey('signing-in', proof.state),
      createdAt: new Date(clock.wall()).toISOString(),
      expiresAt: new Date(clock.wall() + LIFE_SECONDS * 1_000).toISOString(),
      value: JSON.stringify(begun),
    });
    const headers = ended.flatMap((name) => this.#cookies(name, ''));
    redirect(response, location, [...headers, ...this.#cookies(this.#nameFor(proof.state), browser)]);
    return true;
  }

  /** The answer of a provider, in the address to which it sent the browser. */
  async finish(exchange: OAuthExchange, id: string): Promise<void> {
    const { request, response } = exchange;
    const answer = new URL(request.url ?? '', this.#options.address.issuer);
    const provider = this.#providerOf(id);
    const state = answer.searchParams.get('state') ?? '';
    const begun = await this.#take(state);
    const name = this.#nameFor(state);
    const browser = randomCookie(request.headers.cookie, name);
    const isTheirs = browser !== undefined && begun?.browser === hash('sha256', browser);
    if (provider === undefined || begun === undefined || begun.provider !== id || !isTheirs)
      return sendPage(
        response,
        faultPage(400, 'This sign-in is no longer valid', {
          what: 'It was finished already, open for more than ten minutes, or begun in another browser; or this one blocks cookies.',
          next: 'Go back to where you began, and sign in again.',
        }),
      );
    const { back, go } = this.#options.continue(begun.purpose);
    const { label } = provider.setting;
    try {
      const { pathname, search } = answer;
      const said = await provider.finish(
        new URL(`${pathname}${search}`, this.#options.address.issuer),
        begun.proof,
      );
      const user = await this.#options.accounts.signIn(provider.setting, said);
      this.#options.trail.record(entryOf(exchange, provider, 200, { said, user }));
      const { path, headers } = await go(user, exchange);
      redirect(response, path, [...headers, ...this.#cookies(name, '')]);
    } catch (thrown) {
      const isFailure = thrown instanceof ProviderFailure;
      const error = isFailure ? undefined : asGatewayError(thrown);
      const status = error?.status ?? (thrown instanceof ProviderFailure && thrown.isOver ? 403 : 503);
      if (status === 500) throw thrown;
      this.#options.trail.record(entryOf(exchange, provider, status));
      sendPage(
        response,
        faultPage(status, `You are not signed in with ${label}`, {
          what: `${error?.message ?? (thrown instanceof ProviderFailure ? thrown.message : '')}.`.replace(
            /\.\.$/,
            '.',
          ),
          next:
            status === 503
              ? 'Try again in a minute, or sign in another way.'
              : 'Go back to sign in another way, or ask an admin of this gateway.',
          back: { text: 'Back to the sign-in', path: back },
        }),
        this.#cookies(name, ''),
      );
    }
  }

  #providerOf(id: string): IdentityProvider | undefined {
    return this.#options.providers.find(({ setting }) => setting.id === id);
  }

  /** Resolves with undefined when there is none, or another answer was first. */
  async #take(state: string): Promise<Begun | undefined> {
    const { store, clock } = this.#options;
    const key = oauthKey('signing-in', state);
    const [row] = await store.find('signing-in', [key]);
    if (row === undefined || Date.parse(row.expiresAt ?? '') <= clock.wall()) return undefined;
    if (!(await store.consume('signing-in', key, new Date(clock.wall()).toISOString()))) return undefined;
    return readBegun(row);
  }

  #redirectUri(id: string): string {
    return `${this.#options.address.issuer}${PROVIDER_CALLBACK}${id}`;
  }

  get #prefix(): string {
    return `${cookieName(this.#options.address.issuer, 'signing_in')}_`;
  }

  #nameFor(state: string): string {
    return `${this.#prefix}${hash('sha256', state, 'base64url').slice(0, 16)}`;
  }

  #cookies(name: string, value: string): readonly string[] {
    const seconds = value === '' ? 0 : LIFE_SECONDS;
    return setCookies(this.#options.address.issuer, `${name}=${value}`, seconds);
  }

  /** Cookies of all sign-ins on their way. */
  #cookiesIn(cookies: string | undefined) {
    return cookiesIn(cookies).filter(({ name }) => NAME.test(name) && name.startsWith(this.#prefix));
  }
}

function entryOf(
  { address, requestId }: OAuthExchange,
  { setting }: IdentityProvider,
  status: number,
  signedIn?: { readonly said: ProviderAnswer; readonly user: User },
): NewEntry {
  return {
    actor: signedIn === undefined ? 'unknown' : userPrincipalId(signedIn.user.id),
    actorName: signedIn?.user.username ?? 'unknown',
    action: 'GET /oauth/callback',
    subject: `${setting.issuer}${signedIn === undefined ? '' : ` ${signedIn.said.subject}`}`,
    status,
    address,
    requestId,
  };
}
