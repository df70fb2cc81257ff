// The library for OAuth, configured: one provider object for each set of signing keys. It checks authorization requests and
// clients, makes codes and signs tokens; everything else is in the files beside this one. Source: ADR 203.

import {
  type Configuration,
  errors,
  interactionPolicy,
  type JWKS,
  type KoaContextWithOIDC,
  Provider,
} from 'oidc-provider';
import type { Logger } from 'pino';
import type { KeySet } from '../auth/grants/oauth-keys.ts';
import { SCOPES } from '../domain/accounts/account.ts';
import { hasCode } from '../domain/errors/errors.ts';
import { MAX_SKEW_MS } from '../domain/time/clock.ts';
import { type AdapterOptions, adapterFor } from './adapter.ts';
import { type AssertionOptions, assertionHandler } from './assertion.ts';
import { COMMAND_LINE, JWT_BEARER } from './clients/client-record.ts';
import type { GuardedFetch } from './clients/guarded-fetch.ts';
import { ASYMMETRIC, DEVICE_PATH } from './metadata.ts';
import { errorPage, mayRedirect } from './pages/error-answers.ts';
import { faultPage, overPage, type Page } from './pages/page.ts';
import { type RefreshOptions, refreshHandler } from './refresh-grant.ts';
import type { SignIns } from './sign-ins/sign-ins.ts';

const CODE_SECONDS = 60;
const INTERACTION_SECONDS = 600;
const DEVICE_SECONDS = 600;
const REFRESH_SECONDS = 30 * 24 * 3_600;
const KEYS_BYTES = 64 * 1024;
/** The longest life of an assertion that a client signs to authenticate, the difference of clocks included. */
const MAX_ASSERTION_MS = 6 * 60_000;
const MAX_ID_LENGTH = 500;

interface ProviderOptions
  extends AdapterOptions,
    Omit<RefreshOptions, 'resourceServer'>,
    Omit<AssertionOptions, 'resourceServer'> {
  readonly issuer: string;
  readonly keys: KeySet;
  /** Sign the cookies of interactions; the first signs, all verify. */
  readonly cookieKeys: readonly string[];
  readonly tokenSeconds: number;
  readonly fetch: Pick<GuardedFetch, 'get'>;
  readonly signIns: Pick<SignIns, 'find'>;
  /** The fields that our own command line gets besides tokens. */
  readonly ownAnswer: (userId: string, grantId: string) => Promise<object>;
}

export function makeProvider(options: ProviderOptions): Provider {
  const resourceServer = async () => ({
    scope: SCOPES.join(' '),
    accessTokenFormat: 'jwt' as const,
    accessTokenTTL: options.tokenSeconds,
    jwt: { sign: { alg: 'ES256' as const, kid: options.keys.signing.kid } },
  });
  const provider = new Provider(options.issuer, configurationOf(options, resourceServer));
  giveOwnAnswers(provider, options);
  keepErrorsHere(provider, options);
  // The address that the library sees is written by oauth-exchange.ts.
  provider.proxy = true;
  provider.registerGrantType(
    'refresh_token',
    refreshHandler(provider, { ...options, resourceServer }),
    ['refresh_token', 'scope', 'resource'],
    [],
  );
  provider.registerGrantType(
    JWT_BEARER,
    assertionHandler(provider, { ...options, resourceServer }),
    ['assertion', 'scope', 'resource'],
    [],
  );
  return provider;
}

function configurationOf(
  options: ProviderOptions,
  resourceServer: RefreshOptions['resourceServer'],
): Configuration {
  return {
    adapter: adapterFor(options),
    jwks: publishedKeys(options.keys),
    scopes: [],
    claims: {},
    responseTypes: ['code'],
    clientAuthMethods: ['none', 'client_secret_basic', 'client_secret_post', 'private_key_jwt'],
    enabledJWA: { clientAuthSigningAlgValues: ASYMMETRIC, idTokenSigningAlgValues: ['ES256'] },
    clientDefaults: {
      id_token_signed_response_alg: 'ES256',
      grant_types: ['authorization_code', 'refresh_token'],
    },
    cookies: cookiesOf(options),
    routes: LIBRARY_ROUTES,
    features: featuresOf(options, resourceServer),
    assertJwtClientAuthClaimsAndHeader: async (_, claims) => checkAssertion(claims, options),
    // Of clients that sign, and of nodes that issue a code and redeem it.
    clockTolerance: MAX_SKEW_MS / 1_000,
    pkce: { required: () => true },
    ttl: {
      AccessToken: options.tokenSeconds,
      IdToken: options.tokenSeconds,
      AuthorizationCode: CODE_SECONDS,
      DeviceCode: DEVICE_SECONDS,
      Interaction: INTERACTION_SECONDS,
      RefreshToken: REFRESH_SECONDS,
      Session: INTERACTION_SECONDS,
      Grant: REFRESH_SECONDS,
    },
    interactions: {
      policy: promptPolicy(),
      url: (_, interaction) => `/oauth/interaction/${interaction.uid}`,
    },
    findAccount: async (_, id) =>
      (await options.isActive(id)) ? { accountId: id, claims: async () => ({ sub: id }) } : undefined,
    // A grant for each authorization: two authorizations of one client are two grants.
    loadExistingGrant: async (ctx) => {
      const id = ctx.oidc.result?.consent?.grantId;
      return id === undefined ? undefined : ctx.oidc.provider.Grant.find(id);
    },
    issueRefreshToken: (_, client) => client.grantTypeAllowed('refresh_token'),
    expiresWithSession: () => false,
    extraTokenClaims: (_, token) => ({ grant_id: 'grantId' in token ? token.grantId : undefined }),
    // Any token of a grant that is revoked ends the grant.
    revokeGrantPolicy: () => true,
    fetch: async (url) => {
      const bounds = { mostBytes: KEYS_BYTES, timeoutMs: 2_500 };
      const { status, body } = await options.fetch.get(new URL(String(url)), options.causedBy(), bounds);
      return new Response(new Uint8Array(body), { status });
    },
    renderError: renderFault,
  };
}

