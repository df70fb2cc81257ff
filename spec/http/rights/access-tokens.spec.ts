// Access tokens of MCP clients at the routes: where each works, what another sign-in could get, and what others see of a client.

import { generateKeyPairSync } from 'node:crypto';
import { SignJWT } from 'jose/jwt/sign';
import * as assert from 'uvu/assert';
import { rowOfGrant } from '../../../src/auth/grants/grant-rows.ts';
import type { Scope } from '../../../src/domain/accounts/account.ts';
import { grantPrincipalId } from '../../../src/domain/accounts/principal.ts';
import { GatewayAddress } from '../../../src/domain/accounts/resource.ts';
import { MemoryStore } from '../../../src/persistence/memory/memory-store.ts';
import { type Credentials, startWithAccounts } from '../../helpers/http/accounts.ts';
import { CHANGES_ONLY } from '../../helpers/http/anonymous-auth.ts';
import { appFor } from '../../helpers/http/app.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('access tokens at the routes');

const base = 'https://gateway.example';
const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const store = new MemoryStore();
const address = new GatewayAddress(base, () => []);
const app = appFor(test, () =>
  startWithAccounts({
    ...{ store, isPublic: true, signIn: { address }, logLevel: 'info' },
    accessTokens: {
      store: store.oauth,
      keys: { publicKeys: async () => new Map([['k', publicKey]]) },
      address,
    },
    auditSettings: { ...CHANGES_ONLY, recordsCalls: true },
  }),
);
test.before(async () => {
  await app.serve('files', 'one');
  await app.serve('other', 'two');
});

let count = 0;
/** A token of a new grant of `ada`, or of `admin`. */
async function token(
  path: string,
  scopes: readonly Scope[] = ['tools:call', 'gateway:read'],
  { granted = scopes, username = 'ada' }: { granted?: readonly Scope[]; username?: string } = {},
): Promise<Credentials & { readonly authorization: string }> {
  count += 1;
  const user = await store.accounts.findUserByName(username);
  const nowMs = Date.now();
  const grant = {
    ...{ id: `grant-${count}`, userId: user?.id ?? '', clientId: 'client-1', clientName: `Client ${count}` },
    ...{ resource: `${base}${path}`, scopes: granted, createdAt: new Date(nowMs).toISOString() },
    expiresAt: new Date(nowMs + 86_400_000).toISOString(),
  };
  await store.oauth.save(rowOfGrant(grant));
  const jwt = await new SignJWT({ client_id: 'client-1', grant_id: grant.id, scope: scopes.join(' ') })
    .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', kid: 'k' })
    .setIssuer(base)
    .setAudience(grant.resource)
    .setSubject(grant.userId)
    .setExpirationTime(Math.floor(nowMs / 1000) + 3_600)
    .sign(privateKey);
  return { authorization: `Bearer ${jwt}` };
}

interface GrantRecord {
  readonly id: string;
  readonly client_name: string;
  readonly username: string;
}

async function grantsOf(credentials: Credentials): Promise<readonly GrantRecord[]> {
  return JSON.parse((await app.as(credentials, 'GET', '/auth/grants')).text);
}

const initialize = {
  ...{ jsonrpc: '2.0', id: 1, method: 'initialize' },
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'spec', version: '1' } },
};
const accept = { accept: 'application/json, text/event-stream' };

test('work where their audience says, and nowhere else', async () => {
  const lines = [
    ...['POST /mcp', 'POST /mcp/files', 'GET /mcp/files/tools/list', 'POST /mcp/files/tools/call'],
    ...['POST /mcp/other', 'GET /mcp/other/tools/list', 'POST /mcp/unknown', 'GET /gateway/templates/files'],
    ...['GET /servers', 'GET /auth/me', 'POST /tools/call', 'GET /gateway/connect/files'],
  ];
  const bodies: Record<string, unknown> = {
    'POST /mcp/files/tools/call': { name: 'echo', arguments: { text: 'x' } },
    'POST /tools/call': { server_id: 'one', tool_name: 'echo', arguments: { text: 'x' } },
  };
  const admitted = async (credentials: Credentials) => {
    const found: string[] = [];
    for (const line of lines) {
      const [method = '', path = ''] = line.split(' ');
      const body = method === 'POST' ? { body: bodies[line] ?? initialize } : {};
      const { status } = await app.as(credentials, method, path, { ...body, headers: accept });
      if (status !== 401) found.push(line);
    }
    return found;
  };
  assert.equal(await admitted(await token('')), lines);
  assert.equal(await admitted(await token('/mcp')), ['POST /mcp']);
  assert.equal(await admitted(await token('/mcp/files')), lines.slice(1, 4));
  assert.equal(await admitted(await token('/mcp/unknown')), ['POST /mcp/unknown']);
});

test('for another resource are answered with the document of the right one', async () => {
  const answer = await app.as(await token('/mcp/files'), 'POST', '/mcp/other', { body: initialize });
  assert.is(answer.outcome, '401 INVALID_CREDENTIALS');
  const document = `${base}/.well-known/oauth-protected-resource/mcp/other`;
  assert.match(
    answer.headers.get('www-authenticate') ?? '',
    `error="invalid_token", resource_metadata="${document}"`,
  );
});

