// A reader of /docs tries every operation at the demo with its example values: each request example of the API description is
// sent unchanged and answered by a success of its description. Requests that need other values are in EXCEPTIONS.

import * as assert from 'uvu/assert';
import { type OAuthBackend, startOAuthBackend } from '../../fixtures/oauth-backend.ts';
import { type AnswerCheck, answerCheck } from '../../helpers/api/answer-check.ts';
import { PASSWORD } from '../../helpers/http/accounts.ts';
import { Browser, register, tokensOf } from '../../helpers/identity/sign-in.ts';
import { AS_IT_COMES, Program } from '../../helpers/programs/program.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('journey: examples of the API description', { timeoutMs: 90_000 });
const ADMIN = { username: 'admin', password: PASSWORD };
const demo = new Program(['gateway', 'start', '--demo', '--port', '0'], {
  env: {
    ...{ ...AS_IT_COMES, GATEWAY_ADMIN_PASSWORD: ADMIN.password },
    // Asked at a sign-in only.
    GATEWAY_AUTH_PROVIDERS: JSON.stringify([
      {
        ...{ issuer: 'https://login.example.com', client_id: 'stagedoor', client_secret: 'unused' },
        ...{ label: 'Example', everyone: { role: 'user' } },
      },
    ]),
  },
});
const ended = new AbortController();
let backend: OAuthBackend | undefined;
test.after(async () => {
  ended.abort();
  await backend?.close();
  return demo.remove();
});

type Texts = Readonly<Record<string, string>>;

/** Values that replace the examples of an operation, or an action before it, and the reason. */
interface Exception {
  readonly because: string;
  /** Values of the path and the query, by name. */
  readonly values?: () => Promise<Texts>;
  readonly headers?: () => Promise<Texts>;
  readonly first?: () => Promise<void>;
}

const KEY: Exception = {
  because: 'the gateway chooses the ids of keys',
  values: async () => ({ key_id: await idOf('/auth/api-keys', 'nightly build') }),
};
const USER: Exception = {
  because: 'the gateway chooses the ids of users',
  values: async () => ({ user_id: await idOf('/auth/users', 'ada') }),
};
const OFFERED: Exception = {
  because: 'names in the registry begin with the host of the gateway',
  values: async () => ({ registry_name: '1.0.0.127/everything' }),
};
const STORED: Exception = {
  because: 'the folder of the demo defines the template of the example',
  values: async () => ({ template: 'weather' }),
};
const EXCEPTIONS: Readonly<Record<string, Exception>> = {
  'POST /mcp/{template}/messages': {
    because: 'the gateway chooses the ids of connections',
    values: async () => ({ sessionId: await openConnection('/mcp/everything/sse') }),
  },
  'DELETE /mcp': session('/mcp'),
  'DELETE /mcp/{template}': session('/mcp/everything'),
  'DELETE /mcp/{template}/mcp': session('/mcp/everything/mcp'),
  'DELETE /gateway/sessions/{session_id}': {
    because: 'the gateway chooses the ids of sessions, and lists only their fingerprints',
    values: async () => ({ session_id: await openSession() }),
  },
  'GET /auth/users/{user_id}': USER,
  'PATCH /auth/users/{user_id}': USER,
  'DELETE /auth/users/{user_id}': USER,
  'POST /auth/users/{user_id}/link': USER,
  'DELETE /auth/users/{user_id}/link': USER,
  'PATCH /auth/api-keys/{key_id}': KEY,
  'DELETE /auth/api-keys/{key_id}': KEY,
  'DELETE /auth/clients/{client_id}': {
    because: 'the gateway chooses the ids of clients',
    values: async () => {
      const [client] = Object(await (await asAdmin('GET', '/auth/clients')).json());
      return { client_id: String(client.client_id) };
    },
  },
  'DELETE /auth/grants/{grant_id}': {
    because: 'a grant is made by the consent of a user',
    values: async () => {
      const url = await demo.url();
      await tokensOf(url, await register(url), { username: 'admin' });
      const [grant] = Object(await (await asAdmin('GET', '/auth/grants')).json());
      return { grant_id: String(grant.id) };
    },
  },
  'POST /gateway/connections': {
    because: 'the instance of the example needs a server that wants OAuth',
    first: async () => {
      backend = await startOAuthBackend();
      backend.account = 'office';
      const auth = { mode: 'oauth', who: 'shared' };
      const input = { template_name: 'mail', id: 'mail-1', endpoint: backend.url, auth };
      const body = JSON.stringify(input);
      const headers = { 'content-type': 'application/json' };
      const registered = await asAdmin('POST', '/gateway/register', { headers, body });
      assert.is(registered.status, 201, await registered.text());
    },
  },
  'DELETE /gateway/connections/{connection_id}': {
    because: 'a connection is made by the consent of a user at its server',
    values: async () => {
      const headers = { 'content-type': 'application/json' };
      const body = JSON.stringify({ template: 'mail', instance_id: 'mail-1' });
      const made = await asAdmin('POST', '/gateway/connections', { headers, body });
      await connect(Object(await made.json()).url);
      const [connection] = Object(await (await asAdmin('GET', '/gateway/connections')).json());
      return { connection_id: String(connection.id) };
    },
  },
  'DELETE /gateway/deregister/{template}/{instance_id}': {
    because: 'the instance of the example is gone: it was the server of DELETE /servers/{server_id}',
    values: async () => ({ instance_id: 'remote-1' }),
  },
  'GET /v0.1/servers/{registry_name}/versions/{version}': OFFERED,
  'PUT /gateway/templates/{template}/definition': STORED,
  'GET /gateway/templates/{template}/definition': STORED,
  'DELETE /gateway/templates/{template}/definition': STORED,
  'DELETE /gateway/templates/{template}': {
    because: 'only a template without instances can be deleted',
    first: async () => {
      for (const { template_name, server_id } of await listed('/servers')) {
        if (template_name === 'everything') await asAdmin('DELETE', `/servers/${server_id}`);
      }
    },
  },
};

