// An app with the authorization server, and a browser without script for its pages: it keeps cookies by name and path, follows
// redirects, and submits forms.

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
import { Issuers } from '../../src/auth/issuers.ts';
import { OAuthKeys } from '../../src/auth/oauth-keys.ts';
import type { IssuerSetting } from '../../src/config/issuer-settings.ts';
import { type Clock, systemClock } from '../../src/domain/clock.ts';
import { GatewayAddress, isResourcePath } from '../../src/domain/resource.ts';
import {
  AuthorizationServer,
  type AuthorizationServerOptions,
} from '../../src/http/oauth/authorization-server.ts';
import { MemoryStore } from '../../src/persistence/memory-store.ts';
import type { Store } from '../../src/persistence/store.ts';
import { type AccountsFixture, type AccountsOptions, PASSWORD, startWithAccounts } from './http-accounts.ts';

export interface SignInFixture extends AccountsFixture {
  readonly oauthStore: Store;
  readonly keys: OAuthKeys;
  readonly warnings: readonly unknown[];
  readonly issuers: Issuers | undefined;
  readonly authorizationServer: AuthorizationServer;
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
  let authorizationServer: AuthorizationServer | undefined;
  const warnings: unknown[] = [];
  const keep = (...line: readonly unknown[]) => void warnings.push(line);
  const keys = new OAuthKeys({ store: store.oauth, now: clock.now, wall: clock.wall });
  const pathOf = (resource: string) => {
    const parsed = URL.parse(resource);
    const path = parsed?.pathname.replace(/\/$/, '') ?? '-';
    return parsed?.origin === url && isResourcePath(path) ? path : undefined;
  };
  const address = new GatewayAddress(undefined, () => [Number(new URL(url).port)]);
  const issuers =
    settings &&
    new Issuers({
      ...{ settings, address, now: clock.now, wall: clock.wall, alarm: clock.alarm },
      limits: { userHourlyLimit: 1_000, apiKeyHourlyLimit: 5_000 },
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
    oauthFor: (auth) => {
      authorizationServer = new AuthorizationServer({
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
      });
      return authorizationServer;
    },
  });
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

/** Opens the pages of one origin. */
export class Browser {
  readonly #cookies = new Map<string, { readonly value: string; readonly path: string }>();
  readonly origin: string;

  constructor(origin: string) {
    this.origin = origin;
  }

  /** Follows redirects until a page, or an address of another origin: that is the URL of a page without a status. */
  async open(url: string, body?: URLSearchParams): Promise<BrowserPage> {
    const target = new URL(url, this.origin);
    if (target.origin !== this.origin) return { url, status: 0, headers: new Headers(), text: '' };
    const { pathname } = target;
    const cookie = this.cookiesFor(pathname);
    const response = await fetch(target, {
      redirect: 'manual',
      method: body === undefined ? 'GET' : 'POST',
      headers: {
        accept: 'text/html,*/*;q=0.8',
        ...(cookie === '' ? {} : { cookie }),
        ...(body === undefined ? {} : { origin: this.origin }),
      },
      body: body ?? null,
    });
    this.take(response.headers, pathname);
    const text = await response.text();
    const location = response.headers.get('location');
    if (response.status === 303 && location !== null) return this.open(new URL(location, target).href);
    return { url: target.href, status: response.status, headers: response.headers, text };
  }

  /** Submits the form whose button has this text. */
  submit(
    page: BrowserPage,
    button: string,
    fields: Readonly<Record<string, string>> = {},
  ): Promise<BrowserPage> {
    const forms = [...page.text.matchAll(/<form method="post" action="([^"]+)">([\s\S]*?)<\/form>/g)];
    const form = forms.find(([, , content = '']) => content.includes(`>${button}</button>`));
    if (form === undefined) throw new Error(`no button "${button}" on: ${page.text.slice(-600)}`);
    const [, action = '', content = ''] = form;
    const body = new URLSearchParams();
    for (const [, name = '', value = ''] of content.matchAll(
      /<input type="hidden" name="([^"]+)" value="([^"]*)"/g,
    ))
      body.set(name, value);
    const [, name, value = ''] =
      new RegExp(`<button name="([^"]+)" value="([^"]*)">${button}<`).exec(content) ?? [];
    if (name !== undefined) body.set(name, value);
    for (const [field, text] of Object.entries(fields)) body.set(field, text);
    return this.open(action, body);
  }

  /** Signs in on the present page, if it asks for that. */
  async signIn(page: BrowserPage, username = 'ada', password = PASSWORD): Promise<BrowserPage> {
    return page.text.includes('>Sign in</button>')
      ? this.submit(page, 'Sign in', { username, password })
      : page;
  }

  /** The header `Cookie` for this path; empty without one. */
  cookiesFor(pathname: string): string {
    return [...this.#cookies]
      .filter(([, { path }]) => pathname === path || pathname.startsWith(path === '/' ? path : `${path}/`))
      .map(([key, { value }]) => `${key.split(' ')[0]}=${value}`)
      .join('; ');
  }

  /** Keeps and removes the cookies of an answer. */
  take(headers: Headers, pathname: string): void {
    for (const set of headers.getSetCookie()) this.#keep(set, pathname);
  }

  /** Another browser with the same cookies. */
  copy(): Browser {
    const copy = new Browser(this.origin);
    copy.join(this);
    return copy;
  }

  /** Adds the cookies of another browser. */
  join(other: Browser): void {
    for (const [key, cookie] of other.#cookies) this.#cookies.set(key, cookie);
  }

  cookieNames(): string[] {
    return [...this.#cookies.keys()];
  }

  #keep(set: string, pathname: string): void {
    const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(set) ?? [];
    const path = /;\s*path=([^;]+)/i.exec(set)?.[1] ?? pathname.replace(/\/[^/]*$/, '');
    const isOver = /max-age=0\b/i.test(set) || /expires=Thu, 01 Jan 1970/i.test(set);
    if (isOver) this.#cookies.delete(`${name} ${path}`);
    else this.#cookies.set(`${name} ${path}`, { value, path });
  }
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
