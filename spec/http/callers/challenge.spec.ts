// How a client that knows only an address learns where to sign in: the header of a 401, and the documents that it names.

import * as assert from 'uvu/assert';
import { GatewayAddress } from '../../../src/domain/accounts/resource.ts';
import { head, sendRaw } from '../../helpers/clients/raw-http.ts';
import { startWithAccounts } from '../../helpers/http/accounts.ts';
import { type Answer, appFor } from '../../helpers/http/app.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('where clients sign in');

const base = 'https://gateway.example';
const ports: number[] = [];
const there = appFor(test, () =>
  startWithAccounts({ isPublic: true, signIn: { address: new GatewayAddress(base, () => []) } }),
);
const here = appFor(test, () =>
  startWithAccounts({
    ...{ logLevel: 'warn', allowedHosts: ['lan.example'] },
    signIn: { address: new GatewayAddress(undefined, () => ports) },
  }),
);
const theirs = ['https://login.example', 'http://127.0.0.1:9000'];
const both = appFor(test, () =>
  startWithAccounts({ signIn: { address: new GatewayAddress(base, () => []), issuers: theirs } }),
);
const onlyTheirs = appFor(test, () =>
  startWithAccounts({
    signIn: { address: new GatewayAddress(base, () => []), issuers: theirs, hasOwnServer: false },
  }),
);
const none = appFor(test, () => startWithAccounts());
test.before(() => {
  ports.push(here.port);
  return there.serve('files', 'one');
});

const challengeOf = ({ status, headers }: Answer) => `${status} ${headers.get('www-authenticate')}`;
const document = (path: string) => `resource_metadata="${base}/.well-known/oauth-protected-resource${path}"`;
const message = { jsonrpc: '2.0', id: 1, method: 'tools/list' };

test('names the document of its own path in the 401 of each path, whether the template exists or not', async () => {
  const scope = 'scope="tools:call gateway:read"';
  const asked = [
    ...[['POST /mcp', '/mcp'] as const, ['GET /mcp', '/mcp'] as const, ['GET /mcp/sse', '/mcp'] as const],
    ...[['POST /mcp/files', '/mcp/files'] as const, ['POST /mcp/unknown', '/mcp/unknown'] as const],
    ['POST /mcp/files/tools/call', '/mcp/files'] as const,
    ...[['GET /mcp/files/tools/list', '/mcp/files'] as const, ['GET /servers', ''] as const],
  ];
  for (const [line, path] of asked) {
    const [method = '', target = ''] = line.split(' ');
    const answer = await there.ask(method, target, method === 'POST' ? { body: message } : {});
    assert.is(challengeOf(answer), `401 Bearer ${document(path)}, ${scope}`, line);
  }
  const write = await there.ask('POST', '/gateway/register', { body: {} });
  const scopes = 'scope="tools:call gateway:read gateway:write"';
  assert.is(challengeOf(write), `401 Bearer ${document('')}, ${scopes}`);
});

test('says so, too, for credentials that are empty, malformed, unknown or expired, and for a token in the query', async () => {
  const invalid = `401 Bearer error="invalid_token", ${document('/mcp/files')}, scope="tools:call gateway:read"`;
  const wrong = ['Bearer', 'Bearer ', 'Bearer x', 'Basic YTpi', `Bearer ${'x'.repeat(5_000)}`];
  for (const authorization of [...wrong, (await there.expired()).authorization ?? '']) {
    const answer = await there.ask('POST', '/mcp/files', { body: message, headers: { authorization } });
    assert.is(challengeOf(answer), invalid, authorization.slice(0, 20));
  }
  const token = String(there.user.authorization).slice('Bearer '.length);
  const inQuery = await there.ask('POST', `/mcp/files?access_token=${token}`, { body: message });
  assert.is(inQuery.outcome, '401 AUTHENTICATION_REQUIRED');
});

test('describes each resource, without saying which templates exist', async () => {
  const documentOf = async (path: string) =>
    (await there.ask('GET', `/.well-known/oauth-protected-resource${path}`)).body;
  const common = {
    authorization_servers: [base],
    scopes_supported: ['tools:call', 'gateway:read'],
    bearer_methods_supported: ['header'],
  };
  assert.equal(await documentOf(''), { resource: base, ...common, resource_name: 'stagedoor' });
  const all = { resource: `${base}/mcp`, ...common, resource_name: 'stagedoor: all templates' };
  assert.equal(await documentOf('/mcp'), all);
  assert.equal(await documentOf('/mcp/'), all);
  for (const template of ['files', 'unknown'])
    assert.equal(await documentOf(`/mcp/${template}`), {
      ...{ resource: `${base}/mcp/${template}`, ...common },
      resource_name: `stagedoor: ${template}`,
    });
  assert.is((await documentOf('/mcp/Wrong')).error_code, 'TEMPLATE_NOT_FOUND');
});