const LIBRARY_ROUTES = {
  authorization: '/oauth/authorize',
  token: '/oauth/token',
  jwks: '/oauth/jwks',
  revocation: '/oauth/revoke',
  device_authorization: `${DEVICE_PATH}_authorization`,
  code_verification: DEVICE_PATH,
};

function publishedKeys({ published }: ProviderOptions['keys']): JWKS {
  return {
    keys: published.map(
      ({ kid, jwk }) => ({ ...jwk, kid, alg: 'ES256', use: 'sig' }) as JWKS['keys'][number],
    ),
  };
}

function cookiesOf({ issuer, cookieKeys }: ProviderOptions): Configuration['cookies'] {
  const isSecure = issuer.startsWith('https:');
  const suffix = isSecure ? '' : `_${new URL(issuer).port || '80'}`;
  const prefix = `${isSecure ? '__Secure-' : ''}stagedoor`;
  return {
    keys: [...cookieKeys],
    names: {
      interaction: `${prefix}_interaction${suffix}`,
      resume: `${prefix}_resume${suffix}`,
      session: `${prefix}_library${suffix}`,
    },
    short: { httpOnly: true, sameSite: 'lax', signed: true, secure: isSecure },
    long: { httpOnly: true, sameSite: 'lax', signed: true, secure: isSecure, path: '/oauth' },
  };
}

function featuresOf(
  { issuer, causedBy }: ProviderOptions,
  resourceServer: RefreshOptions['resourceServer'],
): Configuration['features'] {
  return {
    devInteractions: { enabled: false },
    userinfo: { enabled: false },
    rpInitiatedLogout: { enabled: false },
    pushedAuthorizationRequests: { enabled: false },
    dPoP: { enabled: false },
    registration: { enabled: false },
    // The pages are ours: pages/device-pages.ts.
    deviceFlow: { enabled: true, deviceInfo: () => ({ address: causedBy() }) },
    revocation: { enabled: true, allowedPolicy: (_, client, token) => client.clientId === token.clientId },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => issuer,
      useGrantedResource: () => true,
      getResourceServerInfo: resourceServer,
    },
  };
}

/** Our own command line gets more than tokens. */
function giveOwnAnswers(provider: Provider, { ownAnswer }: Pick<ProviderOptions, 'ownAnswer'>): void {
  provider.use(async (ctx: KoaContextWithOIDC, next: () => Promise<void>) => {
    await next();
    const { body, oidc } = ctx;
    if (oidc?.client?.clientId !== COMMAND_LINE.id || typeof Object(body).access_token !== 'string') return;
    const { sub, grant_id: grantId } = claimsOf(Object(body).access_token);
    ctx.body = { ...Object(body), ...(await ownAnswer(String(sub), String(grantId))) };
  });
}

/** Shows an error on a page of ours, unless the browser may be sent to the client with it. */
function keepErrorsHere(provider: Provider, options: ProviderOptions): void {
  const refused = new WeakMap<object, errors.OIDCProviderError>();
  provider.on('authorization.error', (ctx, error) => refused.set(ctx, error));
  provider.use(async (ctx: KoaContextWithOIDC, next: () => Promise<void>) => {
    await next();
    const error = refused.get(ctx);
    // `resume`: the answer to a page, which has decided.
    if (error === undefined || ctx.status !== 303 || ctx.oidc.route === 'resume') return;
    const client = await options.clients.find(ctx.oidc.client?.clientId ?? '', options.causedBy());
    const asked = { redirectUri: String(ctx.oidc.params?.redirect_uri), cookies: ctx.get('cookie') };
    if (client !== undefined && (await mayRedirect({ client, ...asked }, options))) return;
    const answer = new URL(String(ctx.response.get('location')));
    ctx.remove('location');
    send(ctx, errorPage(client?.name ?? '', error.error_description ?? error.error, answer));
  });
}

