// `node bench/flows.ts`: sign-ins by URL of a user whose browser is signed in. One flow is five requests: authorize, the page, its answer, the
// way back, the token. Prints the CPU time of a flow, flows a minute on one core, and the 99th percentile of calls without and with
// 1,000 flows a minute beside them.

import { createHash, randomBytes } from 'node:crypto';
import { Agent, type IncomingHttpHeaders, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { listening, startNode } from './children.ts';
import { ask, programPath, startGuarded } from './gateway.ts';
import { cpuMicroseconds } from './process-usage.ts';

const { values } = parseArgs({
  options: { flows: { type: 'string', default: '150' }, seconds: { type: 'string', default: '6' } },
});
const FLOWS = Number(values.flows);
const SECONDS = Number(values.seconds);
const FLOWS_PER_MINUTE = 1_000;
const CALLS_PER_SECOND = 200;
const WARM_UP = 40;
const REDIRECT = 'http://127.0.0.1:53111/callback';
const FORM = { 'Content-Type': 'application/x-www-form-urlencoded' };

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

const agent = new Agent({ keepAlive: true });
const backend = await startNode(
  [fileURLToPath(new URL('backends/http.ts', import.meta.url)), '--ports=1', '--era=legacy'],
  listening,
);
const endpoint = `http://127.0.0.1:${backend.announced[1]}/mcp`;
const password = randomBytes(12).toString('hex');
const gateway = await startGuarded(
  { http: { fast: [endpoint] } },
  { programPath, environment: {} },
  { GATEWAY_ENCRYPTION_KEY: randomBytes(32).toString('base64') },
);
try {
  const { origin, admin, key, pid } = gateway;
  const user = { username: 'ada', email: 'ada@localhost', password, role: 'user' };
  await ask('POST', `${origin}/auth/users`, user, admin);
  const client = await ask('POST', `${origin}/oauth/register`, {
    client_name: 'Bench',
    redirect_uris: [REDIRECT],
    grant_types: ['authorization_code', 'refresh_token'],
    token_endpoint_auth_method: 'none',
  });
  const browser = await signedIn(origin, String(client.client_id));
  const flow = () => signIn(origin, String(client.client_id), browser);
  const call = async (): Promise<number> => {
    const beganMs = performance.now();
    const { status, text } = await send(
      'POST',
      `${origin}/mcp/fast/tools/call`,
      { 'Content-Type': 'application/json', ...key },
      JSON.stringify({ name: 'echo', arguments: { message: 'hello' } }),
    );
    if (status !== 200) throw new Error(`a call was answered ${status}: ${text}`);
    return performance.now() - beganMs;
  };
  for (let index = 0; index < WARM_UP; index += 1) await Promise.all([flow(), call()]);
  const beforeUs = cpuMicroseconds(pid) ?? Number.NaN;
  const beganMs = performance.now();
  for (let index = 0; index < FLOWS; index += 1) await flow();
  const elapsedMs = performance.now() - beganMs;
  const cpuMs = ((cpuMicroseconds(pid) ?? Number.NaN) - beforeUs) / 1_000 / FLOWS;
  console.log(
    `CPU of the gateway: ${cpuMs.toFixed(1)} ms per flow, ${Math.round(60_000 / cpuMs)} flows a minute on one core`,
  );
  console.log(`one after the other: ${Math.round((60_000 * FLOWS) / elapsedMs)} flows a minute`);
  const alone = await paced(CALLS_PER_SECOND, call);
  const [beside] = await Promise.all([paced(CALLS_PER_SECOND, call), paced(FLOWS_PER_MINUTE / 60, flow)]);
  console.log(
    `p99 of ${CALLS_PER_SECOND} calls a second: ${p99(alone)} ms; beside ${FLOWS_PER_MINUTE} flows a minute ${p99(beside)} ms`,
  );
} finally {
  agent.destroy();
  await gateway.stop();
  await backend.stop();
}

/** Starts one each time it is due, whether or not the earlier ones have ended. */
async function paced<T>(perSecond: number, one: () => Promise<T>): Promise<T[]> {
  const all: Promise<T>[] = [];
  const beganMs = performance.now();
  for (let index = 0; index < SECONDS * perSecond; index += 1) {
    const waitMs = beganMs + (index * 1_000) / perSecond - performance.now();
    if (waitMs > 0) await delay(waitMs);
    all.push(one());
  }
  return Promise.all(all);
}

function p99(ms: readonly number[]): string {
  return (ms.toSorted((a, b) => a - b)[Math.ceil(ms.length * 0.99) - 1] ?? Number.NaN).toFixed(1);
}

/** The cookies of a browser after its first sign-in. */
async function signedIn(origin: string, clientId: string): Promise<string> {
  const { url, cookies } = await begin(origin, clientId, '');
  const answer = await send(
    'POST',
    `${url}/login`,
    { ...FORM, Origin: origin, Cookie: cookies },
    String(new URLSearchParams({ username: 'ada', password })),
  );
  return (
    cookiesOf(answer)
      .split('; ')
      .find((cookie) => cookie.includes('sign_in')) ?? ''
  );
}

async function signIn(origin: string, clientId: string, browser: string): Promise<void> {
  const { url, cookies, verifier } = await begin(origin, clientId, browser);
  const page = await send('GET', url, { Cookie: cookies });
  const field = (name: string) => new RegExp(`name="${name}" value="([^"]*)"`).exec(page.text)?.[1] ?? '';
  const form = { form_token: field('form_token'), user: field('user'), decision: 'allow' };
  const headers = { ...FORM, Origin: origin, Cookie: cookies };
  const allowed = await send('POST', `${url}/consent`, headers, String(new URLSearchParams(form)));
  const back = await send('GET', locationOf(allowed, origin).href, { Cookie: cookies });
  const code = locationOf(back, origin).searchParams.get('code') ?? '';
  const fields = {
    ...{ grant_type: 'authorization_code', client_id: clientId, redirect_uri: REDIRECT },
    ...{ code, code_verifier: verifier },
  };
  const { status, text } = await send(
    'POST',
    `${origin}/oauth/token`,
    FORM,
    String(new URLSearchParams(fields)),
  );
  if (status !== 200) throw new Error(`no token, but ${status}: ${text}`);
}

async function begin(origin: string, clientId: string, browser: string) {
  const verifier = randomBytes(32).toString('base64url');
  const asked = new URLSearchParams({
    ...{ response_type: 'code', client_id: clientId, redirect_uri: REDIRECT, state: 'state' },
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    ...{ code_challenge_method: 'S256', resource: `${origin}/mcp/fast` },
  });
  const answer = await send('GET', `${origin}/oauth/authorize?${asked}`, { Cookie: browser });
  const cookies = [browser, cookiesOf(answer)].filter((cookie) => cookie !== '').join('; ');
  return { url: locationOf(answer, origin).href, cookies, verifier };
}

function locationOf({ status, headers: { location }, text }: Answer, origin: string): URL {
  if (location === undefined) throw new Error(`no redirect, but ${status}: ${text.slice(-600)}`);
  return new URL(location, origin);
}

function cookiesOf({ headers }: Answer): string {
  return (headers['set-cookie'] ?? []).map((cookie) => cookie.split(';')[0]).join('; ');
}

function send(
  method: string,
  url: string,
  headers: Readonly<Record<string, string>>,
  body = '',
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const asked = request(url, {
      method,
      headers: { ...headers, 'Content-Length': Buffer.byteLength(body) },
      agent,
    });
    asked.on('response', (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk) => {
        text += chunk;
      });
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text }),
      );
      response.on('error', reject);
    });
    asked.on('error', reject).end(body);
  });
}
