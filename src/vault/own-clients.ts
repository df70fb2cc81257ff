// The gateway as a client of an authorization server: with the id that an admin has given, by the address of its
// own document, or registered there. A registration is stored and used by all nodes. Source: MCP 2025-11-25
// basic/authorization#client-registration, RFC 7591.

import type * as OAuth from 'oauth4webapi';
import Type from 'typebox';
import type { WayToBeKnown } from '../domain/instances/account-connection.ts';
import { definedFields } from '../domain/json/json.ts';
import { type Clock, DAY_MS } from '../domain/time/clock.ts';
import { oauthKey, rowReader } from '../persistence/oauth-rows.ts';
import type { OAuthRow, OAuthStore } from '../persistence/oauth-store.ts';
import type { StoredAccountConnection } from './account-connections.ts';
import { BackendFetchFailure } from './backend-fetch.ts';
import type { AccountTarget, OAuthBackend, ServerMetadata } from './oauth-backends.ts';
import type { OAuthRequests } from './oauth-requests.ts';

interface OwnClient {
  readonly id: string;
  readonly secret?: string | undefined;
  /** The end of its secret, in ms since 1970; undefined: it does not expire. */
  readonly expiresAtMs?: number | undefined;
}

const readOwnClient: (row: OAuthRow) => OwnClient = rowReader(
  Type.Object({
    id: Type.String(),
    secret: Type.Optional(Type.String()),
    expiresAtMs: Type.Optional(Type.Number()),
  }),
);

interface OwnClientsOptions {
  readonly clock: Clock;
  readonly store: Pick<OAuthStore, 'find' | 'save' | 'replace'>;
  readonly requests: OAuthRequests;
  /** The address at which the gateway is reached: an origin. */
  readonly base: () => string;
  /** Whether authorization servers elsewhere can read its document. */
  readonly isPublic: () => boolean;
}

/** The time for which a registration is kept after its last use, in ms. A use is written once a day. */
const KEPT_MS = 180 * DAY_MS;

/** The paths of the gateway below its base. */
const CLIENT_DOCUMENT = '/connections/client.json';
const CALLBACK = '/connections/callback';

/** Finds the client of the gateway at a server, and registers it where that is the way. */
export class OwnClients {
  readonly #options: OwnClientsOptions;

  constructor(options: OwnClientsOptions) {
    this.#options = options;
  }

  get redirectUri(): string {
    return `${this.#options.base()}${CALLBACK}`;
  }

