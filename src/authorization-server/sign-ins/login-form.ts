// The login page of all pages of the authorization server, and the sign-in from it: a password is checked as that of
// POST /auth/login, with the same throttle and the same two hashes at once, or the browser goes to an identity
// provider.

import type { Auth } from '../../auth/auth.ts';
import { ProviderFailure } from '../../auth/issuers/identity-provider.ts';
import { userPrincipalId } from '../../domain/accounts/principal.ts';
import { asGatewayError } from '../../domain/errors/errors.ts';
import { formOf, type OAuthExchange, redirect, sendPage } from '../oauth-exchange.ts';
import { faultPage, type LoginContent, loginPage, type Page } from '../pages/page.ts';
import type { ProviderSignIns, Purpose } from './provider-sign-ins.ts';
import type { SignInTrail } from './sign-in-trail.ts';
import type { SignIns } from './sign-ins.ts';

/** A page that a sign-in leads to. */
export interface LoginContext {
  /** Path of the form; the ways to sign in are below it. */
  readonly action: string;
  /** The sentence that says why the page needs a sign-in. */
  readonly intro: string;
  /** The subject of the entry in the audit log. */
  readonly subject: string;
  readonly purpose: Purpose;
}

interface LoginFormOptions {
  readonly signIns: SignIns;
  readonly auth: Pick<Auth, 'logins'>;
  readonly trail: SignInTrail;
  /** The sign-ins at identity providers; undefined where there are none. */
  readonly providers: ProviderSignIns | undefined;
}

/** Shows the login page, and handles the form that a browser sends. */
export class LoginForm {
  readonly #options: LoginFormOptions;

  constructor(options: LoginFormOptions) {
    this.#options = options;
  }

  /** Shows the form to a browser that is not signed in. */
  show({ request: { url = '', headers }, response }: OAuthExchange, context: LoginContext): void {
    const isLost = url.endsWith(SIGNED_IN) && headers.cookie === undefined;
    sendPage(response, this.#page(context, isLost ? { problem: NO_COOKIES, status: 400 } : {}));
  }

  #page({ action, intro }: LoginContext, more: Pick<LoginContent, 'username' | 'problem' | 'status'>): Page {
    const { providers, signIns } = this.#options;
    const ways = { providers: providers?.choices ?? [], takesPasswords: signIns.takesPasswords };
    return loginPage({ action, intro, ...ways, ...more });
  }

  /** Sends the browser to an identity provider, from which it comes back. False when there is no such provider. */
  async toProvider(exchange: OAuthExchange, context: LoginContext, id: string): Promise<boolean> {
    try {
      return (await this.#options.providers?.begin(exchange, id, context.purpose)) ?? false;
    } catch (thrown) {
      if (!(thrown instanceof ProviderFailure)) throw thrown;
      const problem = `${thrown.message}. Try again in a minute, or sign in another way.`;
      sendPage(exchange.response, this.#page(context, { problem, status: 503 }));
      return true;
    }
  }

  /** Begins at an identity provider for the login page of the console, which is not one of these pages. */
  async fromConsole(exchange: OAuthExchange, id: string): Promise<void> {
    try {
      if (await this.#options.providers?.begin(exchange, id, { kind: 'console' })) return;
      redirect(exchange.response, '/console');
    } catch (thrown) {
      if (!(thrown instanceof ProviderFailure)) throw thrown;
      const next = 'Try again in a minute, or sign in another way.';
      const back = { text: 'Back to the console', path: '/console' };
      sendPage(
        exchange.response,
        faultPage(503, 'You are not signed in', { what: `${thrown.message}.`, next, back }),
      );
    }
  }

  /** Signs the browser in and sends it to the page, or shows the form again. */
  async take(exchange: OAuthExchange, context: LoginContext): Promise<void> {
    const { request, response, address, isLocal, requestId } = exchange;
    const form = new URLSearchParams((await formOf(request)) ?? '');
    const username = form.get('username') ?? '';
    const { auth, signIns, trail } = this.#options;
    const { action, subject } = context;
    const entryOf = (actor: string, actorName: string, status: number) => ({
      actor,
      actorName,
      action: 'POST /oauth/login',
      subject,
      status,
      address,
      requestId,
    });
    try {
      const password = form.get('password') ?? '';
      const user = await auth.logins.checkPassword({ username, password, address, isLocal });
      trail.record(entryOf(userPrincipalId(user.id), user.username, 200));
      const { cookie } = request.headers;
      redirect(
        response,
        `${action}${cookie === undefined ? SIGNED_IN : ''}`,
        await signIns.begin(user, 'password', cookie),
      );
    } catch (thrown) {
      const error = asGatewayError(thrown);
      trail.record(entryOf('unknown', 'unknown', error.status));
      const { retryAfterSeconds } = error.facts;
      const later = retryAfterSeconds === undefined ? [] : ['Retry-After', String(retryAfterSeconds)];
      const problem = PROBLEMS[error.code] ?? UNCHECKED;
      sendPage(response, this.#page(context, { username, problem, status: error.status }), later);
    }
  }
}

const PROBLEMS: Readonly<Record<string, string>> = {
  INVALID_CREDENTIALS: 'The user name or the password is wrong. Try again.',
  TOO_MANY_ATTEMPTS: 'There were too many attempts. Try again in a minute.',
  PASSWORDS_OFF: 'This gateway takes no passwords. Sign in with the account of your company.',
};
const NO_COOKIES = 'This browser keeps no cookies. Allow them for this address, then sign in again.';
/** The query of the address to which a browser goes that sent no cookie yet. */
const SIGNED_IN = '?signed-in';
const UNCHECKED = 'The gateway cannot check passwords at this moment. Try again in a minute.';
