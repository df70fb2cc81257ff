// The facts about the authorization server of a backend: found by its 401 and the documents that it names, stored, and
// compared at each opening.

import Type from 'typebox';
import { type InstanceAuth, isResourceOf } from '../domain/instances/account-connection.ts';
import type { InstanceDefinition } from '../domain/instances/instance.ts';
import { isJsonObject, type JsonObject } from '../domain/json/json.ts';
import { MCP_ACCEPT } from '../domain/mcp/media-types.ts';
import type { Clock } from '../domain/time/clock.ts';
import { challengeIn, scopesIn } from '../net/http1/backend-challenge.ts';
import { oauthKey, rowReader } from '../persistence/oauth-rows.ts';
import type { OAuthRow, OAuthStore } from '../persistence/oauth-store.ts';
import { type BackendFetch, BackendFetchFailure } from './backend-fetch.ts';

/** An instance with `auth`, as the target of a connection. */
export type AccountTarget = Pick<InstanceDefinition, 'template' | 'id'> & {
  readonly endpoint: string;
  readonly auth: InstanceAuth;
};

/** A connection that is to be made. */
export interface BeginRequest {
  /** The owner: SHARED, or the id of a user. */
  readonly owner: string;
  /** The secret of the sign-in which proves that the callback comes to the browser and the user that began. */
  readonly binding: string;
  /** An id of the caller, which `finish` returns: never a URL. */
  readonly returnTo?: string | undefined;
}

/** A connection that was begun: what `finish` resolves with, once it is made. */
export interface BegunConnection {
  readonly target: AccountTarget;
  readonly owner: string;
  readonly returnTo: string | undefined;
}

/** The metadata of an authorization server that the gateway uses. Source: RFC 8414. */
export type ServerMetadata = {
  readonly issuer: string;
  readonly authorization_endpoint: string;
  readonly token_endpoint: string;
  readonly registration_endpoint?: string;
  readonly revocation_endpoint?: string;
  readonly scopes_supported?: string[];
  readonly code_challenge_methods_supported?: string[];
  readonly token_endpoint_auth_methods_supported?: string[];
  readonly client_id_metadata_document_supported?: boolean;
  readonly authorization_response_iss_parameter_supported?: boolean;
};

/** The authorization server that is used: the stored one if there is one, any that the backend names, or only this one. */
export type AcceptedServer = 'stored' | 'any' | { readonly issuer: string };

export interface OAuthBackend {
  /** The URL for which its tokens are valid: its endpoint, or a parent path. */
  readonly resource: string;
  readonly server: ServerMetadata;
  /** The scopes that it asked for. */
  readonly scopes: readonly string[];
  /** The issuer of another server that the backend named later, and that an admin has not confirmed. */
  readonly changedTo?: string | undefined;
}

const texts = Type.Array(Type.String());

const readBackend: (row: OAuthRow) => OAuthBackend = rowReader(
  Type.Object({
    resource: Type.String(),
    server: Type.Object({
      issuer: Type.String(),
      authorization_endpoint: Type.String(),
      token_endpoint: Type.String(),
      registration_endpoint: Type.Optional(Type.String()),
      revocation_endpoint: Type.Optional(Type.String()),
      scopes_supported: Type.Optional(texts),
      code_challenge_methods_supported: Type.Optional(texts),
      token_endpoint_auth_methods_supported: Type.Optional(texts),
      client_id_metadata_document_supported: Type.Optional(Type.Boolean()),
      authorization_response_iss_parameter_supported: Type.Optional(Type.Boolean()),
    }),
    scopes: texts,
    changedTo: Type.Optional(Type.String()),
  }),
);

/** Attempts to store facts that other nodes change meanwhile. */
const MAX_ATTEMPTS = 5;

/** The request that a client sends first. Its answer is not needed. */
const FIRST_REQUEST = JSON.stringify({
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'stagedoor', version: '1' },
  },
});

/**
 * Discovers the authorization servers that backends name, stores them, and compares. A backend that names another
 * server later is not used until an admin agrees: the new one would get the accounts of users. Source: RFC 9728, RFC
 * 8414, OpenID Connect Discovery 1.0, MCP 2025-11-25 basic/authorization, ADR 218.
 */
