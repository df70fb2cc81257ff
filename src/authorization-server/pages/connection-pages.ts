// The pages below /connections: a user connects an account at a server that wants one, and ends connections.

import type { Logger } from 'pino';
import type { Auth } from '../../auth/auth.ts';
import { roleRights } from '../../domain/accounts/account.ts';
import { userPrincipalId } from '../../domain/accounts/principal.ts';
import { commonRights, mayUse } from '../../domain/accounts/rights.ts';
import { hasCode } from '../../domain/errors/errors.ts';
import { SHARED } from '../../domain/instances/account-connection.ts';
import { WindowCounter } from '../../domain/memory/window-counter.ts';
import type { Clock } from '../../domain/time/clock.ts';
import { RightLost, UnknownState } from '../../vault/authorization-flow.ts';
import { BackendFetchFailure } from '../../vault/backend-fetch.ts';
import { type ConnectGoal, type ConnectLinks, mayConnect } from '../../vault/connect-links.ts';
import type { AccountTarget } from '../../vault/oauth-backends.ts';
import { OAuthRefusal } from '../../vault/oauth-requests.ts';
import type { Vault } from '../../vault/vault.ts';
import { type OAuthExchange, queryOf, redirect, sendJson, sendPage } from '../oauth-exchange.ts';
import type { LoginContext, LoginForm } from '../sign-ins/login-form.ts';
import { ownFormOf, type SignedIn, type SignIns } from '../sign-ins/sign-ins.ts';
import { connectedPage, connectPage, listPage, othersPage } from './connection-html.ts';
import { faultPage, type Page, tooManyPage } from './page.ts';

/** The accounts at backends, as the gateway knows them. */
export interface BackendAccounts {
  open(): Promise<
    Pick<Vault, 'begin' | 'finish' | 'list' | 'disconnect' | 'find' | 'discover' | 'clientDocument'>
  >;
  readonly connectLinks: Pick<ConnectLinks, 'find' | 'connected'>;
  /** The result is undefined when there is no such instance, or none that wants OAuth. */
  targetOf(template: string, instanceId: string): AccountTarget | undefined;
  /** The templates that are used with an account which this user has connected. */
  connectedTemplates(userId: string): Promise<readonly string[]>;
  /** The templates whose instances use tokens for this resource. */
  templatesAt(resource: string): readonly string[];
}

interface ConnectionPagesOptions {
  readonly accounts: BackendAccounts;
  readonly signIns: SignIns;
  readonly auth: Pick<Auth, 'audit' | 'roles'>;
  /** The form of the other pages: loaded with the first request that has to sign in. */
  readonly login: () => Promise<LoginForm>;
  readonly log: Pick<Logger, 'error'>;
  readonly clock: Pick<Clock, 'now'>;
}

/** Pages of one user within a minute that ask the server and its provider. */
export const MAX_ASKED_PER_MINUTE = 60;
const MAX_COUNTED_USERS = 10_000;
const CONNECTIONS = '/connections';

/**
 * Answers the requests to the pages below /connections. The browser is sent to the provider only after it has proven
 * that its user is the one for whom the address was made. Source: ADR 221.
 */
export class ConnectionPages {
  readonly #options: ConnectionPagesOptions;
  readonly #asked = new WindowCounter({ windowSeconds: 60, keys: MAX_COUNTED_USERS });

  constructor(options: ConnectionPagesOptions) {
    this.#options = options;
  }

  /** Answers the request. Never rejects: a failure is answered with a page. */
  async serve(exchange: OAuthExchange): Promise<void> {
    const { request, response } = exchange;
    try {
      await this.#route(exchange);
    } catch (thrown) {
      // A body that its client does not finish is not a fault of the gateway.
      if (response.headersSent || request.readableAborted) response.destroy();
      else {
        if (!hasCode(thrown, 'DATABASE_UNAVAILABLE'))
          this.#options.log.error({ err: thrown }, 'a page of connections failed');
        sendPage(response, UNAVAILABLE);
      }
    }
  }

