// The endpoints of the authorization server: the requests that each takes, its bounds, and the part of them that the library
// gets.

import type { Provider } from 'oidc-provider';
import type { AccessTokens, SignedClaims } from '../auth/grants/access-tokens.ts';
import { PROVIDER_CALLBACK } from '../config/provider-settings.ts';
import { CLIENT_SCOPES } from '../domain/accounts/account.ts';
import { userPrincipalId } from '../domain/accounts/principal.ts';
import { asGatewayError, hasCode } from '../domain/errors/errors.ts';
import { jsonIn } from '../domain/json/json.ts';
import { UserAmounts } from '../domain/memory/user-shares.ts';
import { WindowCounter } from '../domain/memory/window-counter.ts';
import { hasManyFields } from '../domain/text.ts';
import type { Clock } from '../domain/time/clock.ts';
import { networkOf } from '../net/network-of.ts';
import { OutsiderCounter } from '../net/outsider-counter.ts';
import { BadClient, metadataOf } from './clients/client-record.ts';
import type { Clients } from './clients/clients.ts';
import { DEVICE_PATH, METADATA_PATHS, metadataDocument } from './metadata.ts';
import {
  copyFor,
  fieldsOf,
  formOf,
  type OAuthExchange,
  queryOf,
  sendBusy,
  sendJson,
  sendPage,
} from './oauth-exchange.ts';
import type { DevicePages } from './pages/device-pages.ts';
import type { Interactions } from './pages/interaction.ts';
import { faultPage, tooLongPage, tooManyPage } from './pages/page.ts';
import { isHabit } from './refresh-grant.ts';
import { CONSOLE_PATH } from './sign-ins/continuations.ts';
import type { LoginForm } from './sign-ins/login-form.ts';
import type { ProviderSignIns } from './sign-ins/provider-sign-ins.ts';
import type { SignIns } from './sign-ins/sign-ins.ts';

interface EndpointsOptions {
  readonly address: { readonly issuer: string; normalise(resource: string): string | undefined };
  readonly clock: Clock;
  readonly clients: Clients;
  readonly tokens: AccessTokens;
  readonly signIns: Pick<SignIns, 'find'>;
  readonly login: LoginForm;
  readonly interactions: Interactions;
  readonly device: DevicePages;
  readonly providerSignIns: ProviderSignIns | undefined;
  /** Sign-ins a minute that browsers without one may begin from one network. */
  readonly perMinute: number;
  /** True when identity assertions of other issuers are accepted. */
  readonly hasAssertions: boolean;
  /** The library, with the present keys. */
  readonly provider: () => Promise<Provider>;
  /** Runs `pass`, during which the library finds the claims of the revoked token. */
  readonly revoking: (
    exchange: OAuthExchange,
    revoked: SignedClaims | undefined,
    pass: () => Promise<void>,
  ) => Promise<void>;
}

interface OAuthEndpoint {
  /** The methods that it takes; undefined: all. */
  readonly methods?: readonly string[];
  /** A path with `/` at its end stands for all paths below it. */
  readonly path: string;
  /** `rest`: the path below. */
  readonly serve: (exchange: OAuthExchange, rest: string) => Promise<void> | void;
}

const READ = ['GET', 'HEAD'];
const POST = ['POST'];
/** Requests to authorize of one user within a minute, each of which is a row. */
export const KNOWN_PER_MINUTE = 1_200;
/** Requests of commands from one address within a minute. */
const DEVICES_PER_MINUTE = 10;
/** Requests of unknown clients, and with wrong secrets, from one address within a minute. */
export const REFUSED_PER_MINUTE = 120;
const MAX_COUNTED = 10_000;

/** Finds the endpoint of a request, and bounds the requests of each address. */
export class Endpoints {
  readonly #options: EndpointsOptions;
  /** The first that fits serves the request. */
  readonly #endpoints: readonly OAuthEndpoint[];
  readonly #devices = new OutsiderCounter({ windowSeconds: 60, perNetwork: DEVICES_PER_MINUTE });
  readonly #refused = new WindowCounter({ windowSeconds: 60, keys: MAX_COUNTED });
  /** The requests of clients that are under way, by network. */
  readonly #underWay = new UserAmounts();
  readonly #ofUnknown: OutsiderCounter;
  readonly #ofUsers = new WindowCounter({ windowSeconds: 60, keys: MAX_COUNTED });