export class OAuthBackends {
  readonly #clock: Clock;
  readonly #store: Pick<OAuthStore, 'find' | 'replace' | 'save'>;
  readonly #fetch: BackendFetch;

  constructor(clock: Clock, store: Pick<OAuthStore, 'find' | 'replace' | 'save'>, fetch: BackendFetch) {
    this.#clock = clock;
    this.#store = store;
    this.#fetch = fetch;
  }

  /** The stored facts of a backend; undefined if its authorization server was never found. */
  async stored({ endpoint }: Pick<AccountTarget, 'endpoint'>): Promise<OAuthBackend | undefined> {
    const row = await this.#rowOf(endpoint);
    return row && readBackend(row);
  }

  /**
   * Asks the backend, and stores the facts when none are stored, or the server that it names is accepted. Another one is
   * noted in `changedTo`, and the stored facts are returned. Throws BackendFetchFailure.
   */
  async discover(target: AccountTarget, accepted: AcceptedServer = 'stored'): Promise<OAuthBackend> {
    const found = await this.#found(target);
    const { issuer } = found.server;
    const isAccepted = typeof accepted === 'string' ? accepted === 'any' : accepted.issuer === issuer;
    for (let left = MAX_ATTEMPTS; ; left -= 1) {
      const row = await this.#rowOf(target.endpoint);
      const before = row && readBackend(row);
      const isSame = before === undefined || partsOf(before) === partsOf(found);
      const next = isSame || isAccepted ? found : { ...before, changedTo: issuer };
      if (JSON.stringify(next) === JSON.stringify(before)) return next;
      const written = {
        kind: 'backend',
        key: oauthKey('backend', target.endpoint),
        createdAt: new Date(this.#clock.wall()).toISOString(),
        value: JSON.stringify(next),
      } as const;
      // An admin may confirm another server at this moment, at another node.
      if (await this.#store.replace(written, row?.version ?? 0)) return next;
      if (left > 1) continue;
      await this.#store.save(written); // of a row that cannot be decrypted
      return next;
    }
  }

  async #rowOf(endpoint: string): Promise<OAuthRow | undefined> {
    const [row] = await this.#store.find('backend', [oauthKey('backend', endpoint)]);
    return row;
  }

  /** The answer of the backend to a request without an account. Throws BackendFetchFailure when there is none. */
  async ask({ endpoint }: Pick<AccountTarget, 'endpoint'>): Promise<Response> {
    const answer = await this.#fetch.send(endpoint, endpoint, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: MCP_ACCEPT },
      body: FIRST_REQUEST,
      isBodyIgnored: true,
    });
    if (answer.status >= 500) throw new BackendFetchFailure(`it answered ${answer.status}`);
    return answer;
  }

  async #found({ endpoint, auth }: AccountTarget): Promise<OAuthBackend> {
    const answer = await this.ask({ endpoint });
    const challenge = challengeIn(answer.headers.get('www-authenticate'));
    const { origin, pathname } = new URL(endpoint);
    const wellKnown = `${origin}/.well-known/oauth-protected-resource`;
    const path = pathname.replace(/\/$/, '');
    const places = challenge.resourceMetadata ?? [...new Set([`${wellKnown}${path}`, wellKnown])];
    const document = await this.#first(endpoint, [places].flat(), () => true);
    // Servers of 2025-03-26 have no such document, and are their own authorization servers.
    const resource = document === undefined ? endpoint : resourceIn(document, endpoint);
    const [issuer = origin] = document === undefined ? [origin] : someTexts(document.authorization_servers);
    const server = await this.#server(endpoint, issuer, auth);
    const offered = document === undefined ? [] : someTexts(document.scopes_supported);
    const scopes = challenge.scopes.length > 0 ? challenge.scopes : scopesIn(offered.join(' '));
    return { resource, server, scopes };
  }

  async #server(endpoint: string, issuer: string, auth: InstanceAuth): Promise<ServerMetadata> {
    if (!this.#fetch.mayName(endpoint, issuer))
      throw new BackendFetchFailure('it names an authorization server whose address is not allowed');
    const { origin, pathname } = new URL(issuer);
    const path = pathname.replace(/\/$/, '');
    const places = [
      `${origin}/.well-known/oauth-authorization-server${path}`,
      `${origin}/.well-known/openid-configuration${path}`,
      `${origin}${path}/.well-known/openid-configuration`,
    ];
    const isOwn = ({ issuer: own }: JsonObject) =>
      typeof own === 'string' && own.replace(/\/$/, '') === issuer.replace(/\/$/, '');
    const document = await this.#first(endpoint, [...new Set(places)], isOwn);
    if (document === undefined)
      throw new BackendFetchFailure('its authorization server has no metadata that names it');
    const server = metadataIn(document);
    const addresses = [
      ...[server.authorization_endpoint, server.token_endpoint],
      ...[server.registration_endpoint ?? [], server.revocation_endpoint ?? []].flat(),
    ];
    if (!addresses.every((address) => this.#fetch.mayName(endpoint, address)))
      throw new BackendFetchFailure('its authorization server names an address that is not allowed');
    const methods = server.code_challenge_methods_supported;
    // The admin who gives a client id knows the server; some large ones do not announce what they do.
    if (methods?.includes('S256') === false || (methods === undefined && auth.clientId === undefined))
      throw new BackendFetchFailure('its authorization server does not announce PKCE with S256');
    return server;
  }

  /** The first JSON object that fits. Throws when none answers because its server cannot be reached. */
  async #first(
    endpoint: string,
    places: readonly string[],
    fits: (document: JsonObject) => boolean,
  ): Promise<JsonObject | undefined> {
    let failure: unknown;
    for (const place of places) {
      try {
        const response = await this.#fetch.send(endpoint, place);
        const document: unknown = response.ok ? await response.json().catch(() => undefined) : undefined;
        if (isJsonObject(document) && fits(document)) return document;
      } catch (thrown) {
        failure ??= thrown;
      }
    }
    if (failure !== undefined) throw failure;
    return undefined;
  }
}