  async #route(exchange: OAuthExchange): Promise<void> {
    const { request, response, path } = exchange;
    const isPost = request.method === 'POST';
    if (isPost && exchange.isForeign) return sendPage(response, FOREIGN);
    const [id = '', step = '', choice = '', ...more] = path.slice(CONNECTIONS.length + 1).split('/');
    const isGet = request.method === 'GET' || request.method === 'HEAD';
    const isTooDeep = more.length > 0 || (choice !== '' && step !== 'provider');
    if (isTooDeep || !(isGet || isPost)) return sendPage(response, NO_PAGE);
    if (isGet && id === 'callback' && step === '') return this.#callback(exchange);
    if (isGet && step === '' && id === 'client.json') return this.#document(exchange);
    if (isGet && step === '' && id === 'done') return sendPage(response, connectedPage());
    if (id === '' || OWN_STEPS.has(id)) return this.#own(exchange, id, step);
    const goal = await this.#options.accounts.connectLinks.find(id);
    const target = goal && this.#options.accounts.targetOf(goal.template, goal.instanceId);
    if (goal === undefined || target === undefined) return sendPage(response, OVER);
    return this.#visit(exchange, { id, step, choice, goal, target });
  }

  /** Answers with the document by which authorization servers know the gateway. There is none where they could not fetch it. */
  async #document({ response }: OAuthExchange): Promise<void> {
    const { clientDocument } = await this.#options.accounts.open();
    if (clientDocument === undefined) sendPage(response, NO_PAGE);
    else sendJson(response, 200, clientDocument, []);
  }

  /** The list, which belongs to no address. */
  async #own(exchange: OAuthExchange, step: string, choice: string): Promise<void> {
    const { request, response } = exchange;
    const context = connectionLoginOf(CONNECTIONS, 'Sign in to see the accounts that you have connected.');
    if (await this.#login(exchange, context, step, choice)) return;
    const signedIn = await this.#signedIn(exchange);
    if (signedIn === undefined) return (await this.#options.login()).show(exchange, context);
    if (request.method !== 'POST') return sendPage(response, await this.#list(signedIn));
    const form = await ownFormOf(request, signedIn);
    if (form === undefined) return redirect(response, CONNECTIONS);
    if (step === 'sign-out') return this.#signOut(exchange, CONNECTIONS);
    const id = form.get('connection') ?? '';
    const vault = await this.#options.accounts.open();
    if (step === 'disconnect' && (await vault.disconnect(id, signedIn.user.id)))
      this.#record(exchange, signedIn, {
        action: 'DELETE /connections',
        subject: `/gateway/connections/${id}`,
        status: 204,
      });
    return redirect(response, CONNECTIONS);
  }

  async #list({ user, formToken }: SignedIn): Promise<Page> {
    const { accounts, auth } = this.#options;
    const rights = commonRights(user, roleRights(user.role, auth.roles));
    const own = await (await accounts.open()).list(user.id);
    const connections = own.map((each) => ({
      ...each,
      templates: accounts.templatesAt(each.resource).filter((template) => mayUse(rights, template)),
    }));
    return listPage(formToken, user.username, connections);
  }

  async #visit(exchange: OAuthExchange, { id, step, choice, goal, target }: Visited): Promise<void> {
    const { request, response } = exchange;
    const action = `${CONNECTIONS}/${id}`;
    const isPost = request.method === 'POST';
    const context = connectionLoginOf(
      action,
      `"${goal.template}" needs your account there. Sign in to the gateway first.`,
    );
    if (await this.#login(exchange, context, step, choice)) return;
    const signedIn = await this.#signedIn(exchange);
    if (signedIn === undefined) return (await this.#options.login()).show(exchange, context);
    const { user, formToken } = signedIn;
    const form = isPost ? await ownFormOf(request, signedIn) : undefined;
    if (isPost && form === undefined) return redirect(response, action);
    if (isPost && step === 'sign-out') return this.#signOut(exchange, action);
    if (!mayConnect(user, goal, this.#options.auth.roles))
      return sendPage(response, othersPage(action, formToken, user.username));
    if (isPost ? step !== 'connect' : step !== '') return sendPage(response, NO_PAGE);
    if (this.#asked.add(user.id, this.#options.clock.now()).count > MAX_ASKED_PER_MINUTE)
      return sendPage(response, tooManyPage(), ['Retry-After', '60']);
    const vault = await this.#options.accounts.open();
    try {
      if (isPost) {
        const begun = { owner: goal.owner, binding: formToken, returnTo: id };
        return redirect(response, await vault.begin(target, begun));
      }
      const { backend } = await vault.discover(target);
      const provider = new URL(backend.server.authorization_endpoint).origin;
      const found = await vault.find(target, goal.owner);
      const page = connectPage({
        action,
        formToken,
        template: goal.template,
        provider,
        username: user.username,
        server: new URL(backend.resource).origin,
        formTarget: provider,
        whose: goal.owner === SHARED ? 'all callers of this server' : `${user.username} alone`,
        scopes: target.auth.scopes ?? backend.scopes,
        isConnected: found?.state === 'connected',
      });
      return sendPage(response, page);
    } catch (thrown) {
      return sendPage(response, providerFault(thrown, goal.template));
    }
  }

  /**
   * The answer of the provider. Only the browser and sign-in that began may use it, while the user has the right. That may have
   * been taken away meanwhile.
   */
  async #callback(exchange: OAuthExchange): Promise<void> {
    const { request, response } = exchange;
    const signedIn = await this.#signedIn(exchange);
    if (signedIn === undefined) return sendPage(response, UNKNOWN_STATE);
    const { accounts, auth } = this.#options;
    const vault = await accounts.open();
    try {
      const { target, owner } = await vault.finish(
        queryOf(request),
        signedIn.formToken,
        async ({ target: { template, id: instanceId }, owner }) => {
          const present = await this.#signedIn(exchange);
          return (
            present !== undefined && mayConnect(present.user, { template, instanceId, owner }, auth.roles)
          );
        },
      );
      accounts.connectLinks.connected({ template: target.template, instanceId: target.id, owner });
      this.#record(exchange, signedIn, {
        action: 'POST /connections',
        subject: `${target.template}/${target.id} for ${owner}`,
        status: 201,
      });
      return redirect(response, `${CONNECTIONS}/done`);
    } catch (thrown) {
      if (thrown instanceof UnknownState) return sendPage(response, UNKNOWN_STATE);
      if (thrown instanceof RightLost) return sendPage(response, RIGHT_LOST);
      return sendPage(response, providerFault(thrown, 'the server'));
    }
  }

  /** Whether the request was a way to sign in, and is answered. */
  async #login(
    exchange: OAuthExchange,
    context: LoginContext,
    step: string,
    choice: string,
  ): Promise<boolean> {
    const isPost = exchange.request.method === 'POST';
    if (step === 'login' && isPost) await (await this.#options.login()).take(exchange, context);
    else if (step === 'provider' && !isPost)
      return (await this.#options.login()).toProvider(exchange, context, choice);
    else return false;
    return true;
  }

  #signedIn({ request }: OAuthExchange): Promise<SignedIn | undefined> {
    return this.#options.signIns.find(request.headers.cookie);
  }

  async #signOut({ request, response }: OAuthExchange, action: string): Promise<void> {
    redirect(response, action, await this.#options.signIns.end(request.headers.cookie));
  }

  #record(
    { address, requestId }: OAuthExchange,
    { user }: SignedIn,
    change: { readonly action: string; readonly subject: string; readonly status: number },
  ): void {
    this.#options.auth.audit.record({
      actor: userPrincipalId(user.id),
      actorName: user.username,
      ...change,
      address,
      requestId,
    });
  }
}

