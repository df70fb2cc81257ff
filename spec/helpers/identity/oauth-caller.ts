// Requests to the authorization server of a gateway as a client makes them, and as an attacker does.

import * as assert from 'uvu/assert';
import {
  type Answer,
  authorize,
  newProof,
  type Proof,
  ScriptedBrowser,
} from '../browsers/scripted-browser.ts';

export interface Metadata {
  readonly issuer: string;
  readonly authorization_endpoint: string;
  readonly token_endpoint: string;
  readonly registration_endpoint: string;
  readonly revocation_endpoint: string;
  readonly [name: string]: unknown;
}

export interface Tokens {
  readonly access_token: string;
  readonly refresh_token: string;
  readonly scope: string;
}

export interface Told {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Readonly<Record<string, unknown>>;
}

export const CALLBACK = 'http://127.0.0.1:43117/callback';

/** One gateway, as the spec's own client sees it. */
export class OAuthCaller {
  readonly url: string;
  #metadata: Metadata | undefined;

  constructor(url: string) {
    this.url = url;
  }

  async metadata(): Promise<Metadata> {
    this.#metadata ??= (await told(fetch(`${this.url}/.well-known/oauth-authorization-server`)))
      .body as never;
    return this.#metadata as Metadata;
  }

  async register(body: object): Promise<Told> {
    const { registration_endpoint: url } = await this.metadata();
    return told(
      fetch(url, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify(body),
      }),
    );
  }

  /** A public client with these redirect URIs. */
  async client(redirectUris: readonly string[] = [CALLBACK], more: object = {}): Promise<string> {
    const { status, body } = await this.register({
      ...{ client_name: 'Spec client', redirect_uris: redirectUris, token_endpoint_auth_method: 'none' },
      ...{ grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'], ...more },
    });
    assert.is(status, 201, JSON.stringify(body));
    return String(body.client_id);
  }

  /** `more`: parameters to add, to replace, or with undefined to leave out. */
  async authorizationUrl(
    clientId: string,
    proof: Pick<Proof, 'challenge'>,
    more: Readonly<Record<string, string | undefined>> = {},
  ): Promise<URL> {
    const { authorization_endpoint: endpoint } = await this.metadata();
    const url = new URL(endpoint);
    const parameters = {
      ...{ response_type: 'code', client_id: clientId, redirect_uri: CALLBACK, state: 'a state of the spec' },
      ...{ code_challenge: proof.challenge, code_challenge_method: 'S256', scope: 'tools:call gateway:read' },
      ...more,
    };
    for (const [name, value] of Object.entries(parameters))
      if (value !== undefined) url.searchParams.set(name, value);
    return url;
  }

  async token(parameters: Readonly<Record<string, string>>): Promise<Told> {
    const { token_endpoint: url } = await this.metadata();
    return told(fetch(url, { method: 'POST', body: new URLSearchParams(parameters) }));
  }

  redeem(
    clientId: string,
    code: string,
    { verifier }: Pick<Proof, 'verifier'>,
    redirectUri = CALLBACK,
  ): Promise<Told> {
    return this.token({
      ...{ grant_type: 'authorization_code', client_id: clientId, code },
      ...{ code_verifier: verifier, redirect_uri: redirectUri },
    });
  }

  refresh(
    clientId: string,
    refreshToken: string,
    more: Readonly<Record<string, string>> = {},
  ): Promise<Told> {
    return this.token({
      ...{ grant_type: 'refresh_token', client_id: clientId, refresh_token: refreshToken, ...more },
    });
  }

  /** The whole way of a user who agrees. */
  async signIn(
    clientId: string,
    {
      browser = new ScriptedBrowser(this.url),
      ...answer
    }: Answer & { readonly browser?: ScriptedBrowser } = {},
    more: Readonly<Record<string, string | undefined>> = {},
  ): Promise<Tokens> {
    const proof = newProof();
    const back = await authorize(browser, await this.authorizationUrl(clientId, proof, more), answer);
    const code = back.searchParams.get('code');
    assert.ok(code, `no code at ${back}`);
    const { status, body } = await this.redeem(clientId, code ?? '', proof, more.redirect_uri ?? CALLBACK);
    assert.is(status, 200, JSON.stringify(body));
    const { access_token: access, refresh_token: refresh, scope } = body;
    return { access_token: String(access), refresh_token: String(refresh), scope: String(scope) };
  }

  /** The status of a call with this token: 200, or 401 when it is over. */
  async use(token: string, path = '/mcp/tools/tools/list'): Promise<number> {
    const response = await fetch(this.url + path, { headers: { Authorization: `Bearer ${token}` } });
    await response.body?.cancel();
    return response.status;
  }
}

async function told(asked: Promise<Response>): Promise<Told> {
  const response = await asked;
  const text = await response.text();
  let body: Readonly<Record<string, unknown>> = {};
  try {
    body = Object(JSON.parse(text));
  } catch {
    body = { text };
  }
  return { status: response.status, headers: response.headers, body };
}