/** A text of the parts of a backend that must not change by themselves. */
function partsOf({ resource, server }: OAuthBackend): string {
  const { issuer, authorization_endpoint, token_endpoint, registration_endpoint, revocation_endpoint } =
    server;
  return JSON.stringify([
    ...[resource, issuer, authorization_endpoint, token_endpoint],
    ...[registration_endpoint, revocation_endpoint],
  ]);
}

/** The resource that a document names. Throws for another resource, which would be another server and must not get its tokens. */
function resourceIn(document: JsonObject, endpoint: string): string {
  const { resource } = document;
  const url = typeof resource === 'string' ? URL.parse(resource) : null;
  if (typeof resource !== 'string' || url === null || url.hash !== '')
    throw new BackendFetchFailure('its document names no resource');
  if (!isResourceOf(resource, endpoint))
    throw new BackendFetchFailure('its document is for another resource');
  return resource;
}

function metadataIn(document: JsonObject): ServerMetadata {
  const { issuer, authorization_endpoint, token_endpoint } = document;
  if (
    typeof issuer !== 'string' ||
    typeof authorization_endpoint !== 'string' ||
    typeof token_endpoint !== 'string'
  )
    throw new BackendFetchFailure('its authorization server names no endpoints');
  const { registration_endpoint: registration, revocation_endpoint: revocation } = document;
  const lists = [
    'scopes_supported',
    'code_challenge_methods_supported',
    'token_endpoint_auth_methods_supported',
  ];
  const kept = lists.flatMap((name) =>
    Array.isArray(document[name]) ? [[name, someTexts(document[name])]] : [],
  );
  return {
    issuer,
    authorization_endpoint,
    token_endpoint,
    ...(typeof registration === 'string' ? { registration_endpoint: registration } : {}),
    ...(typeof revocation === 'string' ? { revocation_endpoint: revocation } : {}),
    ...Object.fromEntries(kept),
    ...(document.client_id_metadata_document_supported === true
      ? { client_id_metadata_document_supported: true }
      : {}),
    ...(document.authorization_response_iss_parameter_supported === true
      ? { authorization_response_iss_parameter_supported: true }
      : {}),
  };
}

const MAX_TEXTS = 200;

function someTexts(list: unknown): string[] {
  return Array.isArray(list) ? list.filter((item) => typeof item === 'string').slice(0, MAX_TEXTS) : [];
}
