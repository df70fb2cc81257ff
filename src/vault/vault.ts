// The vault: the accounts at backends that want OAuth, which users have connected, or an admin for all.

import type { Subject } from 'rxjs';
import { connectionRequired, endpointUnavailable } from '../domain/errors/backend-errors.ts';
import {
  type AccountConnection,
  type ConnectionChange,
  SHARED,
  type WayToBeKnown,
} from '../domain/instances/account-connection.ts';
import { spreadClock } from '../domain/time/clock.ts';
import type { Timing } from '../domain/time/task-scheduler.ts';
import type { AddressCheck } from '../net/network-guard.ts';
import type { SystemLookups } from '../net/system-lookups.ts';
import type { OAuthStore } from '../persistence/oauth-store.ts';
import type { BackendAccount, BearerTokens } from '../transports/backend-account.ts';
import {
  AccountConnections,
  accountConnectionKey,
  type Lives,
  type StoredAccountConnection,
  shownAccountConnection,
} from './account-connections.ts';
import { AuthorizationFlow } from './authorization-flow.ts';
import { BackendFetch, BackendFetchFailure, ServerChanged } from './backend-fetch.ts';
import {
  type AcceptedServer,
  type AccountTarget,
  type BeginRequest,
  type BegunConnection,
  type OAuthBackend,
  OAuthBackends,
} from './oauth-backends.ts';
import { OAuthRequests } from './oauth-requests.ts';
import { OwnClients } from './own-clients.ts';
import { NotConnected, Refreshes } from './refreshes.ts';

export interface VaultOptions extends Timing {
  readonly store: OAuthStore;
  readonly isDenied: AddressCheck;
  readonly systemLookups?: SystemLookups | undefined;
  /** The networks of authorization servers that are reached although they are not public, in CIDR form. */
  readonly openNetworks?: readonly string[];
  /** The address at which browsers and other servers reach the gateway. */
  readonly address: { readonly issuer: string; readonly isPublic: boolean };
  readonly changes$: Subject<ConnectionChange>;
  readonly lives?: Lives | undefined;
  /** The present secret of a client that an admin gave for this endpoint. Default: none is known. */
  readonly secretOf?: (endpoint: string, clientId: string) => string | undefined;
  /** Called with a fault that an operator has to correct. Default: a warning of the process. */
  readonly warn?: (line: string) => void;
}

/**
 * The face of the vault for the gateway and the routes. It finds the authorization server of a backend, makes
 * connections, and gives their tokens for calls. Source: ADR 218.
 */
export class Vault {
  readonly #options: VaultOptions;
  readonly #backends: OAuthBackends;
  readonly #clients: OwnClients;
  readonly #connections: AccountConnections;
  readonly #refreshes: Refreshes;
  readonly #flow: AuthorizationFlow;
  readonly #requests: OAuthRequests;

