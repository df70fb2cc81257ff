// The authorization server as it runs: it is loaded with the first request for it. Source: ADR 203.

import { AsyncLocalStorage } from 'node:async_hooks';
import { hkdfSync } from 'node:crypto';
import { errors, type Provider } from 'oidc-provider';
import type { Logger } from 'pino';
import type { Auth } from '../../auth/auth.ts';
import type { IdentityProvider } from '../../auth/issuers/identity-provider.ts';
import type { Issuers } from '../../auth/issuers/issuers.ts';
import { networkOf } from '../../auth/limits/network-of.ts';
import { WindowCounter } from '../../auth/limits/rate-limiter.ts';
import { AccessTokens, type SignedClaims } from '../../auth/oauth/access-tokens.ts';
import type { OAuthKeys } from '../../auth/oauth/oauth-keys.ts';
import type { Secrets } from '../../auth/secrets/secrets.ts';
import { CALLBACK } from '../../config/provider-settings.ts';
import type { ResourcePath } from '../../domain/accounts/account.ts';
import { asGatewayError, hasCode } from '../../domain/errors/errors.ts';
import { jsonIn } from '../../domain/json/json.ts';
import type { Clock } from '../../domain/time/clock.ts';
import type { OAuthStore } from '../../persistence/oauth-store.ts';
import type { Store } from '../../persistence/store.ts';
import { hasManyFields } from '../body/read.ts';
import { ClientDocuments } from './clients/client-documents.ts';
import { BadClient, metadataOf } from './clients/client-record.ts';
import { type ClientRule, Clients } from './clients/clients.ts';
import { GuardedFetch } from './clients/guarded-fetch.ts';
import { DEVICE_PATH, METADATA_PATHS, metadataDocument } from './metadata.ts';
import {
  copyFor,
  fieldsOf,
  formOf,
  NOT_STORED,
  type OAuthExchange,
  sendBusy,
  sendJson,
  sendPage,
} from './oauth-exchange.ts';
import { DevicePages } from './pages/device-pages.ts';
import { type InteractionOptions, Interactions, OPEN_SCOPES } from './pages/interaction.ts';
import { faultPage, overPage, tooLongPage, tooManyPage } from './pages/page.ts';
import { answerUnavailable, makeProvider, UNAVAILABLE, unavailablePage } from './provider.ts';
import { isHabit } from './refresh.ts';
import { oncePerRequest, type RequestRows } from './request-rows.ts';
import { CONSOLE_PATH, continuationOf } from './sign-ins/continuations.ts';
import { LoginForm } from './sign-ins/login-form.ts';
import { ProviderSignIns } from './sign-ins/provider-sign-ins.ts';
import { SignInTrail } from './sign-ins/sign-in-trail.ts';
import type { SignIns } from './sign-ins/sign-ins.ts';

export interface OAuthServiceOptions extends Pick<InteractionOptions, 'accountsOf' | 'templatesOf'> {
  readonly address: {
    readonly issuer: string;
    /** Undefined when the gateway was reached by a name at which clients cannot sign in. */
    baseFor(host: string | undefined): string | undefined;
    pathOf(resource: string): ResourcePath | undefined;
    normalise(resource: string): string | undefined;
  };
  readonly store: Pick<Store, 'oauth' | 'accounts'>;
  readonly auth: Pick<
    Auth,
    'checkPassword' | 'audit' | 'endToken' | 'roles' | 'company' | 'proofOfGrant' | 'tokenOfProvider'
  >;
  /** False: only the first admin signs in with a password. Default true. */
  readonly hasPasswordLogins?: boolean | undefined;
  /** With whose accounts users sign in. */
  readonly providers?: readonly IdentityProvider[] | undefined;
  readonly keys: OAuthKeys;
  readonly secrets: Secrets;
  readonly rule: ClientRule;
  readonly openNetworks: readonly string[];
  readonly keepsSecrets: boolean;
  readonly tokenSeconds: number;
  /** Sign-ins a minute that browsers without one may begin from one network. Default 60. */
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
  readonly rows: RequestRows;
}

/** Requests to authorize within a minute, each of which is a row: from one network without a sign-in, and of one user. */
const [UNKNOWN_PER_MINUTE, KNOWN_PER_MINUTE] = [60, 1_200];
/** Requests of commands from one address within a minute. */
const DEVICES_PER_MINUTE = 10;
/** Requests of unknown clients, and with wrong secrets, from one address within a minute. */
const REFUSED_PER_MINUTE = 120;
const COUNTED = 10_000;
const SWEEP_MS = 10 * 60_000;
/** Most sweeps in a row, of 500 rows each: 1,000 sign-ins a minute leave 20,000 rows in this time. */
const MAX_SWEEPS = 100;
const LABEL = 'stagedoor cookies of interactions';

