// An identity provider for specs: a second authorization server of the same library, whose page signs in any user that it knows.

import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { SignJWT } from 'jose/jwt/sign';
import { exportJWK } from 'jose/key/export';
import { generateKeyPair } from 'jose/key/generate/keypair';
import { Provider } from 'oidc-provider';
import * as assert from 'uvu/assert';
import { pageOf, ScriptedBrowser, type Visited } from '../browsers/scripted-browser.ts';

const CLIENT_SECRET = 'a-secret-of-the-gateway-at-this-provider';

/** Claims of the users, by subject. A user without claims has left. */
type Users = Map<string, Readonly<Record<string, unknown>>>;

export interface CompanyProvider {
  readonly issuer: string;
  readonly users: Users;
  /** What the userinfo endpoint answers instead, whatever the token (a number: a status), and claims that the ID tokens of refreshes have instead. */
  readonly lie: {
    userinfo?: object | number | undefined;
    /** What a status instead of the userinfo has as `WWW-Authenticate`. */
    challenge?: string | undefined;
    idToken?: Readonly<Record<string, unknown>> | undefined;
  };
  /** How often it was asked for tokens. */
  readonly tokenRequests: () => number;
  /** The entry of `auth.providers`. */
  readonly setting: (more: object) => object;
  /** An identity assertion (ID-JAG) for a client of a gateway, signed by the provider. */
  readonly assertion: (claims: Readonly<Record<string, unknown>>) => Promise<string>;
  readonly close: () => Promise<void>;
}

/** `port`: that of an earlier one. `auth`: how its client has to show the secret; `refusal`: the error for the other way, as some have it. */
export async function startCompanyProvider({
  auth = 'client_secret_basic' as 'client_secret_basic' | 'client_secret_post',
  refusal = 'invalid_client',
  port = 0,
} = {}): Promise<CompanyProvider> {
  const server = createServer();
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const { privateKey } = await generateKeyPair('RS256', { extractable: true });
  const users: Users = new Map();
  const lie: CompanyProvider['lie'] = {};
  let tokenRequests = 0;
  const signed = (claims: Readonly<Record<string, unknown>>, typ: string) =>
    new SignJWT(claims)
      .setProtectedHeader({ alg: 'RS256', kid: 'one', typ })
      .setIssuer(issuer)
      .setIssuedAt()
      .setExpirationTime('5m')
      .sign(privateKey);
  const provider = new Provider(issuer, {
    clients: [
      {
        ...{ client_id: 'gateway', client_secret: CLIENT_SECRET, token_endpoint_auth_method: auth },
        ...{ grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'] },
        // Replaced below: the port of the gateway is not known yet.
        redirect_uris: ['http://127.0.0.1/oauth/callback/any'],
      },
    ],
    jwks: { keys: [{ ...(await exportJWK(privateKey)), alg: 'RS256', use: 'sig', kid: 'one' }] },
    claims: { openid: ['sub'], profile: ['preferred_username', 'groups', 'hd'], email: ['email'] },
    cookies: { keys: ['a-key-for-the-cookies-of-this-spec'] },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_context, { uid }) => `/page/${uid}` },
    findAccount: (_context, sub) => {
      const claims = users.get(sub);
      return claims && { accountId: sub, claims: () => ({ sub, ...claims }) };
    },
    rotateRefreshToken: true,
    ttl: {
      AccessToken: 300,
      IdToken: 300,
      Interaction: 300,
      Session: 300,
      Grant: 3_600,
      RefreshToken: 3_600,
    },
  });
  provider.Client.prototype.redirectUriAllowed = (uri: string) => uri.includes('/oauth/callback/');
  server.on('request', async (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', issuer);
    if (pathname === '/token') {
      tokenRequests += 1;
      if (auth === 'client_secret_post' && request.headers.authorization !== undefined) {
        request.resume();
        response.writeHead(refusal === 'invalid_client' ? 401 : 403, { 'Content-Type': 'application/json' });
        return response.end(JSON.stringify({ error: refusal }));
      }
    }
    if (pathname === '/token' && lie.idToken !== undefined) {
      request.resume();
      const body = {
        access_token: 'any',
        token_type: 'bearer',
        id_token: await signed({ aud: 'gateway', ...lie.idToken }, 'JWT'),
      };
      return response.setHeader('Content-Type', 'application/json').end(JSON.stringify(body));
    }
    if (pathname === '/me' && typeof lie.userinfo === 'number') {
      request.resume();
      if (lie.challenge !== undefined) response.setHeader('WWW-Authenticate', lie.challenge);
      return response.writeHead(lie.userinfo).end();
    }
    if (pathname === '/me' && lie.userinfo !== undefined)
      return response.setHeader('Content-Type', 'application/json').end(JSON.stringify(lie.userinfo));
    if (!pathname.startsWith('/page/')) return provider.callback()(request, response);
    const accountId = searchParams.get('user');
    if (accountId === null) return response.setHeader('Content-Type', 'text/html; charset=utf-8').end(PAGE);
    const { params } = await provider.interactionDetails(request, response);
    const grant = new provider.Grant({ accountId, clientId: String(params.client_id) });
    grant.addOIDCScope('openid profile email offline_access');
    const result = { login: { accountId }, consent: { grantId: await grant.save() } };
    return provider.interactionFinished(request, response, result);
  });
  return {
    issuer,
    users,
    lie,
    tokenRequests: () => tokenRequests,
    setting: (more) => ({
      ...{ issuer, client_id: 'gateway', client_secret: CLIENT_SECRET, label: 'Example Corp', ...more },
    }),
    assertion: (claims) => signed({ jti: randomUUID(), ...claims }, 'oauth-id-jag+jwt'),
    close: async () => {
      server.close().closeAllConnections();
      await once(server, 'close');
    },
  };
}

const PAGE = `<!doctype html><html lang="en"><title>Example Corp</title><form method="get">
<label>User <input name="user"></label><button>Continue</button></form></html>`;

/** Follows the link on the page of the gateway to the provider, where this user signs in: the page of the gateway after it. */
export async function signInAt(
  { issuer }: Pick<CompanyProvider, 'issuer'>,
  browser: ScriptedBrowser,
  user: string,
): Promise<Visited> {
  const there = await browser.open(linkTo('Example Corp', browser));
  assert.instance(there, URL, `not sent to the provider`);
  return pageOf(await browser.open(await answerOf({ issuer }, there as URL, user)));
}

/** The link on the present page to the provider with this label. */
export function linkTo(label: string, { page }: ScriptedBrowser): string {
  const links = [...(page?.html ?? '').matchAll(/<a class="choice" href="([^"]+)">Sign in with ([^<]+)</g)];
  return links.find(([, , text]) => text === label)?.[1] ?? '';
}

/** The address to which the provider sends the browser of this user. */
export async function answerOf(
  { issuer }: Pick<CompanyProvider, 'issuer'>,
  there: URL,
  user: string,
): Promise<URL> {
  const own = new ScriptedBrowser(issuer);
  const page = pageOf(await own.open(there));
  assert.match(page.html, 'Continue');
  const next = new URL(page.url);
  next.searchParams.set('user', user);
  const answer = await own.open(next);
  assert.instance(answer, URL, 'the provider does not send the browser back');
  return answer as URL;
}