  constructor(options: VaultOptions) {
    this.#options = options;
    const { store, address, openNetworks = [], warn = (line) => process.emitWarning(line), clock } = options;
    const spread = spreadClock(options.scheduler, clock);
    const fetch = new BackendFetch({ ...options, openNetworks, clock: spread });
    const requests = new OAuthRequests(fetch);
    this.#requests = requests;
    this.#backends = new OAuthBackends(clock, store, fetch);
    this.#clients = new OwnClients({
      store,
      requests,
      clock,
      base: () => address.issuer,
      isPublic: () => address.isPublic,
    });
    this.#connections = new AccountConnections(clock, store, warn);
    const onUnused = (value: StoredAccountConnection) => void this.#revoke(value);
    const parts = { connections: this.#connections, clients: this.#clients, requests, onUnused };
    this.#refreshes = new Refreshes({
      ...options,
      ...parts,
      warn,
      onReplaced: ({ owner, issuer, resource }) =>
        this.#options.changes$.next({ type: 'connected', owner, issuer, resource }),
      onEnded: ({ owner, issuer, resource }, reason) =>
        this.#options.changes$.next({ type: 'refresh-failed', owner, issuer, resource, reason }),
    });
    this.#flow = new AuthorizationFlow({ ...parts, store, clock, backends: this.#backends });
  }

  /** The document by which authorization servers know the gateway; undefined when it has none. */
  get clientDocument(): object | undefined {
    return this.#options.address.isPublic ? this.#clients.document() : undefined;
  }

  /**
   * Asks the backend which authorization server it wants, and stores it, if it is accepted. Throws BackendFetchFailure.
   * `way`: the way in which the gateway is known there; undefined: not at all, until an admin gives an id.
   */
  async discover(
    target: AccountTarget,
    accepted?: AcceptedServer,
  ): Promise<{ readonly backend: OAuthBackend; readonly way: WayToBeKnown | undefined }> {
    const backend = await this.#backends.discover(target, accepted);
    return { backend, way: this.#clients.wayAt(target, backend.server) };
  }

  /**
   * Throws BACKEND_UNAVAILABLE while the backend does not answer, and while it names another authorization
   * server than before.
   */
  async check(target: AccountTarget): Promise<void> {
    await this.#compare(target).catch(refuse);
  }

  /**
   * Uses the authorization server that the backend names now; with `issuer` only this one. Resolves with the facts in
   * force then. Throws BACKEND_UNAVAILABLE.
   */
  confirm(target: AccountTarget, issuer?: string): Promise<OAuthBackend> {
    return this.#backends.discover(target, issuer === undefined ? 'any' : { issuer }).catch(refuse);
  }

  /** Begins to connect an account: resolves with the address to which its user goes, see AuthorizationFlow. */
  begin(target: AccountTarget, request: BeginRequest): Promise<string> {
    return this.#flow.begin(target, request);
  }

  /** Ends the connecting of an account, when its user comes back, see AuthorizationFlow. */
  async finish(
    query: URLSearchParams,
    binding: string,
    mayFinish?: (begun: BegunConnection) => boolean | Promise<boolean>,
  ): Promise<BegunConnection> {
    const { begun, backend } = await this.#flow.finish(query, binding, mayFinish);
    this.#refreshes.forget(accountConnectionKey(begun.owner, backend));
    this.#emit('connected', begun.owner, backend);
    return begun;
  }

  /** The connection of this owner; undefined without one. */
  async find(target: AccountTarget, owner: string): Promise<AccountConnection | undefined> {
    const read = await this.#read(target, owner);
    return read && shownAccountConnection(read);
  }

  /** True when the owner has a connection that goes on, and no call was refused since for want of a scope. */
  async isConnected(target: AccountTarget, owner: string): Promise<boolean> {
    const read = await this.#read(target, owner);
    return read !== undefined && read.value.ended === undefined && read.value.wanted === undefined;
  }

  async #read(target: AccountTarget, owner: string) {
    const backend = await this.#backends.stored(target);
    return backend && this.#connections.find(accountConnectionKey(owner, backend));
  }

  /** The tokens of this owner for one backend, for its transport. */
  tokens(target: AccountTarget, owner: string): BearerTokens {
    return new VaultTokens(target, owner, this.#backends, this.#refreshes);
  }

  /** Resolves when no token is asked for any more, and no new ones wait for the database. Never rejects. */
  stored(): Promise<void> {
    return this.#refreshes.stored();
  }

  /** The account that the transport of an instance uses. */
  account(target: AccountTarget): BackendAccount {
    const { changes$ } = this.#options;
    return {
      who: target.auth.who,
      check: () => this.#checkToOpen(target),
      tokens: (owner) => this.tokens(target, owner),
      probe: async () => {
        await this.#backends.ask(target).catch(refuse);
      },
      onConnected: (listener) => {
        const connected = changes$.subscribe(({ type, owner }) => {
          if (type === 'connected' && owner === SHARED) listener();
        });
        return () => connected.unsubscribe();
      },
    };
  }

  /** Checks the backend before an opening. Stored facts stay in force while the servers do not answer. */
  async #checkToOpen(target: AccountTarget): Promise<void> {
    try {
      await this.#compare(target);
    } catch (thrown) {
      const isSilent = thrown instanceof BackendFetchFailure && !(thrown instanceof ServerChanged);
      if (!isSilent || (await this.#backends.stored(target)) === undefined) refuse(thrown);
    }
  }

  async #compare(target: AccountTarget): Promise<void> {
    const { changedTo } = await this.#backends.discover(target);
    if (changedTo !== undefined) throw new ServerChanged(changedTo);
  }

  /** The connections, newest first, at most 1,000. `owner`: only those of this one. */
  async list(owner?: string): Promise<readonly AccountConnection[]> {
    return (await this.#connections.list(owner)).map(shownAccountConnection);
  }

  /**
   * Ends a connection: its tokens are deleted, and revoked at its authorization server, if that has an endpoint for it. `owner`:
   * only one of this owner. False when there is none.
   */
  async disconnect(id: string, owner?: string): Promise<boolean> {
    const ended = await this.#connections.end(id, owner);
    if (ended === undefined) return false;
    this.#refreshes.forget(ended.key);
    const { read } = ended;
    if (read === undefined) return true; // a damaged row
    const { owner: rowOwner, issuer, resource } = read.value;
    this.#options.changes$.next({ type: 'disconnected', owner: rowOwner, issuer, resource });
    void this.#revoke(read.value);
    return true;
  }

  /** Runs `deletion`, which deletes the rows of this owner, and then revokes the tokens that they had, one after the other. */
  async revokeAfter(owner: string, deletion: () => Promise<void>): Promise<void> {
    const reads = await this.#connections.list(owner);
    await deletion();
    let revoked: Promise<unknown> = Promise.resolve();
    for (const { key, value } of reads) {
      this.#refreshes.forget(key);
      revoked = revoked.then(() => this.#revoke(value));
    }
  }

  /**
   * Revokes the tokens at their server. Never rejects: they are deleted here; where they are not revoked, they end by
   * themselves.
   */
  async #revoke(value: StoredAccountConnection): Promise<void> {
    await this.#askToRevoke(value).catch(() => undefined);
  }

  async #askToRevoke(value: StoredAccountConnection): Promise<void> {
    const { endpoint, issuer, clientId, refreshToken, accessToken } = value;
    const { server } = (await this.#backends.stored({ endpoint })) ?? {};
    // Another server may have been confirmed since: it must not get the tokens of this one.
    if (server?.issuer !== issuer || server.revocation_endpoint === undefined) return;
    const secret = value.clientSecret ?? this.#options.secretOf?.(endpoint, clientId);
    const [client, auth] = await this.#clients.authOf({ id: clientId, secret }, server);
    const oauth = await import('oauth4webapi');
    await this.#requests.ask(endpoint, async (options) =>
      oauth.processRevocationResponse(
        await oauth.revocationRequest(server, client, auth, refreshToken ?? accessToken, options),
      ),
    );
  }

  #emit(type: ConnectionChange['type'], owner: string, { server, resource }: OAuthBackend): void {
    this.#options.changes$.next({ type, owner, issuer: server.issuer, resource });
  }
}