export class OAuthService {
  readonly clients: Clients;
  readonly login: LoginForm;
  readonly #options: OAuthServiceOptions;
  readonly #oauth: OAuthStore;
  readonly #served = new AsyncLocalStorage<Served>();
  readonly #tokens: AccessTokens;
  readonly #fetch: GuardedFetch;
  readonly #signIns: SignIns;
  readonly #interactions: Interactions;
  readonly #providerSignIns: ProviderSignIns | undefined;
  readonly #stopSweeps: () => void;
  readonly #device: DevicePages;
  readonly #devices = new WindowCounter({ windowSeconds: 60, keys: COUNTED });
  readonly #refused = new WindowCounter({ windowSeconds: 60, keys: COUNTED });
  readonly #authorizing = new WindowCounter({ windowSeconds: 60, keys: COUNTED });
  #provider: { readonly version: number; readonly issuer: string; readonly provider: Provider } | undefined;

  constructor(options: OAuthServiceOptions, signIns: SignIns) {
    this.#options = options;
    this.#signIns = signIns;
    const { clock, auth, address, rule, keepsSecrets, openNetworks, ca } = options;
    const store = oncePerRequest(options.store.oauth, () => this.#served.getStore()?.rows);
    this.#oauth = store;
    const { wall, now } = clock;
    this.#tokens = new AccessTokens({ publicKeys: () => options.keys.publicKeys(), address, wall });
    this.#stopSweeps = clock.background.every(SWEEP_MS, () => void this.#sweep());
    this.#fetch = new GuardedFetch({ openNetworks, now, alarm: clock.alarm, ca });
    const documents = new ClientDocuments({ store, fetch: this.#fetch, now, wall });
    this.clients = new Clients({ store, documents, rule, keepsSecrets, now, wall });
    const trail = new SignInTrail(auth.audit, now);
    const pathOf = (resource: string) => address.pathOf(resource);
    this.#providerSignIns =
      auth.company &&
      new ProviderSignIns({
        store,
        providers: options.providers ?? [],
        accounts: auth.company,
        address,
        wall,
        now,
        trail,
        perMinute: options.signInsPerMinute ?? UNKNOWN_PER_MINUTE,
        continue: (purpose) => continuationOf(purpose, { auth, signIns, issuer: address.issuer }),
      });
    this.login = new LoginForm({ auth, signIns, trail, providers: this.#providerSignIns });
    this.#interactions = new Interactions({
      store,
      clients: this.clients,
      signIns,
      login: this.login,
      wall,
      trail,
      pathOf,
      issuer: () => address.issuer,
      roles: auth.roles,
      accountsOf: options.accountsOf,
      templatesOf: options.templatesOf,
    });
    this.#device = new DevicePages({
      store,
      signIns,
      login: this.login,
      interactions: this.#interactions,
      wall,
      now,
      pathOf,
      roles: auth.roles,
    });
  }

  /** Answers the request. Never rejects: what cannot be answered is a page or an error of OAuth. */
  async serve(exchange: OAuthExchange): Promise<void> {
    try {
      await this.#served.run({ exchange, rows: new Map() }, () => this.#route(exchange));
    } catch (thrown) {
      this.#fail(exchange, thrown);
    }
  }

  close(): void {
    this.#stopSweeps();
  }

  async #sweep(): Promise<void> {
    const { clock, log } = this.#options;
    try {
      for (let round = 0; round < MAX_SWEEPS; round += 1)
        if ((await this.#oauth.sweep(new Date(clock.wall()).toISOString())) === 0) return;
    } catch (thrown) {
      // The store logs its unavailability elsewhere; the next sweep tries again.
      if (!hasCode(thrown, 'DATABASE_UNAVAILABLE'))
        log.warn({ err: thrown }, 'expired grants cannot be deleted');
    }
  }

  async #route(exchange: OAuthExchange): Promise<void> {
    const { request, response, path } = exchange;
    const { method } = request;
    const { issuer } = this.#options.address;
    const isGet = method === 'GET' || method === 'HEAD';
    if (hasManyFields(request.url ?? '')) return sendPage(response, tooLongPage());
    if (isGet && METADATA_PATHS.includes(path)) {
      const document = metadataDocument({
        issuer,
        isOpen: this.clients.areOpen,
        scopes: OPEN_SCOPES,
        hasAssertions: this.#options.assertions !== undefined,
      });
      return sendJson(response, 200, document, ['Cache-Control', 'public, max-age=300']);
    }
    if (isGet && path === '/oauth/jwks') return this.#pass(exchange);
    if (isGet && path === '/oauth/authorize') return this.#authorize(exchange);
    // Without a query: for an unknown request the library would answer the client that it names.
    if (isGet && path.startsWith('/oauth/authorize/')) return this.#pass(exchange, { url: path });
    if (path === DEVICE_PATH || path.startsWith(`${DEVICE_PATH}/`))
      return this.#device.serve(exchange, path.slice(DEVICE_PATH.length));
    if (method === 'POST' && path === `${DEVICE_PATH}_authorization`) return this.#authorizeDevice(exchange);
    if (path.startsWith('/oauth/interaction/')) return this.#interact(exchange);
    if (method === 'GET' && path.startsWith(CALLBACK) && this.#providerSignIns !== undefined)
      return this.#providerSignIns.finish(exchange, path.slice(CALLBACK.length));
    if (isGet && path.startsWith(CONSOLE_PATH))
      return this.login.fromConsole(exchange, path.slice(CONSOLE_PATH.length));
    if (method === 'POST' && path === '/oauth/token') return this.#token(exchange);
    if (method === 'POST' && path === '/oauth/revoke')
      return this.#asClient(exchange, () => this.#revoke(exchange));
    if (method === 'POST' && path === '/oauth/register' && this.clients.areOpen)
      return this.#register(exchange);
    return sendPage(
      response,
      faultPage(
        404,
        'There is no such page',
        'The address is wrong.',
        'Go back to the program that sent you here, and connect again.',
      ),
    );
  }

  /** One provider for each set of keys: the library reads its keys once. */
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
        clients: this.clients,
        fetch: this.#fetch,
        signIns: this.#signIns,
        wall: clock.wall,
        now: clock.now,
        alarm: clock.alarm,
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
          const { keyId, secret } = this.#options.auth.proofOfGrant(grantId);
          return { username: user?.username, proof_key_id: keyId, proof_secret: secret };
        },
        onReplay: (grant, what) => log.warn({ grant }, `a ${what} was used twice: its grant has ended`),
      });
      answerUnavailable(provider, log);
      this.#provider = { version: present.version, issuer, provider };
    }
    return this.#provider.provider;
  }

  async #pass(
    exchange: OAuthExchange,
    changes: { readonly url?: string; readonly body?: string } = {},
  ): Promise<void> {
    const provider = await this.#current();
    await provider.callback()(copyFor(exchange, this.#options.address.issuer, changes), exchange.response);
  }

  /** The library gets the resource in its one spelling, and only scopes that mean something. */
  async #authorize(exchange: OAuthExchange): Promise<void> {
    const { request, response, address } = exchange;
    const signedIn = await this.#signIns.find(request.headers.cookie);
    const [key, most] =
      signedIn === undefined
        ? [networkOf(address), this.#options.signInsPerMinute ?? UNKNOWN_PER_MINUTE]
        : [`user:${signedIn.user.id}`, KNOWN_PER_MINUTE];
    if (this.#authorizing.add(key, this.#options.clock.now()).count > most)
      return sendPage(response, tooManyPage(), ['Retry-After', '60']);
    const [, query = ''] = (request.url ?? '').split('?', 2);
    const fields = new URLSearchParams(query);
    // A sign-in begins with the client as the store has it: another node may have removed it.
    this.clients.forget(fields.get('client_id') ?? '');
    if ((fields.get('response_mode') ?? 'query') !== 'query')
      return sendPage(
        response,
        faultPage(
          400,
          'This request cannot be answered',
          'The program asked for a kind of answer that the gateway does not give.',
          'Tell the maker of the program that only response_mode=query is supported.',
        ),
      );
    this.#normalise(fields);
    const asked = (fields.get('scope') ?? '').split(' ').filter((scope) => scope !== '' && !isHabit(scope));
    fields.set('scope', (asked.length === 0 ? OPEN_SCOPES : asked).join(' '));
    // Of OpenID Connect, which is not asked for.
    for (const name of [
      'nonce',
      'max_age',
      'claims',
      'acr_values',
      'id_token_hint',
      'display',
      'ui_locales',
      'claims_locales',
    ])
      fields.delete(name);
    return this.#pass(exchange, { url: `/oauth/authorize?${fields}` });
  }

  /** For our command line. Each is a row. */
  async #authorizeDevice(exchange: OAuthExchange): Promise<void> {
    const { response, address } = exchange;
    const { count } = this.#devices.add(networkOf(address), this.#options.clock.now());
    if (count > DEVICES_PER_MINUTE) return sendBusy(response, 429, 'too many requests; try again later', 60);
    const fields = await fieldsOf(exchange);
    if (fields === undefined) return;
    const body = new URLSearchParams({
      client_id: fields.get('client_id') ?? '',
      scope: fields.get('scope') ?? OPEN_SCOPES.join(' '),
    });
    return this.#pass(exchange, { body: String(body) });
  }

  async #token(exchange: OAuthExchange): Promise<void> {
    return this.#asClient(exchange, async () => {
      const fields = await fieldsOf(exchange);
      if (fields === undefined) return;
      this.#normalise(fields);
      return this.#pass(exchange, { body: String(fields) });
    });
  }

  /** Answers a request of a client; those of unknown ones, which cost queries and fetches, are bounded for each address. */
  async #asClient({ response, address }: OAuthExchange, answer: () => Promise<void>): Promise<void> {
    const network = networkOf(address);
    const { now } = this.#options.clock;
    const { count, endsInMs } = this.#refused.add(network, now(), 0);
    if (count >= REFUSED_PER_MINUTE) {
      const reason = 'too many requests of unknown clients from this address; try again later';
      return sendBusy(response, 429, reason, Math.max(1, Math.ceil(endsInMs / 1_000)));
    }
    await answer();
    if (response.statusCode === 401) this.#refused.add(network, now());
  }

  #normalise(fields: URLSearchParams): void {
    const resources = fields.getAll('resource');
    if (resources.length === 0) return;
    const normal = resources.map((resource) => this.#options.address.normalise(resource) ?? resource);
    fields.delete('resource');
    for (const resource of new Set(normal)) fields.append('resource', resource);
  }

  /** An access token is signed, not kept: what is revoked is its grant. */
  async #revoke(exchange: OAuthExchange): Promise<void> {
    const fields = await fieldsOf(exchange);
    if (fields === undefined) return;
    const token = fields.get('token') ?? '';
    if (!token.includes('.')) return this.#pass(exchange, { body: String(fields) });
    const revoked = await this.#tokens.readForAny(token);
    fields.set('token', 'signed');
    fields.set('token_type_hint', 'access_token');
    const served = { exchange, revoked, rows: new Map() };
    return this.#served.run(served, () => this.#pass(exchange, { body: String(fields) }));
  }

  async #register({ request, response, address }: OAuthExchange): Promise<void> {
    try {
      this.clients.admit(address);
      const text = await formOf(request, 'application/json');
      if (text === undefined) return sendJson(response, 400, BAD_REGISTRATION, NOT_STORED);
      const client = await this.clients.register(text.length > MAX_REGISTRATION ? undefined : jsonIn(text));
      const { application_type: _, ...metadata } = metadataOf(client);
      const issuedAt = Math.floor(this.#options.clock.wall() / 1_000);
      const secret = client.secret === undefined ? {} : { client_secret_expires_at: 0 };
      return sendJson(response, 201, { ...metadata, ...secret, client_id_issued_at: issuedAt }, NOT_STORED);
    } catch (thrown) {
      if (thrown instanceof BadClient)
        return sendJson(response, 400, { error: thrown.code, error_description: thrown.message }, NOT_STORED);
      if (!hasCode(thrown, 'TOO_MANY_ATTEMPTS')) throw thrown;
      const { retryAfterSeconds = 60 } = asGatewayError(thrown).facts;
      return sendBusy(response, 429, 'too many registrations; try again later', retryAfterSeconds);
    }
  }

  async #interact(exchange: OAuthExchange): Promise<void> {
    const { request, response, path } = exchange;
    const provider = await this.#current();
    const copy = copyFor(exchange, this.#options.address.issuer);
    const details = await provider.interactionDetails(copy, response);
    await this.#interactions.serve(exchange, path.slice('/oauth/interaction/'.length), details, (result) =>
      provider.interactionFinished(copyFor({ request }, this.#options.address.issuer), response, result, {
        mergeWithLastSubmission: false,
      }),
    );
  }

  #fail({ request, response, path, requestId }: OAuthExchange, thrown: unknown): void {
    // A body that its client does not finish is no fault of the gateway.
    if (response.headersSent || request.readableAborted) {
      response.destroy();
      return;
    }
    const isPage =
      ['/oauth/interaction/', '/oauth/authorize', CALLBACK, `${DEVICE_PATH}/`].some((page) =>
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
    sendJson(response, 503, UNAVAILABLE, [...NOT_STORED, 'Retry-After', '5']);
  }
}

const BAD_REGISTRATION = {
  error: 'invalid_client_metadata',
  error_description: 'send JSON of at most 8 KiB',
};
const MAX_REGISTRATION = 8 * 1024;
