// The pages between an authorization request and its answer: sign in, then allow or deny.

import { randomUUID } from 'node:crypto';
import { errors, type Provider } from 'oidc-provider';
import { rowOfGrant } from '../../auth/grants/grant-rows.ts';
import {
  CLIENT_SCOPES,
  type DefinedRoles,
  roleRights,
  SCOPES,
  type Scope,
  scopesOfUser,
  type User,
} from '../../domain/accounts/account.ts';
import type { Grant } from '../../domain/accounts/grant.ts';
import { userPrincipalId } from '../../domain/accounts/principal.ts';
import { commonRights, mayUse, mayUseInView, type RightsLists } from '../../domain/accounts/rights.ts';
import { WindowCounter } from '../../domain/memory/window-counter.ts';
import { counted } from '../../domain/text.ts';
import type { Clock } from '../../domain/time/clock.ts';
import { networkOf } from '../../net/network-of.ts';
import { oauthKey } from '../../persistence/oauth-rows.ts';
import type { OAuthRow, OAuthStore } from '../../persistence/oauth-store.ts';
import { type ClientRecord, COMMAND_LINE, isLoopbackRedirect } from '../clients/client-record.ts';
import type { Clients } from '../clients/clients.ts';
import { type OAuthExchange, redirect, sendPage } from '../oauth-exchange.ts';
import type { LoginContext, LoginForm } from '../sign-ins/login-form.ts';
import type { Purpose } from '../sign-ins/provider-sign-ins.ts';
import type { SignInTrail } from '../sign-ins/sign-in-trail.ts';
import { ownFormOf, type SignedIn, type SignIns } from '../sign-ins/sign-ins.ts';
import { errorPage, mayRedirect } from './error-answers.ts';
import { consentPage, foreignFormPage, powerlessPage } from './page.ts';

export const SCOPE_WORDS: Readonly<Record<Scope, string>> = {
  'gateway:read': 'see which servers there are, and their state',
  'tools:call': 'call tools, and read resources and prompts',
  'gateway:write': 'register, change and remove servers',
  admin: 'do everything, accounts included',
};

const NO_SCOPE = {
  error: 'invalid_scope',
  error_description: 'none of the scopes is available to this client',
};
const NO_RESOURCE = {
  error: 'invalid_target',
  error_description: 'it is not for a resource of this gateway',
};
export const DENIED = 'the user denied the request';
/** Grants of one user, and consents after which they are counted: a look takes a query. */
const [MAX_OF_USER, LOOK_EVERY] = [500, 10];
/** The longest time for which an authorization waits until its code is redeemed, in ms. */
const UNREDEEMED_MS = 5 * 60_000;

export interface InteractionOptions {
  readonly clock: Clock;
  readonly store: OAuthStore;
  readonly clients: Clients;
  readonly signIns: SignIns;
  readonly login: LoginForm;
  readonly trail: SignInTrail;
  /** The path of a resource; undefined when it is none of this gateway. */
  readonly pathOf: (resource: string) => string | undefined;
  readonly issuer: () => string;
  /** The roles of the settings. */
  readonly roles: DefinedRoles | undefined;
  /** The templates that are used with an account which this user has connected. Default: none. */
  readonly accountsOf?: ((userId: string) => Promise<readonly string[]>) | undefined;
  /** The templates of a view; undefined for the name of a template. Default: there are no views. */
  readonly templatesOf?: ((view: string) => readonly string[] | undefined) | undefined;
}

type Details = Awaited<ReturnType<Provider['interactionDetails']>>;
/** Answers the request of the library that began the interaction. */
type Finish = (result: Parameters<Provider['interactionFinished']>[2]) => Promise<void>;

/** Answers the requests to the pages of an interaction. Each answer is taken once. */
export class Interactions {
  readonly #options: InteractionOptions;
  readonly #granted = new WindowCounter({ windowSeconds: 180 * 86_400, keys: 10_000 });

  constructor(options: InteractionOptions) {
    this.#options = options;
  }

