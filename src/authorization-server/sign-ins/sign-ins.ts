// The sign-in of a browser, shared by the consent page and the pages for connections: 12 h, a row whose id is in a
// cookie.

import { createHmac, randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import Type from 'typebox';
import { isFirstAdmin } from '../../auth/accounts/accounts.ts';
import type { Auth } from '../../auth/auth.ts';
import type { EndedToken, SignedInBy, User } from '../../domain/accounts/account.ts';
import type { Clock } from '../../domain/time/clock.ts';
import { oauthKey, rowReader } from '../../persistence/oauth-rows.ts';
import type { OAuthRow, OAuthStore } from '../../persistence/oauth-store.ts';
import type { AccountStore } from '../../persistence/store.ts';
import { formOf } from '../oauth-exchange.ts';
import { cookieName, randomCookie, setCookies } from './browser-cookies.ts';

export interface SignedIn {
  readonly user: User;
  /** The time of the sign-in, in ms since 1970. */
  readonly atMs: number;
  /** It is sent with the forms of this sign-in: a page of another origin cannot know it. */
  readonly formToken: string;
}

interface SignInValue {
  readonly credentialsChangedAt: string;
  /** The login token of the console, which ends with the sign-in. */
  readonly token?: EndedToken | undefined;
  /** Whether an identity provider signed the user in, not a password. */
  readonly isOfProvider?: boolean | undefined;
}

const readValue: (row: OAuthRow) => SignInValue = rowReader(
  Type.Object({
    credentialsChangedAt: Type.String(),
    token: Type.Optional(Type.Object({ id: Type.String(), expiresAtMs: Type.Number() })),
    isOfProvider: Type.Optional(Type.Boolean()),
  }),
);

/** The life of a sign-in. */
const SIGN_IN_SECONDS = 12 * 3_600;

interface SignInsOptions {
  readonly clock: Clock;
  readonly store: Pick<OAuthStore, 'find' | 'save' | 'delete'>;
  readonly accounts: Pick<AccountStore, 'findUsers'>;
  readonly auth: Pick<Auth, 'tokenEnds'>;
  /** False: sign-ins with a password count for the first admin only. Default: true. */
  readonly hasPasswordLogins?: boolean | undefined;
  readonly address: {
    readonly issuer: string;
    baseFor(host: string | undefined): string | undefined;
  };
}

/**
 * Begins, finds and ends the sign-ins of browsers. The cookie goes to these pages only, and cannot call the API. A
 * login of the console makes one, too; the token of the console and its sign-in end together. Source: ADR 208.
 */
export class SignIns {
  readonly #options: SignInsOptions;

  constructor(options: SignInsOptions) {
    this.#options = options;
  }

  /** False: only the first admin signs in with a password. */
  get takesPasswords(): boolean {
    return this.#options.hasPasswordLogins ?? true;
  }

  /**
   * Makes a sign-in of the user in place of that of these cookies; resolves with the headers that set its cookies, as
   * `[name, value, ...]`.
   */
  async begin(user: User, signedInBy: SignedInBy, cookies: string | undefined): Promise<string[]> {
    const earlier = await this.#rowIn(cookies);
    // The console stays signed in as the same user, and out with this sign-in.
    const token = earlier?.userId === user.id ? readValue(earlier).token : undefined;
    const set = await this.#begin(user, signedInBy, token);
    if (earlier !== undefined) await (token === undefined ? this.#endWithToken(earlier) : this.#end(earlier));
    return set;
  }

  /** Begins a sign-in with a login of the console. No headers when the console was opened at an address that has no pages. */
  async beginForConsole(
    user: User,
    signedInBy: SignedInBy,
    token: EndedToken,
    host: string | undefined,
  ): Promise<string[]> {
    return this.#isHere(host) ? this.#begin(user, signedInBy, token) : [];
  }

  async #begin(user: User, signedInBy: SignedInBy, token: EndedToken | undefined): Promise<string[]> {
    const { store, clock } = this.#options;
    const id = randomBytes(32).toString('base64url');
    await store.save({
      kind: 'sign-in',
      key: oauthKey('sign-in', id),
      userId: user.id,
      // A logout finds the sign-in by this id: the cookie is not sent there.
      grantId: token?.id,
      createdAt: new Date(clock.wall()).toISOString(),
      expiresAt: new Date(clock.wall() + SIGN_IN_SECONDS * 1_000).toISOString(),
      value: JSON.stringify({
        credentialsChangedAt: user.credentialsChangedAt,
        token,
        ...(signedInBy === 'provider' && { isOfProvider: true }),
      } satisfies SignInValue),
    });
    return this.#cookies(id, SIGN_IN_SECONDS);
  }

  /** Resolves with undefined without one, when it is over, and when the account has changed since. */
  async find(cookies: string | undefined): Promise<SignedIn | undefined> {
    const id = randomCookie(cookies, this.#name);
    const row = await this.#rowIn(cookies);
    if (id === undefined || row?.userId === undefined) return undefined;
    const [user] = await this.#options.accounts.findUsers([row.userId]);
    const { credentialsChangedAt, isOfProvider = false } = readValue(row);
    if (user?.isActive !== true || user.credentialsChangedAt !== credentialsChangedAt) return undefined;
    if (!this.takesPasswords && !isOfProvider && !isFirstAdmin(user)) return undefined;
    return { user, atMs: Date.parse(row.createdAt), formToken: formTokenOf(id) };
  }

  /** Ends it and the token of the console; resolves with the headers that remove its cookies. */
  async end(cookies: string | undefined): Promise<string[]> {
    const row = await this.#rowIn(cookies);
    if (row !== undefined) await this.#endWithToken(row);
    return this.#cookies('', 0);
  }

  /** Forgets a sign-in after a logout of the console, which ended its row. */
  forget(host: string | undefined): string[] {
    return this.#isHere(host) ? this.#cookies('', 0) : [];
  }

  async #endWithToken(row: OAuthRow): Promise<void> {
    const { auth, clock } = this.#options;
    const { token } = readValue(row);
    if (row.userId !== undefined && token !== undefined && token.expiresAtMs > clock.wall())
      await auth.tokenEnds.endLoginToken(row.userId, token);
    await this.#end(row);
  }

  async #end(row: OAuthRow): Promise<void> {
    await this.#options.store.delete('sign-in', [row.key]);
  }

  /** Resolves with undefined when it is over. */
  async #rowIn(cookies: string | undefined): Promise<OAuthRow | undefined> {
    const id = randomCookie(cookies, this.#name);
    if (id === undefined) return undefined;
    const { store, clock } = this.#options;
    const [row] = await store.find('sign-in', [oauthKey('sign-in', id)]);
    return row !== undefined && Date.parse(row.expiresAt ?? '') > clock.wall() ? row : undefined;
  }

  #isHere(host: string | undefined): boolean {
    const base = this.#options.address.baseFor(host);
    return base !== undefined && new URL(base).host === host?.toLowerCase();
  }

  get #name(): string {
    return cookieName(this.#options.address.issuer, 'sign_in');
  }

  #cookies(id: string, seconds: number): string[] {
    return setCookies(this.#options.address.issuer, `${this.#name}=${id}`, seconds);
  }
}

/**
 * The form that a page of this sign-in sent. Undefined for a page of another sign-in, and for a form that is not the gateway's.
 */
export async function ownFormOf(
  request: IncomingMessage,
  { formToken }: SignedIn,
): Promise<URLSearchParams | undefined> {
  const form = new URLSearchParams((await formOf(request)) ?? '');
  return form.get('form_token') === formToken ? form : undefined;
}

function formTokenOf(id: string): string {
  return createHmac('sha256', id).update('stagedoor form').digest('base64url');
}