  /** The way in which the gateway can be known at a server; undefined when an admin has to give an id. */
  wayAt(target: Pick<AccountTarget, 'auth'>, server: ServerMetadata): WayToBeKnown | undefined {
    if (target.auth.clientId !== undefined) return 'given';
    if (server.client_id_metadata_document_supported === true && this.#hasDocument) return 'document';
    return server.registration_endpoint === undefined ? undefined : 'registration';
  }

  /** The document that an authorization server reads at the address that is the id of the gateway there. */
  document(): object {
    return { client_id: `${this.#options.base()}${CLIENT_DOCUMENT}`, ...this.#metadata() };
  }

  /** The client of the gateway at a server, which it registers if need be. Throws BackendFetchFailure. */
  async at(target: AccountTarget, { server }: Pick<OAuthBackend, 'server'>): Promise<OwnClient> {
    const { store } = this.#options;
    const { clientId, clientSecret } = target.auth;
    const way = this.wayAt(target, server);
    if (way === 'given' && clientId !== undefined) return { id: clientId, secret: clientSecret };
    if (way === 'document') return { id: `${this.#options.base()}${CLIENT_DOCUMENT}` };
    if (way === undefined) throw new BackendFetchFailure(NO_WAY);
    const key = this.#keyAt(server);
    const row = await this.#rowAt(key);
    const known = row && readOwnClient(row);
    const nowMs = this.#options.clock.wall();
    if (known !== undefined && (known.expiresAtMs === undefined || known.expiresAtMs > nowMs)) {
      const endsAtMs = Date.parse(row?.expiresAt ?? '1970-01-01');
      if (endsAtMs < this.#endOf(known) - DAY_MS)
        await store.replace(this.#rowOf(key, known), row?.version ?? 0);
      return known;
    }
    const client = await this.#register(target, server);
    if (await store.replace(this.#rowOf(key, client), row?.version ?? 0)) return client;
    // Another call, maybe of another node, has registered it meanwhile: what it began needs that client.
    const other = await this.#rowAt(key);
    if (other !== undefined) return readOwnClient(other);
    await store.save(this.#rowOf(key, client)); // of a row that cannot be decrypted
    return client;
  }

  async #rowAt(key: string): Promise<OAuthRow | undefined> {
    const [row] = await this.#options.store.find('own-client', [key]);
    return row;
  }

  #rowOf(key: string, client: OwnClient): Omit<OAuthRow, 'version'> {
    return {
      kind: 'own-client',
      key,
      createdAt: new Date(this.#options.clock.wall()).toISOString(),
      expiresAt: new Date(this.#endOf(client)).toISOString(),
      value: JSON.stringify(client),
    };
  }

  /** The time at which its row may be deleted if it is not used again, in ms since 1970. */
  #endOf({ expiresAtMs = Number.POSITIVE_INFINITY }: OwnClient): number {
    return Math.min(this.#options.clock.wall() + KEPT_MS, expiresAtMs);
  }

  /**
   * The client that got a connection: another node may have registered it, under its own address. Undefined when
   * an admin has given another id since.
   */
  holding(
    { auth: { clientId, clientSecret } }: Pick<AccountTarget, 'auth'>,
    { clientId: id, clientSecret: own }: Pick<StoredAccountConnection, 'clientId' | 'clientSecret'>,
  ): OwnClient | undefined {
    if (clientId === undefined) return { id, secret: own };
    return clientId === id ? { id, secret: clientSecret } : undefined;
  }

  /** The client in the form of the library, and how the gateway authenticates as it. */
  async authOf(client: OwnClient, server: ServerMetadata): Promise<[OAuth.Client, OAuth.ClientAuth]> {
    const oauth = await import('oauth4webapi');
    if (client.secret === undefined) return [{ client_id: client.id }, oauth.None()];
    const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
    const isBasic = methods.includes('client_secret_basic') || !methods.includes('client_secret_post');
    const auth = isBasic ? oauth.ClientSecretBasic(client.secret) : oauth.ClientSecretPost(client.secret);
    return [{ client_id: client.id }, auth];
  }

  /** The key of the row of a registration, which belongs to the address of the gateway, too. */
  #keyAt({ issuer }: ServerMetadata): string {
    return oauthKey('own-client', JSON.stringify([issuer, this.redirectUri]));
  }

  async #register(target: AccountTarget, server: ServerMetadata): Promise<OwnClient> {
    const { requests } = this.#options;
    const oauth = await import('oauth4webapi');
    const answer = await requests.ask(target.endpoint, async (options) =>
      oauth.processDynamicClientRegistrationResponse(
        await oauth.dynamicClientRegistrationRequest(server, this.#metadata(), options),
      ),
    );
    const { client_id: id, client_secret: secret, client_secret_expires_at: expires } = answer;
    const isTime = typeof expires === 'number' && expires > 0 && Number.isFinite(expires * 1_000);
    const expiresAtMs = isTime ? expires * 1_000 : undefined;
    return {
      id,
      ...(typeof secret === 'string' ? { secret } : {}),
      ...definedFields({ expiresAtMs }),
    };
  }

  /** Whether servers elsewhere can read the document: https, and not an address of this machine. */
  get #hasDocument(): boolean {
    return this.#options.isPublic() && this.#options.base().startsWith('https:');
  }

  #metadata() {
    return {
      client_name: 'stagedoor',
      client_uri: this.#options.base(),
      redirect_uris: [this.redirectUri],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    };
  }
}

const NO_WAY =
  'its authorization server registers no clients and reads no documents of clients here; give a client_id';