  constructor(options: EndpointsOptions) {
    this.#options = options;
    const { device, login, providerSignIns, clients, perMinute } = options;
    this.#ofUnknown = new OutsiderCounter({ windowSeconds: 60, perNetwork: perMinute });
    const serveDevice = (exchange: OAuthExchange) =>
      device.serve(exchange, exchange.path.slice(DEVICE_PATH.length));
    const registration: OAuthEndpoint = {
      methods: POST,
      path: '/oauth/register',
      serve: (exchange) => this.#register(exchange),
    };
    this.#endpoints = [
      ...METADATA_PATHS.map(
        (path): OAuthEndpoint => ({ methods: READ, path, serve: ({ response }) => this.#metadata(response) }),
      ),
      { methods: READ, path: '/oauth/jwks', serve: (exchange) => this.#pass(exchange) },
      { methods: READ, path: '/oauth/authorize', serve: (exchange) => this.#authorize(exchange) },
      {
        methods: READ,
        path: '/oauth/authorize/',
        // The query is removed: for an unknown request the library would answer the client that the query names.
        serve: (exchange) => this.#pass(exchange, { url: exchange.path }),
      },
      { path: DEVICE_PATH, serve: serveDevice },
      { path: `${DEVICE_PATH}/`, serve: serveDevice },
      {
        methods: POST,
        path: `${DEVICE_PATH}_authorization`,
        serve: (exchange) => this.#authorizeDevice(exchange),
      },
      { path: '/oauth/interaction/', serve: (exchange, rest) => this.#interact(exchange, rest) },
      ...(providerSignIns === undefined ? [] : [callbackOf(providerSignIns)]),
      { methods: READ, path: CONSOLE_PATH, serve: (exchange, rest) => login.fromConsole(exchange, rest) },
      { methods: POST, path: '/oauth/token', serve: (exchange) => this.#token(exchange) },
      {
        methods: POST,
        path: '/oauth/revoke',
        serve: (exchange) => this.#asClient(exchange, (fields) => this.#revoke(exchange, fields)),
      },
      ...(clients.areOpen ? [registration] : []),
    ];
  }

  async serve(exchange: OAuthExchange): Promise<void> {
    const { request, response, path } = exchange;
    const { method = '', url = '' } = request;
    if (hasManyFields(url)) return sendPage(response, tooLongPage());
    const endpoint = this.#endpoints.find(
      (each) =>
        (each.path.endsWith('/') ? path.startsWith(each.path) : path === each.path) &&
        each.methods?.includes(method) !== false,
    );
    if (endpoint !== undefined) return endpoint.serve(exchange, path.slice(endpoint.path.length));
    const [title, cause] = ['There is no such page', 'The address is wrong.'];
    const remedy = 'Go back to the program that sent you here, and connect again.';
    return sendPage(response, faultPage(404, title, { what: cause, next: remedy }));
  }

  #metadata(response: OAuthExchange['response']): void {
    const { address, clients, hasAssertions } = this.#options;
    const { issuer } = address;
    const document = metadataDocument({
      issuer,
      isOpen: clients.areOpen,
      scopes: CLIENT_SCOPES,
      hasAssertions,
    });
    sendJson(response, 200, document, ['Cache-Control', 'public, max-age=300']);
  }

  async #pass(
    exchange: OAuthExchange,
    changes: { readonly url?: string; readonly body?: string } = {},
  ): Promise<void> {
    const provider = await this.#options.provider();
    await provider.callback()(copyFor(exchange, this.#options.address.issuer, changes), exchange.response);
  }

  /** The library gets the resource in its one spelling, and only scopes that mean something. */
  async #authorize(exchange: OAuthExchange): Promise<void> {
    const { request, response, address } = exchange;
    const signedIn = await this.#options.signIns.find(request.headers.cookie);
    const nowMs = this.#options.clock.now();
    const isTooMany =
      signedIn === undefined
        ? this.#ofUnknown.add(address, nowMs) !== undefined
        : this.#ofUsers.add(userPrincipalId(signedIn.user.id), nowMs).count > KNOWN_PER_MINUTE;
    if (isTooMany) return sendPage(response, tooManyPage(), ['Retry-After', '60']);
    const fields = queryOf(request);
    // A sign-in begins with the client as the store has it: another node may have removed it.
    this.#options.clients.forget(fields.get('client_id') ?? '');
    if ((fields.get('response_mode') ?? 'query') !== 'query')
      return sendPage(
        response,
        faultPage(400, 'This request cannot be answered', {
          what: 'The program asked for a kind of answer that the gateway does not give.',
          next: 'Tell the maker of the program that only response_mode=query is supported.',
        }),
      );
    this.#normalise(fields);
    const asked = (fields.get('scope') ?? '').split(' ').filter((scope) => scope !== '' && !isHabit(scope));
    fields.set('scope', (asked.length === 0 ? CLIENT_SCOPES : asked).join(' '));
    // Fields of OpenID Connect, which is not supported.
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

  /** Begins the sign-in of our command line. Each one is a row of the database. */
  async #authorizeDevice(exchange: OAuthExchange): Promise<void> {
    const { response, address } = exchange;
    if (this.#devices.add(address, this.#options.clock.now()) !== undefined)
      return sendBusy(response, 429, 'too many requests; try again later', 60);
    const fields = await fieldsOf(exchange);
    if (fields === undefined) return;
    const body = new URLSearchParams({
      client_id: fields.get('client_id') ?? '',
      scope: fields.get('scope') ?? CLIENT_SCOPES.join(' '),
    });
    return this.#pass(exchange, { body: String(body) });
  }

  async #token(exchange: OAuthExchange): Promise<void> {
    return this.#asClient(exchange, (fields) => {
      this.#normalise(fields);
      return this.#pass(exchange, { body: String(fields) });
    });
  }

  /**
   * Reads and answers a request of a client; those of unknown ones, which cost queries and fetches, are bounded for each address.
   */
  async #asClient(
    exchange: OAuthExchange,
    answer: (fields: URLSearchParams) => Promise<void>,
  ): Promise<void> {
    const { response, address } = exchange;
    const fields = await fieldsOf(exchange);
    if (fields === undefined) return;
    const network = networkOf(address);
    const nowMs = this.#options.clock.now();
    // Each one counts until it is known, since many may be asked at the same time.
    const { count, endsInMs } = this.#refused.add(network, nowMs, 1, REFUSED_PER_MINUTE);
    if (count > REFUSED_PER_MINUTE) {
      const reason = 'too many requests of unknown clients from this address; try again later';
      const waitMs = this.#underWay.held(network) > 0 ? 0 : endsInMs; // one under way gives its place back, if it is known
      return sendBusy(response, 429, reason, Math.max(1, Math.ceil(waitMs / 1_000)));
    }
    this.#underWay.add(network);
    let isUnknown = false;
    try {
      await answer(fields);
      isUnknown = response.statusCode === 401;
    } finally {
      this.#underWay.release(network);
      if (!isUnknown) this.#refused.giveBack(network, nowMs);
    }
  }