function refuse(thrown: unknown): never {
  throw unavailable(thrown);
}

function unavailable(thrown: unknown): unknown {
  if (!(thrown instanceof BackendFetchFailure)) return thrown;
  return endpointUnavailable(thrown.message, { delivered: 'no', cause: thrown });
}

class VaultTokens implements BearerTokens {
  readonly #target: AccountTarget;
  readonly #owner: string;
  readonly #backends: OAuthBackends;
  readonly #refreshes: Refreshes;
  /** The backend, from its first use on. A change of it ends the transport. */
  #backend: OAuthBackend | undefined;
  #key = '';

  constructor(target: AccountTarget, owner: string, backends: OAuthBackends, refreshes: Refreshes) {
    this.#target = target;
    this.#owner = owner;
    this.#backends = backends;
    this.#refreshes = refreshes;
  }

  current(): string | Promise<string> {
    return (this.#backend && this.#refreshes.known(this.#key)) ?? this.#load();
  }

  async renewed(refused: string): Promise<boolean> {
    return (await this.#load(refused)) !== refused;
  }

  async refusedAgain(refused: string): Promise<Error> {
    await this.#refreshes.end(this.#key, refused, 'the server refuses its token');
    return this.#needs('ended');
  }

  async missingScopes(scopes: readonly string[]): Promise<Error> {
    await this.#refreshes.want(this.#key, scopes);
    return this.#needs('scopes');
  }

  async #load(refused?: string): Promise<string> {
    try {
      this.#backend ??= await this.#backends.stored(this.#target);
      if (this.#backend === undefined) throw new NotConnected('none');
      this.#key = accountConnectionKey(this.#owner, this.#backend);
      return await this.#refreshes.token(this.#target, this.#backend, this.#owner, refused);
    } catch (thrown) {
      if (thrown instanceof NotConnected) throw this.#needs(thrown.why);
      throw unavailable(thrown);
    }
  }

  #needs(why: NotConnected['why']) {
    const { template, id } = this.#target;
    const who = this.#owner === SHARED ? 'shared' : 'user';
    return connectionRequired({ template, instanceId: id, who, why });
  }
}
