// The steps from "connect" to a connection: the authorization request, with PKCE and a state that is a row, and the code that
// comes back.

import { hash } from 'node:crypto';
import Type from 'typebox';
import { CONNECT_LINK_MS } from '../domain/calls/connection-required.ts';
import { asGatewayError } from '../domain/errors/errors.ts';
import { definedFields } from '../domain/json/json.ts';
import type { Clock } from '../domain/time/clock.ts';
import { oauthKey, rowReader } from '../persistence/oauth-rows.ts';
import type { OAuthRow, OAuthStore } from '../persistence/oauth-store.ts';
import {
  type AccountConnections,
  accountConnectionKey,
  type StoredAccountConnection,
} from './account-connections.ts';
import { BackendFetchFailure, ServerChanged } from './backend-fetch.ts';
import { tokensIn } from './issued-tokens.ts';
import type {
  AccountTarget,
  BeginRequest,
  BegunConnection,
  OAuthBackend,
  OAuthBackends,
} from './oauth-backends.ts';
import type { OAuthRequests } from './oauth-requests.ts';
import type { OwnClients } from './own-clients.ts';

/** The state of a callback that belongs to no request of this browser, or to one that is over. */
export class UnknownState extends Error {
  override readonly name = 'UnknownState';
}

/** The user who began may no longer connect this account. */
export class RightLost extends Error {
  override readonly name = 'RightLost';
}

interface StoredFlow extends Pick<BeginRequest, 'owner' | 'returnTo'> {
  readonly target: AccountTarget;
  /** The SHA-256 of the value that binds the flow to its browser. */
  readonly binding: string;
  readonly verifier: string;
  readonly issuer: string;
  readonly resource: string;
  readonly clientId: string;
  readonly redirectUri: string;
  readonly scopes: readonly string[];
}

const text = Type.String();
const optionalText = Type.Optional(text);

const readBegun: (row: OAuthRow) => StoredFlow = rowReader(
  Type.Object({
    target: Type.Object({
      template: text,
      id: text,
      endpoint: text,
      auth: Type.Object({
        who: Type.Enum(['user', 'shared']),
        clientId: optionalText,
        clientSecret: optionalText,
        scopes: Type.Optional(Type.Array(text)),
      }),
    }),
    owner: text,
    returnTo: optionalText,
    binding: text,
    verifier: text,
    issuer: text,
    resource: text,
    clientId: text,
    redirectUri: text,
    scopes: Type.Array(text),
  }),
);

interface AuthorizationFlowOptions {
  readonly clock: Clock;
  readonly store: Pick<OAuthStore, 'save' | 'find' | 'consume'>;
  readonly backends: OAuthBackends;
  readonly clients: OwnClients;
  readonly connections: AccountConnections;
  readonly requests: OAuthRequests;
  /** Called with tokens that are certainly not stored. */
  readonly onUnused: (value: StoredAccountConnection) => void;
}

const MAX_SCOPES = 100;
const STATE = /^[\w-]{43}$/;

/**
 * The authorization of connections, from the request to the code, for all users. A state is used once, within ten
 * minutes, by the browser and the user that began. Source: RFC 6749, RFC 7636, RFC 8707, RFC 9207, ADR 218.
 */
export class AuthorizationFlow {
  readonly #options: AuthorizationFlowOptions;

  constructor(options: AuthorizationFlowOptions) {
    this.#options = options;
  }

  /** The URL at the authorization server to which the browser is sent. Throws BackendFetchFailure. */
  async begin(target: AccountTarget, { owner, binding, returnTo }: BeginRequest): Promise<string> {
    const { backends, clients, store, clock } = this.#options;
    const oauth = await import('oauth4webapi');
    const backend = await backends.discover(target);
    if (backend.changedTo !== undefined) throw new ServerChanged(backend.changedTo);
    const { server, resource } = backend;
    const client = await clients.at(target, backend);
    const state = oauth.generateRandomState();
    const verifier = oauth.generateRandomCodeVerifier();
    const scopes = await this.#scopesFor(target, backend, owner);
    const { redirectUri } = clients;
    const value: StoredFlow = {
      target,
      owner,
      returnTo,
      binding: digestOf(binding),
      verifier,
      issuer: server.issuer,
      resource,
      clientId: client.id,
      redirectUri,
      scopes,
    };
    await store.save({
      kind: 'connecting',
      key: oauthKey('connecting', state),
      value: JSON.stringify(value),
      createdAt: new Date(clock.wall()).toISOString(),
      expiresAt: new Date(clock.wall() + CONNECT_LINK_MS).toISOString(),
    });
    const url = new URL(server.authorization_endpoint);
    const parameters = {
      response_type: 'code',
      client_id: client.id,
      redirect_uri: redirectUri,
      state,
      resource,
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
      ...(scopes.length === 0 ? {} : { scope: scopes.join(' ') }),
      // Otherwise some servers give no refresh token when the account agreed before. Source: OpenID Connect Core, 11.
      ...(scopes.includes('offline_access') ? { prompt: 'consent' } : {}),
    };
    for (const [name, text] of Object.entries(parameters)) url.searchParams.set(name, text);
    return url.href;
  }

