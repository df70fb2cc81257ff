// Proves that a client can connect by the address alone. Does the steps of a client and of the browser of its user: finds the
// authorization server, registers, signs in, allows, redeems the code, lists the tools, and ends the grant. Sources: RFC 9728,
// 8414, 7591, 9207.

import { hash, randomBytes } from 'node:crypto';
import type { EndpointTarget } from '../../connect/connect-target.ts';
import { CommandFailure } from '../failures.ts';
import { beginningOf } from '../remote/answering-url.ts';
import { answerIn, elementsOf, type Fields, fields } from '../remote/answers.ts';
import { FormBrowser } from './form-browser.ts';
import { endpointDefinition, listedBy, type Verification } from './verify.ts';

export interface Person {
  readonly username: string;
  readonly password: string;
}

/** The redirect URI. Nothing listens there: the browser ends when it is sent to it. */
const CALLBACK = 'http://127.0.0.1:1/callback';
const ANSWER_MS = 20_000;

/**
 * Signs in. Throws CommandFailure with the step that does not work. Without a person it ends at the sign-in page, and
 * knows no tools.
 */
export async function verifySignIn(
  target: EndpointTarget,
  person: Person | undefined,
): Promise<Verification> {
  const beganAtMs = performance.now();
  const { endpoint } = target;
  const server = await serverOf(endpoint);
  const clientId = await register(server);
  const verifier = randomBytes(32).toString('base64url');
  const state = randomBytes(16).toString('base64url');
  const asked = addressIn(server, 'authorization_endpoint');
  const parameters = {
    response_type: 'code',
    client_id: clientId,
    redirect_uri: CALLBACK,
    state,
    resource: endpoint,
    scope: 'tools:call',
    code_challenge_method: 'S256',
    code_challenge: hash('sha256', verifier, 'base64url'),
  };
  for (const [name, value] of Object.entries(parameters)) asked.searchParams.set(name, value);
  const browser = new FormBrowser(asked.origin, ANSWER_MS);
  const login = await browser.open(asked);
  if (login instanceof URL || !login.includes('type="password"'))
    throw new CommandFailure(`the browser got no sign-in page at ${asked.origin}${asked.pathname}`);
  const ms = () => Math.round(performance.now() - beganAtMs);
  if (person === undefined)
    return { tools: [], until: 'the sign-in page; --user <name> tries the rest', ms: ms() };
  const consent = await browser.send('type="password"', { ...person });
  if (consent instanceof URL || !consent.includes('value="allow"'))
    throw new CommandFailure(`the sign-in of ${person.username} was refused; ${refusalIn(consent)}`);
  const back = await browser.send('value="allow"', { decision: 'allow' });
  if (!(back instanceof URL)) throw new CommandFailure('the browser was not sent back to the client');
  const { searchParams: said } = back;
  if (said.get('state') !== state || said.get('iss') !== server.issuer)
    throw new CommandFailure(
      'the answer in the browser belongs to another request, or comes from another server',
    );
  const code = said.get('code');
  if (code === null) throw new CommandFailure(`the gateway answered the client: ${said.get('error')}`);
  const granted = await post(textIn(server, 'token_endpoint'), {
    grant_type: 'authorization_code',
    client_id: clientId,
    code,
    code_verifier: verifier,
    redirect_uri: CALLBACK,
  });
  const headers = { Authorization: `Bearer ${textIn(granted, 'access_token')}` };
  try {
    const { ms: _, ...listed } = await listedBy(endpointDefinition(target, headers));
    return { ...listed, ms: ms() };
  } finally {
    const token = textIn(granted, 'refresh_token');
    await ask(textIn(server, 'revocation_endpoint'), { client_id: clientId, token });
  }
}

/** Why a sign-in got no page on which its user can allow. */
function refusalIn(consent: string | URL): string {
  if (consent instanceof URL)
    return `the browser was sent to the client: ${consent.searchParams.get('error')}`;
  if (consent.includes('type="password"')) return 'user name or password may be wrong';
  return `the browser got the page "${/<h1>([^<]{1,200})</.exec(consent)?.[1] ?? 'without a title'}"`;
}

/** The metadata of the authorization server to which the endpoint sends clients. */
async function serverOf(endpoint: string): Promise<Fields> {
  const refused = await get(endpoint);
  const [, document] =
    /resource_metadata="([^"]+)"/.exec(refused.headers.get('www-authenticate') ?? '') ?? [];
  await refused.body?.cancel();
  if (refused.status !== 401 || document === undefined)
    throw new CommandFailure(`${endpoint} does not say where to sign in (status ${refused.status})`);
  const { resource, authorization_servers: servers } = await jsonOf(await get(document));
  if (resource !== endpoint)
    throw new CommandFailure(`${document} is about ${resource}, not about ${endpoint}`);
  const issuer = String(elementsOf(servers)[0]);
  const server = await jsonOf(await get(`${issuer}/.well-known/oauth-authorization-server`));
  if (server.issuer !== issuer) throw new CommandFailure(`${issuer} names itself ${server.issuer}`);
  return server;
}

async function register(server: Fields): Promise<string> {
  const { registration_endpoint: endpoint } = server;
  if (typeof endpoint !== 'string')
    throw new CommandFailure(
      'clients cannot register here (auth.clients); only those that an admin added can sign in',
    );
  const response = await request(endpoint, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({
      client_name: 'stagedoor connect --verify',
      redirect_uris: [CALLBACK],
      response_types: ['code'],
      grant_types: ['authorization_code', 'refresh_token'],
      token_endpoint_auth_method: 'none',
    }),
  });
  return textIn(await jsonOf(response), 'client_id');
}

async function post(url: string, parameters: Readonly<Record<string, string>>): Promise<Fields> {
  return jsonOf(await ask(url, parameters));
}

function ask(url: string, parameters: Readonly<Record<string, string>>): Promise<Response> {
  return request(url, { method: 'POST', body: new URLSearchParams(parameters) });
}

function get(url: string): Promise<Response> {
  return request(url, {});
}

async function request(url: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(url, { ...init, redirect: 'error', signal: AbortSignal.timeout(ANSWER_MS) });
  } catch (cause) {
    throw new CommandFailure(`${url} did not answer`, { cause });
  }
}

async function jsonOf(response: Response): Promise<Fields> {
  const text = await beginningOf(response).catch((cause: unknown) => {
    throw new CommandFailure(`${response.url} did not answer`, { cause });
  });
  const answer = fields(answerIn(text));
  if (response.ok) return answer;
  const { error, error_description: why = error } = answer;
  throw new CommandFailure(`${response.url} answered ${response.status}: ${why ?? 'no reason given'}`);
}

function addressIn(answer: Fields, name: string): URL {
  const address = URL.parse(textIn(answer, name));
  if (address !== null) return address;
  throw new CommandFailure(`the gateway named no address as ${name}`);
}

function textIn(answer: Fields, name: string): string {
  const value = answer[name];
  if (typeof value === 'string') return value;
  throw new CommandFailure(`the gateway named no ${name}`);
}