/** Refuses an assertion of a client that lives too long, or is one too many. */
function checkAssertion(
  { exp, jti }: Readonly<Record<string, unknown>>,
  { clock, clients, causedBy }: Pick<ProviderOptions, 'clock' | 'clients' | 'causedBy'>,
): void {
  if (Number(exp) * 1_000 > clock.wall() + MAX_ASSERTION_MS || String(jti).length > MAX_ID_LENGTH)
    throw new errors.InvalidClientAuth('it lives too long');
  // Each is a row until it expires.
  if (clients.admitAssertion(causedBy())) return;
  const later = new errors.TemporarilyUnavailable('too many requests; try again in a minute');
  later.status = 429;
  later.statusCode = 429;
  throw later;
}

/** The claims of a token that was signed just now. */
function claimsOf(token: string): Readonly<Record<string, unknown>> {
  return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
}

/** Everything is asked on one page, each time. */
function promptPolicy() {
  const { Check, Prompt } = interactionPolicy;
  const unanswered = new Check('unanswered', 'the user is asked each time', 'consent_required', (ctx) =>
    ctx.oidc.result?.consent === undefined ? Check.REQUEST_PROMPT : Check.NO_NEED_TO_PROMPT,
  );
  const policy = interactionPolicy.base();
  policy.clear();
  policy.add(new Prompt({ name: 'consent', requestable: true }, unanswered));
  // Clients may ask for these: the page does both.
  policy.add(new Prompt({ name: 'login', requestable: true }));
  policy.add(new Prompt({ name: 'select_account', requestable: true }));
  return policy;
}

const AGAIN = 'Go back to the program that sent you here, and connect again.';

/** `SessionNotFound`, unknown clients, redirect addresses that do not fit: the browser cannot be sent back. */
function renderFault(ctx: KoaContextWithOIDC, out: { readonly error: string }, thrown: Error): void {
  send(ctx, faultOf(ctx, out.error, thrown));
}

function send(ctx: KoaContextWithOIDC, fault: Page): void {
  ctx.status = fault.status;
  for (let index = 0; index < fault.headers.length; index += 2)
    ctx.set(fault.headers[index] ?? '', fault.headers[index + 1] ?? '');
  ctx.body = fault.text;
}

function faultOf(ctx: KoaContextWithOIDC, code: string, thrown: Error) {
  const { client_id: id = '' } = ctx.query;
  const name = String(id).slice(0, 200);
  if (thrown instanceof errors.SessionNotFound) return overPage(ctx.req.headers.cookie);
  if (thrown instanceof errors.InvalidClient && thrown.error_description?.startsWith('The document'))
    return faultPage(thrown.statusCode, 'This client cannot be checked', {
      what: `${thrown.error_description}.`,
      next: 'Tell the maker of the program; nothing was shared with it.',
    });
  if (thrown instanceof errors.InvalidClient)
    return faultPage(400, 'This client is not known here', {
      what: `The gateway does not know the client ${name}; it may have been removed.`,
      next: 'Remove the server from the program, or clear its saved sign-in, and add it again: then it registers itself again.',
    });
  if (thrown instanceof errors.InvalidRedirectUri)
    return faultPage(400, 'The answer cannot be sent', {
      what: `The client ${name} asked for an address that it has not registered.`,
      next: AGAIN,
    });
  if (code === 'server_error') return unavailablePage();
  const description = thrown instanceof errors.OIDCProviderError ? thrown.error_description : undefined;
  return faultPage(400, 'This request cannot be answered', { what: description ?? code, next: AGAIN });
}

export const TEMPORARILY_UNAVAILABLE = {
  error: 'temporarily_unavailable',
  error_description: 'the gateway cannot answer now',
};

export function unavailablePage(): Page {
  return faultPage(503, 'The gateway cannot answer now', {
    what: 'It could not read its database.',
    next: 'Try again in a minute.',
  });
}

/** Answers 503 while the database is away, which the library takes for a fault of its own; logs its faults. */
export function answerUnavailable(provider: Provider, log: Pick<Logger, 'error'>): void {
  const unavailable = new WeakSet<object>();
  provider.on('server_error', (ctx, error) => {
    if (hasCode(error, 'DATABASE_UNAVAILABLE')) unavailable.add(ctx);
    else log.error({ err: error }, 'an OAuth request failed');
  });
  provider.use(async (ctx, next) => {
    await next();
    if (!unavailable.has(ctx) || ctx.status !== 500) return;
    ctx.status = 503;
    ctx.body = TEMPORARILY_UNAVAILABLE;
    ctx.set('Retry-After', '5');
  });
}