  /**
   * Takes the answer of the authorization server: `query` of the callback. The state is used up in any case, unless it is another
   * browser's. `mayFinish` is asked before the tokens are asked for, before they are stored, and after that. Throws
   * - UnknownState for a state that is not one of this browser, was used, or is over;
   * - RightLost if `mayFinish` is false for what was begun;
   * - OAuthRefusal if the authorization server refuses (`access_denied`);
   * - BackendFetchFailure if that server cannot be asked, or has changed since;
   * - DATABASE_UNAVAILABLE.
   */
  async finish(
    query: URLSearchParams,
    binding: string,
    mayFinish: (begun: BegunConnection) => boolean | Promise<boolean> = () => true,
  ): Promise<{ readonly begun: BegunConnection; readonly backend: OAuthBackend }> {
    const { connections, onUnused } = this.#options;
    const flow = await this.#taken(query, binding);
    const { target, owner, returnTo } = flow;
    const begun = { target, owner, returnTo };
    const hasRight = () => mayFinish(begun);
    if (!(await hasRight())) throw new RightLost();
    const { backend, value } = await this.#connectionFor(flow, query);
    let takeBack: () => Promise<void>;
    try {
      if (!(await hasRight())) throw new RightLost();
      // The tokens of an earlier connection are not revoked: some servers would end the new ones with them.
      takeBack = await connections.save(accountConnectionKey(owner, backend), value);
    } catch (thrown) {
      if (asGatewayError(thrown).delivered !== 'unknown') onUnused(value);
      throw thrown;
    }
    // The rows of a user end with the user, and this one may have come after that.
    if (!(await hasRight())) {
      await takeBack();
      onUnused(value);
      throw new RightLost();
    }
    return { begun, backend };
  }

  /** What was begun with the state of the callback, which is used up. */
  async #taken(query: URLSearchParams, binding: string): Promise<StoredFlow> {
    const { store, clock } = this.#options;
    const state = query.get('state') ?? '';
    const key = oauthKey('connecting', state);
    const [row] = STATE.test(state) ? await store.find('connecting', [key]) : [];
    const now = new Date(clock.wall()).toISOString();
    if (row === undefined || row.consumedAt !== undefined || (row.expiresAt ?? '') <= now)
      throw new UnknownState();
    const flow = readBegun(row);
    if (flow.binding !== digestOf(binding)) throw new UnknownState();
    if (!(await store.consume('connecting', key, now))) throw new UnknownState();
    return flow;
  }

  /** The connection with the tokens for the code of the callback, not stored yet. */
  async #connectionFor(flow: StoredFlow, query: URLSearchParams) {
    const { backends, clients, requests, clock } = this.#options;
    const { target, owner, resource, issuer, verifier, redirectUri } = flow;
    const { endpoint } = target;
    const backend = await backends.stored(target);
    if (backend?.server.issuer !== issuer || backend.resource !== resource)
      throw new BackendFetchFailure('the authorization server changed meanwhile');
    const { server } = backend;
    const own = await clients.at(target, backend);
    const { id: clientId } = own;
    if (clientId !== flow.clientId)
      throw new BackendFetchFailure('the client of the gateway there has changed');
    const [client, auth] = await clients.authOf(own, server);
    const oauth = await import('oauth4webapi');
    const answer = await requests.ask(endpoint, async (options) => {
      const parameters = oauth.validateAuthResponse(server, client, query, query.get('state') ?? '');
      return oauth.processAuthorizationCodeResponse(
        server,
        client,
        await oauth.authorizationCodeGrantRequest(server, client, auth, parameters, redirectUri, verifier, {
          ...options,
          additionalParameters: { resource },
        }),
      );
    });
    const { scopes = flow.scopes, ...tokens } = tokensIn(answer, clock.wall());
    // The secret of a client that an admin gave is read from the instance, where it may change.
    const secret = target.auth.clientId === undefined ? definedFields({ clientSecret: own.secret }) : {};
    const value: StoredAccountConnection = {
      owner,
      issuer,
      resource,
      endpoint,
      clientId,
      scopes,
      ...tokens,
      ...secret,
    };
    return { backend, value };
  }

  /** The scopes of the instance, else those that the backend asked for, and those for which a call was refused. */
  async #scopesFor(target: AccountTarget, backend: OAuthBackend, owner: string): Promise<readonly string[]> {
    const before = await this.#options.connections.find(accountConnectionKey(owner, backend));
    const asked = target.auth.scopes ?? backend.scopes;
    const offline = backend.server.scopes_supported?.includes('offline_access') ? ['offline_access'] : [];
    const all = [...asked, ...(before?.value.wanted ?? []), ...(asked.length === 0 ? [] : offline)];
    return [...new Set(all)].slice(0, MAX_SCOPES);
  }
}

function digestOf(binding: string): string {
  return hash('sha256', binding, 'hex');
}
