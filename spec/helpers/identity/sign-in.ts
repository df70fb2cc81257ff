// An app with the authorization server, and the steps of its clients and users.

import { randomBytes } from 'node:crypto';
import {
  discoverAuthorizationServerMetadata,
  exchangeAuthorization,
  registerClient,
  startAuthorization,
} from '@modelcontextprotocol/sdk/client/auth.js';
import type {
  AuthorizationServerMetadata,
  OAuthClientInformationFull,
  OAuthClientMetadata,
} from '@modelcontextprotocol/sdk/shared/auth.js';
import { OAuthKeys } from '../../../src/auth/grants/oauth-keys.ts';
import { Issuers } from '../../../src/auth/issuers/issuers.ts';
import type { AuthorizationServerOptions } from '../../../src/authorization-server/authorization-server.ts';
import type { LazyAuthorizationServer } from '../../../src/authorization-server/lazy-authorization-server.ts';
import type { IssuerSetting } from '../../../src/config/issuer-settings.ts';
import { GatewayAddress, isResourcePath } from '../../../src/domain/accounts/resource.ts';
import { type Clock, systemClock } from '../../../src/domain/time/clock.ts';
import { createGateway } from '../../../src/gateway/gateway.ts';
import { MemoryStore } from '../../../src/persistence/memory/memory-store.ts';
import type { Store } from '../../../src/persistence/store.ts';
import { isPage, ScriptedBrowser, type Visited } from '../browsers/scripted-browser.ts';
import { type AccountsFixture, type AccountsOptions, PASSWORD, startWithAccounts } from '../http/accounts.ts';

export interface SignInFixture extends AccountsFixture {
  readonly oauthStore: Store;
  readonly keys: OAuthKeys;
  readonly warnings: readonly unknown[];
  readonly issuers: Issuers | undefined;
  readonly authorizationServer: LazyAuthorizationServer;
}

/** `startSignIn` over a gateway whose users connect accounts at backends. */
export async function startWithConnections() {
  let url = '';
  const address = {
    isPublic: false,
    get issuer() {
      return url;
    },
  };
  const store = new MemoryStore();
  const gateway = await createGateway({ store, backendAccounts: { address } });
  const fixture = await startSignIn({ store, gateway });
  url = fixture.url;
  return { fixture, gateway, store };
}

/** `signIn`: options of the authorization server. `store`: shared with other apps, as that of several nodes. */
export async function startSignIn(
  options: Omit<AccountsOptions, 'store' | 'signIn' | 'issuers'> & {
    readonly store?: MemoryStore;
    readonly clock?: Clock;
    readonly signIn?: Partial<AuthorizationServerOptions>;
    /** Other issuers, whose tokens and assertions are accepted. */
    readonly issuers?: readonly IssuerSetting[];
  } = {},
): Promise<SignInFixture> {
  const {
    store = new MemoryStore(),
    clock = systemClock,
    signIn = {},
    issuers: settings,
    ...others
  } = options;
  let url = '';
  const warnings: unknown[] = [];
  const keep = (...line: readonly unknown[]) => void warnings.push(line);
  const keys = new OAuthKeys({ store: store.oauth, clock });
  const pathOf = (resource: string) => {
    const parsed = URL.parse(resource);
    const path = parsed?.pathname.replace(/\/$/, '') ?? '-';
    return parsed?.origin === url && isResourcePath(path) ? path : undefined;
  };
  const address = new GatewayAddress(undefined, () => [Number(new URL(url).port)]);
  const issuers =
    settings &&
    new Issuers({
      ...{ settings, address, clock },
      rightsSettings: { userHourlyLimit: 1_000, apiKeyHourlyLimit: 5_000 },
      warn: keep,
    });
  const fixture = await startWithAccounts({
    ...others,
    store,
    clock,
    accessTokens: {
      ...{ store: store.oauth, keys, address },
    },
    issuers,
    oauthFor: (auth) => ({
      ...{ store, auth, keys, clock, secrets: [randomBytes(32)] },
      ...{ rule: 'any', openNetworks: [], keepsSecrets: true, tokenSeconds: 3_600 },
      address: {
        baseFor: (host) => (`http://${host}` === url ? url : undefined),
        get issuer() {
          return url;
        },
        pathOf,
        normalise: (resource) => {
          const path = pathOf(resource);
          return path === undefined ? undefined : `${url}${path}`;
        },
      },
      log: { warn: keep, error: keep },
      assertions: issuers,
      ...signIn,
    }),
  });
  const { authorizationServer } = fixture.app;
  if (authorizationServer === undefined) throw new Error('there is no authorization server');
  url = fixture.url;
  return { ...fixture, oauthStore: store, keys, warnings, issuers, authorizationServer };
}

export interface BrowserPage {
  readonly url: string;
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** A browser whose pages are values: what it sends belongs to a page, which need not be the last one. */
export class Browser {
  readonly #browser: ScriptedBrowser;
  readonly origin: string;

  constructor(origin: string) {
    this.origin = origin;
    this.#browser = new ScriptedBrowser(origin);
  }

