// The authorization server as the app has it: it knows which requests are for it, and loads the rest with the first of
// them.

import { AsyncLocalStorage } from 'node:async_hooks';
import type { IncomingMessage } from 'node:http';
import { loadOnce } from '../domain/memory/load-once.ts';
import { networkOf } from '../net/network-of.ts';
import type { AuthorizationServer, AuthorizationServerOptions } from './authorization-server.ts';
import type { Clients } from './clients/clients.ts';
import { sweepExpiredRows } from './expired-rows.ts';
import { loadAuthorizationServer } from './load-authorization-server.ts';
import { type OAuthExchange, sendJson } from './oauth-exchange.ts';
import type { BackendAccounts, ConnectionPages } from './pages/connection-pages.ts';
import type { InteractionOptions } from './pages/interaction.ts';
import { CONSOLE_PATH } from './sign-ins/continuations.ts';
import { SignIns } from './sign-ins/sign-ins.ts';
import { StoreTurns } from './store-turns.ts';

/** The parts of its app that the authorization server needs. */
interface OwnApp extends Pick<InteractionOptions, 'templatesOf'> {
  /** The accounts at backends, with their pages; undefined where there are none. */
  readonly accounts: BackendAccounts | undefined;
}

const PREFIX = '/oauth/';
const WAYS = '/oauth/ways';
/** Source: RFC 8414, OpenID Connect Discovery. */
const METADATA = /^\/\.well-known\/(?:oauth-authorization-server|openid-configuration)$/;

const CONNECTING = /^\/connections(?:\/|$)/;

/**
 * The authorization server for the app and its routes; `close` ends it. A gateway whose clients use keys never loads the library.
 */
export class LazyAuthorizationServer {
  /** The sign-ins under way, those of the console among them. */
  readonly signIns: SignIns;
  readonly #options: AuthorizationServerOptions;
  /** Network of the request that is being served. */
  readonly #network = new AsyncLocalStorage<string>();
  readonly #turns = new StoreTurns(() => this.#network.getStore() ?? '');
  readonly #app: OwnApp;
  readonly #stopSweeps: () => void;
  readonly #load = loadOnce(async () => {
    const { AuthorizationServer } = await loadAuthorizationServer(this.#turns);
    const { accounts, templatesOf } = this.#app;
    const accountsOf = async (userId: string) => (await accounts?.connectedTemplates(userId)) ?? [];
    return new AuthorizationServer({ accountsOf, templatesOf, ...this.#options }, this.signIns);
  });
  readonly #pages: (() => Promise<ConnectionPages>) | undefined;

  constructor(options: AuthorizationServerOptions, app: OwnApp) {
    this.#app = app;
    const turns = this.#turns;
    const store = {
      oauth: turns.spread(options.store.oauth),
      accounts: turns.spread(options.store.accounts),
      serverTimeMs: () => options.store.serverTimeMs(),
    };
    this.#options = { ...options, store };
    this.#stopSweeps = sweepExpiredRows(store, options);
    const { auth, address, clock, hasPasswordLogins } = options;
    this.signIns = new SignIns({
      store: store.oauth,
      accounts: store.accounts,
      auth,
      address,
      clock,
      hasPasswordLogins,
    });
    const { accounts } = app;
    this.#pages =
      accounts && loadOnce(() => pagesOf(accounts, this.signIns, this.#options, () => this.#load()));
  }

  /** The clients, for the routes of admins. */
  async clients(): Promise<Clients> {
    return (await this.#load()).clients;
  }

  /**
   * The route under which a request for it counts. Undefined for other paths, and for other host names: passwords would be
   * typed at an address that is not the gateway's.
   */
  routeOf(path: string, host: string | undefined): string | undefined {
    const isConnecting = this.#pages !== undefined && CONNECTING.test(path);
    const isFor = isConnecting || path.startsWith(PREFIX) || METADATA.test(path);
    if (!isFor || this.#options.address.baseFor(host) === undefined) return undefined;
    if (isConnecting) return '/connections/*';
    return path.startsWith(PREFIX) ? `${PREFIX}*` : path;
  }

  /** Answers a request for it, see `routeOf`. */
  async serve(exchange: OAuthExchange): Promise<void> {
    const { request, response, path, address } = exchange;
    if (path === WAYS && request.method === 'GET') return sendJson(response, 200, this.#ways());
    const service = CONNECTING.test(path) ? await this.#pages?.() : await this.#load();
    await this.#network.run(networkOf(address), () => service?.serve(exchange));
  }

  close(): void {
    this.#stopSweeps();
  }

  /** The ways in which users sign in, for the login page of the console. The library is not loaded for it. */
  #ways(): object {
    const { providers = [], hasPasswordLogins = true, address } = this.#options;
    return {
      passwords: hasPasswordLogins,
      providers: providers.map(({ setting: { id, label } }) => ({
        label,
        url: `${address.issuer}${CONSOLE_PATH}${id}`,
      })),
    };
  }

  /** True for a request of a page of another origin. */
  isForeign({ headers: { origin } }: IncomingMessage): boolean {
    return origin !== undefined && origin.toLowerCase() !== this.#options.address.issuer;
  }
}

async function pagesOf(
  accounts: BackendAccounts,
  signIns: SignIns,
  { auth, log, clock }: AuthorizationServerOptions,
  loaded: () => Promise<AuthorizationServer>,
): Promise<ConnectionPages> {
  const { ConnectionPages } = await import('./pages/connection-pages.ts');
  const login = async () => (await loaded()).login;
  return new ConnectionPages({ accounts, signIns, auth, log, clock, login });
}