  /** `path`: below /oauth/interaction/. */
  async serve(exchange: OAuthExchange, path: string, details: Details, finish: Finish): Promise<void> {
    const { request, response, address } = exchange;
    const [uid = '', step = '', choice = ''] = path.split('/');
    const isPost = request.method === 'POST';
    if (uid !== details.uid) throw new errors.SessionNotFound('another interaction');
    // An answer makes a grant: not for a client that was removed at another node just now.
    const id = String(details.params.client_id);
    const client = await this.#options.clients.find(id, networkOf(address), isPost);
    if (client === undefined) throw new errors.InvalidClient('the client was removed');
    if (isPost && exchange.isForeign) return sendPage(response, foreignFormPage());
    const asked = askedFor(details, client);
    const path_ = this.#options.pathOf(asked.resource);
    if (asked.scopes.length === 0 || path_ === undefined)
      return this.#refuse(exchange, path_ === undefined ? NO_RESOURCE : NO_SCOPE, {
        details,
        client,
        finish,
      });
    const signedIn = await this.#options.signIns.find(request.headers.cookie);
    const { login } = this.#options;
    const context = loginContextOf(actionOf(uid), client, { kind: 'interaction', uid });
    if (isPost && step === 'login') return login.take(exchange, context);
    if (isPost && (step === 'consent' || step === 'sign-out')) {
      const form = signedIn && (await ownFormOf(request, signedIn));
      if (form === undefined || signedIn === undefined) return redirect(response, actionOf(uid));
      if (step === 'sign-out')
        return redirect(response, actionOf(uid), await this.#options.signIns.end(request.headers.cookie));
      return this.#answer(exchange, {
        details,
        client,
        signedIn,
        asked,
        isAllowed: form.get('decision') === 'allow',
        finish,
      });
    }
    if (!isPost && step === 'provider' && (await login.toProvider(exchange, context, choice))) return;
    if (isPost || step !== '') throw new errors.SessionNotFound('no such page');
    // A client may ask for a new sign-in.
    const wantsNew = /\b(?:login|select_account)\b/.test(String(details.params.prompt ?? ''));
    const beganMs = (details.iat ?? 0) * 1_000;
    if (signedIn === undefined || (wantsNew && signedIn.atMs < beganMs)) return login.show(exchange, context);
    const accounts = await this.accountsOf(signedIn.user, client, path_);
    const view = { uid, client, signedIn, asked, path: path_, accounts };
    sendPage(response, this.#consent(view, String(details.params.redirect_uri)));
  }

  /** Refuses the authorization before its user has decided. */
  async #refuse(
    { request, response }: OAuthExchange,
    fault: typeof NO_SCOPE,
    { details: { params }, client, finish }: Pick<Answered, 'details' | 'client' | 'finish'>,
  ): Promise<void> {
    const redirectUri = String(params.redirect_uri);
    if (await mayRedirect({ client, redirectUri, cookies: request.headers.cookie }, this.#options))
      return finish(fault);
    const answer = new URL(redirectUri);
    const fields = { ...fault, state: params.state, iss: this.#options.issuer() };
    for (const [name, value] of Object.entries(fields))
      if (value !== undefined) answer.searchParams.set(name, String(value));
    sendPage(response, errorPage(client.name, fault.error_description, answer));
  }

  /** The templates at whose servers the client will use accounts of the user. */
  async accountsOf(user: User, client: ClientRecord, path: string): Promise<readonly string[]> {
    const rights = commonRights(user, roleRights(user.role, this.#options.roles), client.lists ?? {});
    const all = (await this.#options.accountsOf?.(user.id)) ?? [];
    if (!path.startsWith('/mcp/')) return all.filter((template) => mayUse(rights, template));
    const name = path.slice('/mcp/'.length);
    const ofView = this.#options.templatesOf?.(name);
    return ofView === undefined
      ? all.filter((template) => template === name && mayUse(rights, template))
      : all.filter((template) => ofView.includes(template) && mayUseInView(rights, template));
  }

  #consent(
    { uid, client, signedIn: { user, formToken }, asked, path, accounts }: ConsentInput,
    redirectUri: string,
  ) {
    const scopes = allowedTo(user, asked.scopes, this.#options.roles);
    const { destination, formTarget } = destinationOf(redirectUri, client.name);
    if (scopes.length === 0) return powerlessPage(client.name, user.username);
    return consentPage({
      action: actionOf(uid),
      formToken,
      username: user.username,
      clientName: client.name,
      origin: originOf(client),
      destination,
      scopes: scopes.map((scope) => SCOPE_WORDS[scope]),
      dropped: asked.dropped.map((scope) => SCOPE_WORDS[scope]),
      ...reachOf([user, client.lists ?? {}], path),
      accounts,
      formTarget,
    });
  }

  async #answer(
    exchange: OAuthExchange,
    { details, client, signedIn, asked, isAllowed, finish }: Answered,
  ): Promise<void> {
    const { store, clock } = this.#options;
    const at = new Date(clock.wall()).toISOString();
    // This is a second click: the first one counts, but the browser has dropped its answer.
    if (!(await store.consume('interaction', oauthKey('interaction', details.uid), at)))
      return redirect(exchange.response, details.returnTo);
    const grant = await this.decide(exchange, { user: signedIn.user, client, asked, isAllowed });
    if (grant === undefined) return finish({ error: 'access_denied', error_description: DENIED });
    return finish({ login: { accountId: grant.userId }, consent: { grantId: grant.id }, select_account: {} });
  }

  /** Records the decision; the grant, if the user allowed something that the account may do. */
  async decide(
    { address, requestId }: Pick<OAuthExchange, 'address' | 'requestId'>,
    { user, client, asked, isAllowed }: Decision,
  ): Promise<Grant | undefined> {
    const { store, trail: own, clients, clock } = this.#options;
    const nowMs = clock.wall();
    const trail = (subject: string, status: number) =>
      own.record({
        actor: userPrincipalId(user.id),
        actorName: user.username,
        action: 'POST /oauth/consent',
        subject,
        status,
        address,
        requestId,
      });
    const scopes = allowedTo(user, asked.scopes, this.#options.roles);
    if (!isAllowed || scopes.length === 0) {
      trail(`${client.name} (${client.id})`, 403);
      return undefined;
    }
    const grant: Grant = {
      id: randomUUID(),
      userId: user.id,
      clientId: client.id,
      clientName: client.name,
      resource: asked.resource,
      scopes,
      lists: client.lists,
      createdAt: new Date(nowMs).toISOString(),
      expiresAt: new Date(nowMs + UNREDEEMED_MS).toISOString(),
    };
    await store.save(rowOfGrant(grant));
    await clients.used(client.id);
    const { count } = this.#granted.add(user.id, clock.now());
    trail(`/auth/grants/${grant.id} for ${client.name} (${client.id})`, 201);
    const ended = count % LOOK_EVERY === 0 ? await endOldest(store, user.id) : 0;
    if (ended > 0) trail(`${counted(ended, 'older grant')} ended: a user has at most ${MAX_OF_USER}`, 200);
    return grant;
  }
}

/** Ends the grants beyond MAX_OF_USER that were used longest ago, or never. Resolves with the number. */
async function endOldest(store: OAuthStore, userId: string): Promise<number> {
  const rows = await store.list({ kind: 'grant', userId }, 2 * MAX_OF_USER);
  const usedAt = ({ usedAt = '', createdAt }: OAuthRow) => (usedAt > createdAt ? usedAt : createdAt);
  const oldest = rows.toSorted((a, b) => (usedAt(a) < usedAt(b) ? 1 : -1)).slice(MAX_OF_USER);
  for (const { grantId } of oldest) if (grantId !== undefined) await store.end({ grantId });
  return oldest.length;
}

interface ConsentInput {
  readonly uid: string;
  readonly client: ClientRecord;
  readonly signedIn: SignedIn;
  readonly asked: Asked;
  readonly path: string;
  readonly accounts: readonly string[];
}

interface Answered extends Omit<Decision, 'user'> {
  readonly details: Details;
  readonly signedIn: SignedIn;
  readonly finish: Finish;
}

/** What a user has decided about the access that a client asks for. */
interface Decision {
  readonly user: User;
  readonly client: ClientRecord;
  readonly asked: Asked;
  readonly isAllowed: boolean;
}

interface Asked {
  readonly resource: string;
  readonly scopes: readonly Scope[];
  /** Scopes that the client asks for and does not get. */
  readonly dropped: readonly Scope[];
}

export function askedFor({ params }: Pick<Details, 'params'>, client: ClientRecord): Asked {
  const written = String(params.scope ?? '').split(' ');
  const known = SCOPES.filter((scope) => written.includes(scope));
  const isObtainable = (scope: Scope) => CLIENT_SCOPES.includes(scope) || client.scopes.includes(scope);
  return {
    resource: typeof params.resource === 'string' ? params.resource : '',
    scopes: known.filter(isObtainable),
    dropped: known.filter((scope) => !isObtainable(scope)),
  };
}

/** The scopes that the user may give away: those of its own. */
export function allowedTo(
  user: User,
  scopes: readonly Scope[],
  roles: DefinedRoles | undefined,
): readonly Scope[] {
  const own = scopesOfUser(user, roles);
  return scopes.filter((scope) => own.includes(scope));
}

/** The login page of a client that asks for access. */
export function loginContextOf(action: string, { id, name }: ClientRecord, purpose: Purpose): LoginContext {
  const intro = `${name} asks for access to this gateway. After signing in you decide what it gets.`;
  return { action, intro, subject: `/oauth/clients/${id}`, purpose };
}

function actionOf(uid: string): string {
  return `/oauth/interaction/${uid}`;
}

/** Where a client comes from, as a clause for the consent page. */
export function originOf({ source, id }: ClientRecord): string {
  if (id === COMMAND_LINE.id) return 'part of stagedoor';
  if (source === 'document') return `described by ${new URL(id).host}`;
  return source === 'added' ? 'added by an admin of this gateway' : 'which registered itself, unverified';
}

function destinationOf(redirectUri: string, name: string): { destination: string; formTarget: string } {
  const url = new URL(redirectUri);
  const { protocol, host, origin } = url;
  if (isLoopbackRedirect(url))
    return { destination: `a program on this computer; it may not be ${name}`, formTarget: origin };
  if (protocol === 'https:') return { destination: host, formTarget: origin };
  return { destination: `the program that opens links with ${protocol}`, formTarget: protocol };
}

/** The part of the gateway that a client may use, in words: the rights that all of these lists have in common. */
export function reachOf(
  all: readonly RightsLists[],
  path: string,
): { readonly templates: string; readonly views?: string; readonly tools: readonly string[] } {
  const { templates, views, tools } = commonRights(...all);
  const reach = { tools: (tools?.lists ?? []).map((list) => list.join(', ')) };
  if (path.startsWith('/mcp/')) return { ...reach, templates: `only ${path.slice('/mcp/'.length)}` };
  return {
    ...reach,
    templates: templates === undefined ? 'all, also later ones' : [...templates].join(', ') || 'none',
    ...(views === undefined || views.size === 0 ? {} : { views: [...views].join(', ') }),
  };
}