  /** Follows redirects until a page, or an address of another origin: that is the URL of a page without a status. */
  async open(url: string, body?: URLSearchParams): Promise<BrowserPage> {
    const form = body && { method: 'POST', headers: { origin: this.origin }, body };
    return shownAs(await this.#browser.open(new URL(url, this.origin), form));
  }

  /** Submits the form whose button has this text. */
  async submit(
    { url, status, headers, text }: BrowserPage,
    button: string,
    fields: Readonly<Record<string, string>> = {},
  ): Promise<BrowserPage> {
    this.#browser.page = { url: new URL(url), status, headers, html: text };
    return shownAs(await this.#browser.press(button, fields));
  }

  /** Signs in on the present page, if it asks for that. */
  async signIn(page: BrowserPage, username = 'ada', password = PASSWORD): Promise<BrowserPage> {
    return page.text.includes('>Sign in</button>')
      ? this.submit(page, 'Sign in', { username, password })
      : page;
  }

  /** The header `Cookie` for this path; empty without one. */
  cookiesFor(path: string): string {
    return this.#browser.cookiesFor(new URL(path, this.origin));
  }

  /** Keeps and removes the cookies of an answer. */
  take(headers: Headers, path: string): void {
    this.#browser.take(headers, new URL(path, this.origin));
  }

  /** Another browser with the same cookies. */
  copy(): Browser {
    const copy = new Browser(this.origin);
    copy.join(this);
    return copy;
  }

  /** Adds the cookies of another browser. */
  join(other: Browser): void {
    this.#browser.cookies.push(...other.#browser.cookies);
  }
}

function shownAs(at: Visited | URL): BrowserPage {
  if (!isPage(at)) return { url: at.href, status: 0, headers: new Headers(), text: '' };
  return { url: at.url.href, status: at.status, headers: at.headers, text: at.html };
}

export const REDIRECT = 'http://127.0.0.1:53111/callback';
const CLIENT: OAuthClientMetadata = {
  client_name: 'Probe',
  redirect_uris: [REDIRECT],
  grant_types: ['authorization_code', 'refresh_token'],
  response_types: ['code'],
  token_endpoint_auth_method: 'none',
};

/** Registers a client with the code of the official SDK. */
export async function register(url: string, clientMetadata = CLIENT): Promise<OAuthClientInformationFull> {
  return registerClient(url, { metadata: await metadataFor(url), clientMetadata });
}

async function metadataFor(url: string): Promise<AuthorizationServerMetadata> {
  const metadata = await discoverAuthorizationServerMetadata(url);
  if (metadata === undefined) throw new Error('there is no metadata');
  return metadata;
}

export interface Begun {
  readonly browser: Browser;
  readonly page: BrowserPage;
  readonly verifier: string;
}

/** Opens the address to which a client sends its user; stops at the first page. */
export async function begin(
  url: string,
  client: OAuthClientInformationFull,
  {
    resource = url,
    scope,
    browser = new Browser(url),
  }: { resource?: string; scope?: string; browser?: Browser } = {},
): Promise<Begun> {
  const { authorizationUrl, codeVerifier } = await startAuthorization(url, {
    metadata: await metadataFor(url),
    clientInformation: client,
    redirectUrl: client.redirect_uris[0] ?? '',
    resource: new URL(resource),
    state: 'state-1',
    ...(scope === undefined ? {} : { scope }),
  });
  return { browser, page: await browser.open(authorizationUrl.href), verifier: codeVerifier };
}

/** The fields of the answer that the client gets. */
export async function allow({ browser, page }: Begun, username = 'ada'): Promise<URLSearchParams> {
  const consent = await browser.signIn(page, username);
  const answer = await browser.submit(consent, 'Allow');
  if (answer.status !== 0)
    throw new Error(`no answer to the client: ${answer.status} ${answer.text.slice(-900)}`);
  return new URL(answer.url).searchParams;
}

/** The whole way to the first tokens. */
export async function tokensOf(
  url: string,
  client: OAuthClientInformationFull,
  options: { resource?: string; scope?: string; username?: string } = {},
) {
  const begun = await begin(url, client, options);
  const fields = await allow(begun, options.username);
  const tokens = await exchangeAuthorization(url, {
    metadata: await metadataFor(url),
    clientInformation: client,
    authorizationCode: fields.get('code') ?? '',
    codeVerifier: begun.verifier,
    redirectUri: client.redirect_uris[0] ?? '',
    resource: new URL(options.resource ?? url),
  });
  return { ...tokens, code: fields.get('code') ?? '', verifier: begun.verifier, browser: begun.browser };
}

/** Sends a form to the token endpoint. */
export async function askToken(url: string, fields: Readonly<Record<string, string>>) {
  const response = await fetch(`${url}/oauth/token`, { method: 'POST', body: new URLSearchParams(fields) });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

/** The parts of a signed token, unverified. */
export function partsOf(token: string): { header: Record<string, unknown>; claims: Record<string, unknown> } {
  const [header = '', claims = ''] = token.split('.');
  const read = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString());
  return { header: read(header), claims: read(claims) };
}