/** Run after all others, in this order: operations that need what others created, or that remove something. */
const LAST: readonly string[] = [
  'GET /gateway/views/{view}', // of the view that PUT makes
  'GET /gateway/views/{view}/preview',
  'GET /gateway/views/{view}/tools',
  'POST /gateway/views/{view}/tools/approve',
  'DELETE /gateway/views/{view}',
  'POST /auth/login', // of the user that POST /auth/users makes
  'POST /gateway/instances/{template}/{instance_id}/restart',
  'DELETE /auth/clients/{client_id}',
  'DELETE /gateway/connections/{connection_id}',
  'DELETE /auth/grants/{grant_id}',
  'POST /auth/users/{user_id}/link',
  'DELETE /auth/users/{user_id}/link',
  'DELETE /auth/users/{user_id}',
  'PATCH /auth/api-keys/{key_id}',
  'DELETE /auth/api-keys/{key_id}',
  'DELETE /servers/{server_id}',
  'DELETE /gateway/deregister/{template}/{instance_id}',
  'DELETE /gateway/templates/{template}/definition',
  'DELETE /gateway/templates/{template}',
  'POST /auth/logout', // ends the token of all
];

test('are all answered by the demo with a success of their description', async () => {
  await demo.sees(/5 of 5 servers are healthy/, 60_000);
  const login = await ask('POST', '/auth/login', { body: new URLSearchParams(ADMIN) });
  authorization = `Bearer ${Object(await login.json()).access_token}`;
  const document = Object(await (await asAdmin('GET', '/openapi.json')).json());

  const operations = operationsOf(document);
  const names = operations.map(({ name }) => name);
  const found = [...Object.keys(EXCEPTIONS), ...LAST].filter((name) => !names.includes(name));
  assert.equal(found, []);
  const check = answerCheck(document);
  const problems: string[] = [];
  for (const operation of operations.toSorted((a, b) => LAST.indexOf(a.name) - LAST.indexOf(b.name))) {
    const issues = await run(operation, check).catch((thrown: unknown) => [String(thrown)]);
    problems.push(...issues.map((issue) => `${operation.name}: ${issue}`));
  }
  assert.equal(problems, []);
});

/** In a browser, as the admin. */
async function connect(address: string): Promise<void> {
  const browser = new Browser(await demo.url());
  const page = await browser.signIn(await browser.open(address), 'admin');
  const there = await browser.submit(page, `Continue to ${new URL(backend?.url ?? '').host}`);
  const answer = await fetch(there.url, { redirect: 'manual' });
  await browser.open(answer.headers.get('location') ?? '');
}

interface Operation {
  readonly name: string;
  readonly method: string;
  readonly path: string;
  readonly parameters: readonly {
    readonly name: string;
    readonly in: string;
    readonly required: boolean;
    readonly example?: unknown;
  }[];
  /** By media type; empty for an operation without a body. */
  readonly bodies: readonly (readonly [type: string, content: { readonly example?: unknown }])[];
  /** Media types of its successes. */
  readonly accept: readonly string[];
  readonly isMcp: boolean;
}

function operationsOf(document: object): Operation[] {
  return Object.entries(Object(document).paths).flatMap(([path, item]) =>
    Object.entries(Object(item)).map(([key, value]) => {
      const method = key.toUpperCase();
      const { parameters = [], requestBody, responses, tags } = Object(value);
      return {
        ...{ name: `${method} ${path}`, method, path, parameters, isMcp: tags.includes('MCP') },
        bodies: Object.entries(requestBody?.content ?? {}).map(([type, content]) => [type, Object(content)]),
        accept: Object.keys(responses[200]?.content ?? {}),
      };
    }),
  );
}