interface Visited {
  readonly id: string;
  readonly step: string;
  readonly choice: string;
  readonly goal: ConnectGoal;
  readonly target: AccountTarget;
}

/** Steps that are not ids of addresses, which are longer. */
const OWN_STEPS: ReadonlySet<string> = new Set(['login', 'provider', 'sign-out', 'disconnect']);

function connectionLoginOf(action: string, intro: string): LoginContext {
  return { action, intro, subject: CONNECTIONS, purpose: { kind: 'connections', path: action } };
}

function providerFault(thrown: unknown, template: string): Page {
  if (thrown instanceof OAuthRefusal)
    return faultPage(400, 'The account is not connected', {
      what:
        thrown.code === 'access_denied'
          ? 'The access was denied at the provider.'
          : `The provider of ${template} refused it (${thrown.code}).`,
      next: 'To try again, go back to the program and repeat what you asked it for.',
    });
  if (thrown instanceof BackendFetchFailure)
    return faultPage(502, 'The provider cannot be used now', {
      what: `The connection to ${template} failed: ${thrown.message}.`,
      next: 'Try again in a minute. If it stays so, tell an admin of this gateway.',
    });
  throw thrown;
}

const FOREIGN = faultPage(403, 'Nothing was changed', {
  what: 'Another site sent this form.',
  next: 'Go back and use the form of this page.',
});
const NO_PAGE = faultPage(404, 'There is no such page', {
  what: 'The address is wrong.',
  next: 'Your connections are at /connections.',
});
const UNAVAILABLE = faultPage(503, 'The gateway cannot answer now', {
  what: 'Its database does not answer, or a part of it failed; its log says what.',
  next: 'Try again in a minute.',
});
const OVER = faultPage(404, 'This address is no longer valid', {
  what: 'It is older than ten minutes, or the server is gone.',
  next: 'Go back to the program and repeat what you asked it for: it gets a new address.',
});
const UNKNOWN_STATE = faultPage(400, 'The account is not connected', {
  what: 'This browser did not begin this, it took longer than ten minutes, or its answer was used before.',
  next: 'Go back to the program and repeat what you asked it for.',
});
const RIGHT_LOST = faultPage(403, 'The account is not connected', {
  what: 'You may no longer connect this account.',
  next: 'If you need it, ask an admin of this gateway for the right.',
});