test('without a scope say which ones another sign-in could get, and nothing where it could not', async () => {
  const register = (credentials: Credentials) =>
    app.as(credentials, 'POST', '/gateway/register', { body: {} });
  const challengeOf = async (answer: ReturnType<typeof register>) => {
    const { outcome, headers } = await answer;
    assert.is(outcome, '403 INSUFFICIENT_PERMISSIONS');
    return headers.get('www-authenticate');
  };
  assert.is(await challengeOf(register(await token(''))), null);
  assert.is(await challengeOf(register(app.user)), null);
  const cli = await token('', ['gateway:read'], {
    granted: ['gateway:read', 'gateway:write'],
    username: 'admin',
  });
  assert.is(
    await challengeOf(register(cli)),
    `Bearer error="insufficient_scope", resource_metadata="${base}/.well-known/oauth-protected-resource", scope="gateway:read gateway:write"`,
  );
  const reader = await token('/mcp/files', ['gateway:read']);
  const call = app.as(reader, 'POST', '/mcp/files', { body: initialize, headers: accept });
  assert.match((await challengeOf(call)) ?? '', 'scope="gateway:read tools:call"');
});

test('of two clients of one user share no session', async () => {
  const [first, second] = [await token('/mcp/files'), await token('/mcp/files')];
  const opened = await app.as(first, 'POST', '/mcp/files', { body: initialize, headers: accept });
  const session = { 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '' };
  const ping = { body: { jsonrpc: '2.0', id: 2, method: 'ping' }, headers: { ...accept, ...session } };
  assert.is((await app.as(first, 'POST', '/mcp/files', ping)).status, 200);
  assert.is((await app.as(second, 'POST', '/mcp/files', ping)).status, 404);
  assert.is((await app.as(app.user, 'POST', '/mcp/files', ping)).status, 404);
  const { body } = await app.as(app.admin, 'GET', '/gateway/sessions');
  assert.match(JSON.stringify(body), /ada via Client \d+/);
});

test('end their sessions, open streams and themselves with their grant', async () => {
  const credentials = await token('/mcp/files');
  const opened = await app.as(credentials, 'POST', '/mcp/files', { body: initialize, headers: accept });
  const session = opened.headers.get('mcp-session-id') ?? '';
  const headers = { ...credentials, accept: 'text/event-stream', 'mcp-session-id': session };
  const stream = await fetch(`${app.url}/mcp/files`, { headers });
  assert.is(stream.status, 200);
  const ended = stream.text().catch(() => 'cut');
  const [grant] = await grantsOf(app.user);
  assert.equal([grant?.client_name, grant?.username], [`Client ${count}`, 'ada']);
  const revoked = await app.as(app.user, 'DELETE', `/auth/grants/${grant?.id}`);
  assert.is(revoked.status, 204);
  await ended;
  const ping = { body: { jsonrpc: '2.0', id: 2, method: 'ping' } };
  assert.is((await app.as(credentials, 'POST', '/mcp/files', ping)).outcome, '401 INVALID_CREDENTIALS');
});

test('what they have open is that of their grant, whose end is noticed on every node', async () => {
  const credentials = await token('/mcp/files');
  await app.as(credentials, 'POST', '/mcp/files', { body: initialize, headers: accept });
  const user = await store.accounts.findUserByName('ada');
  const open = [...app.gateway.openCallers()];
  assert.ok(open.includes(grantPrincipalId(`grant-${count}`, user?.id ?? '')), open.join());
});

test('see and end no grants but their own; users end only theirs, and keys none', async () => {
  const [first, second] = [await token(''), await token('')];
  const idOf = async (credentials: Credentials) => {
    const { id } = (await app.as(credentials, 'GET', '/auth/me')).body;
    return String(id).replace(/^grant:|@.*$/g, '');
  };
  const [own, others] = [await idOf(first), await idOf(second)];
  const listed = async (credentials: Credentials) => (await grantsOf(credentials)).map(({ id }) => id);
  const end = async (credentials: Credentials, id: string) =>
    (await app.as(credentials, 'DELETE', `/auth/grants/${id}`)).outcome;
  assert.equal(await listed(first), [own]);
  assert.is(await end(first, others), '404 NOT_FOUND');
  const key = await app.key(['gateway:read', 'tools:call']);
  assert.equal(await listed(key), []);
  assert.is(await end(key, own), '404 NOT_FOUND');
  await app.createUser('bob');
  assert.is(await end(await app.login('bob'), own), '404 NOT_FOUND');
  assert.ok((await listed(app.admin)).includes(own));
  assert.is(await end(app.admin, own), '204');
  assert.is(await end(second, others), '204');
});

test('are in no log line, event, error or audit entry, which name the client', async () => {
  const credentials = await token('/mcp/files');
  const call = { body: { name: 'echo', arguments: { text: 'x' } } };
  await app.as(credentials, 'POST', '/mcp/files/tools/call', call);
  const refused = await app.as(credentials, 'POST', '/mcp/other/tools/call', call);
  const { body } = await app.as(app.admin, 'GET', '/gateway/audit');
  const events = await app.as(app.admin, 'GET', '/events?follow=false');
  const seen = [JSON.stringify(app.log), refused.text, JSON.stringify(body), events.text].join('\n');
  const [, payload = ''] = credentials.authorization.split('.');
  assert.not.match(seen, payload);
  assert.not.match(seen, String(credentials.authorization.split('.')[2]));
  assert.match(JSON.stringify(body), `"actor_name":"ada via Client ${count}"`);
});

test('count as requests of their user', async () => {
  const remaining = async (credentials: Credentials) =>
    Number((await app.as(credentials, 'GET', '/servers')).headers.get('x-ratelimit-remaining'));
  const before = await remaining(app.user);
  assert.is(await remaining(await token('')), before - 1);
  assert.is(await remaining(await token('')), before - 2);
});

test.run();
