// The authorization server as it runs: it is loaded with the first request for it. Source: ADR 203.

import { AsyncLocalStorage } from 'node:async_hooks';
import { hkdfSync } from 'node:crypto';
import { errors, type Provider } from 'oidc-provider';
import type { Logger } from 'pino';
import type { Auth } from '../auth/auth.ts';
import { AccessTokens, type SignedClaims } from '../auth/grants/access-tokens.ts';
import type { OAuthKeys } from '../auth/grants/oauth-keys.ts';
import type { IdentityProvider } from '../auth/issuers/identity-provider.ts';
import type { Issuers } from '../auth/issuers/issuers.ts';
import type { Secrets } from '../auth/secrets/secrets.ts';
import { PROVIDER_CALLBACK } from '../config/provider-settings.ts';
import type { ClientRule } from '../config/setting-types.ts';
import type { ResourcePath } from '../domain/accounts/account.ts';
import { asGatewayError } from '../domain/errors/errors.ts';
import type { Clock } from '../domain/time/clock.ts';
import { networkOf } from '../net/network-of.ts';
import type { OAuthRow, OAuthStore } from '../persistence/oauth-store.ts';
import type { Store } from '../persistence/store.ts';
import { ClientDocuments } from './clients/client-documents.ts';
import { Clients } from './clients/clients.ts';
import { GuardedFetch } from './clients/guarded-fetch.ts';
import { DEVICE_PATH } from './metadata.ts';
import { Endpoints } from './oauth-endpoints.ts';
import { type OAuthExchange, sendBusy, sendPage } from './oauth-exchange.ts';
import {
  answerUnavailable,
  makeProvider,
  TEMPORARILY_UNAVAILABLE,
  unavailablePage,
} from './oauth-library.ts';
import { DevicePages } from './pages/device-pages.ts';
import { type InteractionOptions, Interactions } from './pages/interaction.ts';
import { overPage } from './pages/page.ts';
import { oncePerRequest } from './request-rows.ts';
import { continuationOf } from './sign-ins/continuations.ts';
import { LoginForm } from './sign-ins/login-form.ts';
import { ProviderSignIns } from './sign-ins/provider-sign-ins.ts';
import { SignInTrail } from './sign-ins/sign-in-trail.ts';
import type { SignIns } from './sign-ins/sign-ins.ts';

export interface AuthorizationServerOptions extends Pick<InteractionOptions, 'accountsOf' | 'templatesOf'> {
  readonly address: {
    readonly issuer: string;
    /** The result is undefined when the gateway was reached by a name at which clients cannot sign in. */
    baseFor(host: string | undefined): string | undefined;
    pathOf(resource: string): ResourcePath | undefined;
    normalise(resource: string): string | undefined;
  };
  readonly store: Pick<Store, 'oauth' | 'accounts' | 'serverTimeMs'>;
  readonly auth: Pick<Auth, 'audit' | 'company' | 'grants' | 'logins' | 'proofs' | 'roles' | 'tokenEnds'>;
  /** False: only the first admin signs in with a password. Default: true. */
  readonly hasPasswordLogins?: boolean | undefined;
  /** The identity providers with whose accounts users sign in. */
  readonly providers?: readonly IdentityProvider[] | undefined;
  readonly keys: OAuthKeys;
  readonly secrets: Secrets;
  readonly rule: ClientRule;
  readonly openNetworks: readonly string[];
  readonly keepsSecrets: boolean;
  readonly tokenSeconds: number;
  /** Sign-ins a minute that browsers without one may begin from one network. Default: 60. */
  readonly signInsPerMinute?: number | undefined;
  readonly clock: Clock;
  readonly log: Pick<Logger, 'warn' | 'error'>;
  /** Identity assertions of other issuers. Undefined: none is accepted. */
  readonly assertions?: Pick<Issuers, 'readAssertion'> | undefined;
  /** Certificates of further authorities for documents of clients, in PEM. */
  readonly ca?: string | undefined;
}

interface Served {
  readonly exchange: Pick<OAuthExchange, 'address' | 'requestId'>;
  readonly revoked?: SignedClaims | undefined;
  readonly rows: Map<string, OAuthRow>;
}

const LABEL = 'stagedoor cookies of interactions';

/** The loaded authorization server: the library, pages, clients and keys. */
export class AuthorizationServer {
  readonly clients: Clients;
  readonly login: LoginForm;
  readonly #options: AuthorizationServerOptions;
  readonly #oauth: OAuthStore;
  readonly #served = new AsyncLocalStorage<Served>();
  readonly #fetch: GuardedFetch;
  readonly #signIns: SignIns;
  readonly #endpoints: Endpoints;
  #provider: { readonly version: number; readonly issuer: string; readonly provider: Provider } | undefined;