  #normalise(fields: URLSearchParams): void {
    const resources = fields.getAll('resource');
    if (resources.length === 0) return;
    const normal = resources.map((resource) => this.#options.address.normalise(resource) ?? resource);
    fields.delete('resource');
    for (const resource of new Set(normal)) fields.append('resource', resource);
  }

  /** Revokes a token. An access token is signed, not stored: its grant is revoked. */
  async #revoke(exchange: OAuthExchange, fields: URLSearchParams): Promise<void> {
    const token = fields.get('token') ?? '';
    if (!token.includes('.')) return this.#pass(exchange, { body: String(fields) });
    const revoked = await this.#options.tokens.readForAny(token);
    fields.set('token', 'signed');
    fields.set('token_type_hint', 'access_token');
    return this.#options.revoking(exchange, revoked, () => this.#pass(exchange, { body: String(fields) }));
  }

  async #register({ request, response, address }: OAuthExchange): Promise<void> {
    try {
      this.#options.clients.admit(address);
      const text = await formOf(request, 'application/json');
      if (text === undefined) return sendJson(response, 400, BAD_REGISTRATION);
      const client = await this.#options.clients.register(
        text.length > MAX_REGISTRATION ? undefined : jsonIn(text),
      );
      const { application_type: _, ...metadata } = metadataOf(client);
      const issuedAt = Math.floor(this.#options.clock.wall() / 1_000);
      const secret = client.secret === undefined ? {} : { client_secret_expires_at: 0 };
      return sendJson(response, 201, { ...metadata, ...secret, client_id_issued_at: issuedAt });
    } catch (thrown) {
      if (thrown instanceof BadClient)
        return sendJson(response, 400, { error: thrown.code, error_description: thrown.message });
      if (!hasCode(thrown, 'TOO_MANY_ATTEMPTS')) throw thrown;
      const { retryAfterSeconds = 60 } = asGatewayError(thrown).facts;
      return sendBusy(response, 429, 'too many registrations; try again later', retryAfterSeconds);
    }
  }

  async #interact(exchange: OAuthExchange, rest: string): Promise<void> {
    const { request, response } = exchange;
    const provider = await this.#options.provider();
    const copy = copyFor(exchange, this.#options.address.issuer);
    const details = await provider.interactionDetails(copy, response);
    await this.#options.interactions.serve(exchange, rest, details, (result) =>
      provider.interactionFinished(copyFor({ request }, this.#options.address.issuer), response, result, {
        mergeWithLastSubmission: false,
      }),
    );
  }
}

function callbackOf(signIns: ProviderSignIns): OAuthEndpoint {
  return {
    methods: ['GET'],
    path: PROVIDER_CALLBACK,
    serve: (exchange, rest) => signIns.finish(exchange, rest),
  };
}

const BAD_REGISTRATION = {
  error: 'invalid_client_metadata',
  error_description: 'send JSON of at most 8 KiB',
};
const MAX_REGISTRATION = 8 * 1024;