/** Sends each example of an operation. Returns the faults of the answers. */
async function run(operation: Operation, check: AnswerCheck): Promise<string[]> {
  const { name, method, parameters, bodies, accept, isMcp } = operation;
  const { values, headers, first } = EXCEPTIONS[name] ?? {};
  await first?.();
  const given = { ...examplesOf(parameters), ...(await values?.()) };
  const missing = parameters.filter((parameter) => parameter.required && !(parameter.name in given));
  if (missing.length > 0) return missing.map((parameter) => `no example of "${parameter.name}"`);
  const target = targetOf(operation, given);
  const issues: string[] = [];
  for (const [type, { example }] of bodies.length === 0 ? NO_BODY : bodies) {
    const response = await asAdmin(method, target, {
      headers: {
        // MCP clients accept both media types; other callers get the first.
        accept: (isMcp ? accept.join() : accept[0]) || '*/*',
        ...(type === undefined ? {} : { 'content-type': type }),
        ...(await headers?.()),
      },
      ...(type === undefined ? {} : { body: encoded(type, example) }),
    });
    const isEndless = accept.length === 1 && accept[0] === 'text/event-stream' && response.ok;
    const body = isEndless ? await firstChunk(response) : Buffer.from(await response.arrayBuffer());
    const { status } = response;
    issues.push(...check({ method, target, status, headers: new Map(response.headers), body }));
    if (!response.ok || saysItFailed(response, body)) issues.push(`${status} ${body.toString()}`);
  }
  return issues;
}

const NO_BODY: readonly (readonly [undefined, { readonly example?: unknown }])[] = [[undefined, {}]];

function examplesOf(parameters: Operation['parameters']): Texts {
  return Object.fromEntries(
    parameters.flatMap(({ name, example }) => (example === undefined ? [] : [[name, String(example)]])),
  );
}

function targetOf({ path, parameters }: Operation, values: Texts): string {
  const named = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(values[name] ?? ''));
  const query = parameters.flatMap(({ name, in: place }) =>
    place === 'query' && values[name] !== undefined ? [`${name}=${encodeURIComponent(values[name])}`] : [],
  );
  return query.length === 0 ? named : `${named}?${query.join('&')}`;
}

function encoded(type: string, example: unknown): string | URLSearchParams {
  return type === 'application/json' ? JSON.stringify(example) : new URLSearchParams(Object(example));
}

/** Errors of tools and of JSON-RPC have successful statuses. */
function saysItFailed(response: Response, body: Buffer): boolean {
  if (!response.headers.get('content-type')?.startsWith('application/json')) return false;
  const { isError, error } = Object(JSON.parse(body.toString()));
  return isError === true || error !== undefined;
}

let authorization = '';

function asAdmin(method: string, target: string, init: RequestInit = {}): Promise<Response> {
  return ask(method, target, { ...init, headers: { ...Object(init.headers), authorization } });
}

async function ask(method: string, target: string, init: RequestInit): Promise<Response> {
  return fetch(`${await demo.url()}${target}`, { ...init, method, signal: ended.signal });
}

async function firstChunk(response: Response): Promise<Buffer> {
  const reader = response.body?.getReader();
  const { value = new Uint8Array(0) } = (await reader?.read()) ?? {};
  await reader?.cancel();
  return Buffer.from(value);
}

async function idOf(path: string, name: string): Promise<string> {
  const record = (await listed(path)).find((one) => one.username === name || one.name === name);
  return record?.id ?? '';
}

async function listed(path: string): Promise<readonly Texts[]> {
  return Object(await (await asAdmin('GET', path)).json());
}

function session(path: string): Exception {
  return {
    because: 'the gateway chooses the ids of sessions',
    headers: async () => {
      const clientInfo = { name: 'spec', version: '1.0.0' };
      const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo };
      const answer = await asAdmin('POST', path, {
        headers: { accept: 'application/json, text/event-stream', 'content-type': 'application/json' },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params }),
      });
      await answer.text();
      return { 'mcp-session-id': answer.headers.get('mcp-session-id') ?? '' };
    },
  };
}

/** Opens a session, and reads its fingerprint in the list. */
async function openSession(): Promise<string> {
  await session('/mcp').headers?.();
  const { sessions } = Object(await (await asAdmin('GET', '/gateway/sessions')).json());
  return sessions[0].id;
}

/** Opens a stream of HTTP+SSE that stays open, and reads its id. */
async function openConnection(path: string): Promise<string> {
  const stream = await asAdmin('GET', path, { headers: { accept: 'text/event-stream' } });
  const { value } = (await stream.body?.getReader().read()) ?? {};
  const [, id = ''] = /sessionId=([^\s&]+)/.exec(Buffer.from(value ?? []).toString()) ?? [];
  return id;
}

test.run();