  constructor(options: AuthorizationServerOptions, signIns: SignIns) {
    this.#options = options;
    this.#signIns = signIns;
    const { clock, auth, address, rule, keepsSecrets, openNetworks, ca } = options;
    const { oauth } = options.store;
    const store = oncePerRequest(
      oauth,
      () => this.#served.getStore()?.rows,
      (filter) => (auth.grants ?? oauth).end(filter),
    );
    this.#oauth = store;
    const { wall, now } = clock;
    const tokens = new AccessTokens(() => options.keys.publicKeys(), address, wall);
    this.#fetch = new GuardedFetch(clock, openNetworks, ca);
    const documents = new ClientDocuments({ store, fetch: this.#fetch, clock });
    const warn = (line: string) => options.log.warn(line);
    this.clients = new Clients({ store, documents, rule, keepsSecrets, clock, warn });
    const trail = new SignInTrail(auth.audit, now);
    const pathOf = (resource: string) => address.pathOf(resource);
    const perMinute = options.signInsPerMinute ?? 60;
    const providerSignIns =
      auth.company &&
      new ProviderSignIns({
        store,
        providers: options.providers ?? [],
        accounts: auth.company,
        address,
        clock,
        trail,
        perMinute,
        continue: (purpose) => continuationOf(purpose, { auth, signIns, issuer: address.issuer }),
      });
    this.login = new LoginForm({ auth, signIns, trail, providers: providerSignIns });
    const interactions = new Interactions({
      store,
      clients: this.clients,
      signIns,
      login: this.login,
      clock,
      trail,
      pathOf,
      issuer: () => address.issuer,
      roles: auth.roles,
      accountsOf: options.accountsOf,
      templatesOf: options.templatesOf,
    });
    const device = new DevicePages({
      store,
      signIns,
      login: this.login,
      interactions,
      clock,
      pathOf,
      roles: auth.roles,
    });
    this.#endpoints = new Endpoints({
      address,
      clock,
      tokens,
      signIns,
      perMinute,
      interactions,
      device,
      providerSignIns,
      clients: this.clients,
      login: this.login,
      hasAssertions: options.assertions !== undefined,
      provider: () => this.#current(),
      revoking: (exchange, revoked, pass) => this.#served.run({ exchange, revoked, rows: new Map() }, pass),
    });
  }

  /** Answers the request. Never rejects: a failure is answered with a page or an error of OAuth. */
  async serve(exchange: OAuthExchange): Promise<void> {
    exchange.response.setHeader('X-Content-Type-Options', 'nosniff'); // the library answers some redirects with HTML
    try {
      await this.#served.run({ exchange, rows: new Map() }, () => this.#endpoints.serve(exchange));
    } catch (thrown) {
      this.#fail(exchange, thrown);
    }
  }

  /** The provider for the present keys. There is one for each set of keys: the library reads its keys once. */
  async #current(): Promise<Provider> {
    const { keys, address, store, clock, log, auth, assertions } = this.#options;
    const present = await keys.current();
    const { issuer } = address;
    if (this.#provider?.version !== present.version || this.#provider.issuer !== issuer) {
      const provider = makeProvider({
        issuer,
        keys: present,
        tokenSeconds: this.#options.tokenSeconds,
        store: this.#oauth,
        serverTimeMs: () => store.serverTimeMs(),
        clients: this.clients,
        fetch: this.#fetch,
        signIns: this.#signIns,
        clock,
        cookieKeys: this.#options.secrets.map((secret) =>
          Buffer.from(hkdfSync('sha256', secret, '', LABEL, 32)).toString('base64url'),
        ),
        causedBy: () => networkOf(this.#served.getStore()?.exchange.address ?? 'unknown'),
        revoked: () => this.#served.getStore()?.revoked,
        normalise: (resource) => address.normalise(resource),
        pathOf: (resource) => address.pathOf(resource),
        assertions,
        audit: auth.audit,
        request: () => this.#served.getStore()?.exchange ?? { address: 'unknown', requestId: 'unknown' },
        confirm: async (id) => auth.company?.confirm(id),
        isActive: async (id) => (await store.accounts.findUsers([id]))[0]?.isActive === true,
        ownAnswer: async (userId, grantId) => {
          const [user] = await store.accounts.findUsers([userId]);
          const { keyId, secret } = this.#options.auth.proofs.proofOfGrant(grantId);
          return { username: user?.username, proof_key_id: keyId, proof_secret: secret };
        },
        onReplay: (grant, what) => log.warn({ grant }, `a ${what} was used twice: its grant has ended`),
      });
      answerUnavailable(provider, log);
      this.#provider = { version: present.version, issuer, provider };
    }
    return this.#provider.provider;
  }

  #fail({ request, response, path, requestId }: OAuthExchange, thrown: unknown): void {
    // A body that its client does not finish is not a fault of the gateway.
    if (response.headersSent || request.readableAborted) {
      response.destroy();
      return;
    }
    const isPage =
      ['/oauth/interaction/', '/oauth/authorize', PROVIDER_CALLBACK, `${DEVICE_PATH}/`].some((page) =>
        path.startsWith(page),
      ) || path === DEVICE_PATH;
    const isOver = thrown instanceof errors.SessionNotFound || thrown instanceof errors.InvalidClient;
    if (isOver) {
      sendPage(response, overPage(request.headers.cookie));
      return;
    }
    const error = asGatewayError(thrown);
    if (error.code === 'INTERNAL_ERROR')
      this.#options.log.error({ err: error, request_id: requestId }, 'an OAuth request failed');
    if (isPage) {
      sendPage(response, unavailablePage());
      return;
    }
    sendBusy(response, 503, TEMPORARILY_UNAVAILABLE.error_description, 5);
  }
}