/** Sends a request by hand, which may have any Host. */
async function byName(host: string, line: string): Promise<string> {
  return sendRaw(here.port, head(line, { Connection: 'close', Host: host, 'Content-Length': '0' }));
}

test('answers by the name of the request on this machine', async () => {
  for (const host of [`localhost:${here.port}`, `[::1]:${here.port}`, `127.0.0.1:${here.port}`]) {
    assert.match(await byName(host, 'POST /mcp'), `resource_metadata="http://${host}/.well-known/`);
    const found = await byName(host, 'GET /.well-known/oauth-protected-resource/mcp');
    assert.match(found, `"resource":"http://${host}/mcp"`);
    assert.match(found, `"authorization_servers":["http://127.0.0.1:${here.port}"]`);
  }
});

test('says nothing under another name, and tells the operator once what to add', async () => {
  for (const host of ['lan.example', 'lan.example:8080', 'localhost:1']) {
    assert.match(await byName(host, 'POST /mcp'), /^HTTP\/1.1 401 [\s\S]*\r\nWWW-Authenticate: Bearer\r\n/);
    assert.match(await byName(host, 'GET /.well-known/oauth-protected-resource'), /^HTTP\/1.1 404 /);
  }
  const lines = here.log.filter(({ msg }) => /public_url/.test(String(msg)));
  assert.equal(
    lines.map(({ msg }) => msg),
    [
      'MCP clients that reach the gateway as lan.example cannot sign in. If this is its address, add to gateway.yaml: public_url: https://lan.example',
    ],
  );
});

test('ignores a forged Host where there is a public address', async () => {
  const text = await sendRaw(
    there.port,
    head('POST /mcp', { Connection: 'close', Host: 'evil.example', 'Content-Length': '0' }),
  );
  assert.match(text, document('/mcp'));
  assert.not.match(text, 'evil.example');
});

test('has neither documents nor more than "Bearer" where clients cannot sign in', async () => {
  assert.is(challengeOf(await none.ask('POST', '/mcp', { body: message })), '401 Bearer');
  assert.is((await none.ask('GET', '/.well-known/oauth-protected-resource')).outcome, '404 NOT_FOUND');
});

test('lets pages of any origin read how to sign in, but call with credentials only from allowed ones', async () => {
  const origin = 'https://inspector.example';
  const allowed = async (method: string, path: string, headers: Record<string, string> = {}) => {
    const { status, headers: answered } = await here.ask(method, path, { headers: { origin, ...headers } });
    assert.is(answered.get('access-control-allow-credentials'), null);
    return `${status} ${answered.get('access-control-allow-origin')}`;
  };
  const preflight = (header: string) => ({
    'access-control-request-method': 'POST',
    'access-control-request-headers': header,
  });
  assert.is(await allowed('GET', '/.well-known/oauth-protected-resource/mcp'), '200 *');
  for (const path of ['/oauth/register', '/oauth/token', '/oauth/revoke', '/oauth/jwks'])
    assert.is(await allowed('OPTIONS', path, preflight('authorization, content-type')), '204 *');
  for (const path of ['/mcp', '/mcp/files', '/mcp/unknown']) {
    assert.is(await allowed('POST', path), '401 *');
    assert.is(await allowed('OPTIONS', path, preflight('content-type, mcp-protocol-version')), '204 *');
    assert.is(await allowed('OPTIONS', path, preflight('content-type, Authorization')), '403 null');
    assert.is(await allowed('POST', path, here.user), '403 null');
    assert.is(await allowed('POST', path, { cookie: 'stagedoor_session=a.b.c' }), '401 *');
  }
  for (const path of ['/servers', '/oauth/authorize', '/auth/login', '/mcp/files/tools/call'])
    assert.is(await allowed('POST', path), '403 null', path);
  assert.match(await byName('evil.example', 'POST /mcp'), /^HTTP\/1.1 403 /);
});

test('names other issuers after ours, and alone when ours is off', async () => {
  const serversAt = async (app: typeof both) => {
    const { body } = await app.ask('GET', '/.well-known/oauth-protected-resource/mcp/files');
    return Object(body).authorization_servers;
  };
  assert.equal(await serversAt(both), [base, ...theirs]);
  assert.equal(await serversAt(onlyTheirs), theirs);
  assert.match(
    challengeOf(await onlyTheirs.ask('POST', '/mcp/files', { body: message })),
    document('/mcp/files'),
  );
});

test.run();
