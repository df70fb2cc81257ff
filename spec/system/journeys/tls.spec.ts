// A gateway with a certificate of its own: every door over HTTPS, also with several workers, and the command line reaches it. The
// authority is that of the spec, which programs of Node know by NODE_EXTRA_CA_CERTS.

import { chmod, readFile } from 'node:fs/promises';
import { request } from 'node:https';
import { text } from 'node:stream/consumers';
import * as assert from 'uvu/assert';
import { newKey } from '../../../src/auth/accounts/api-keys.ts';
import { everythingProgram } from '../../fixtures/everything-server.ts';
import { becomes } from '../../helpers/eventually.ts';
import { folderOfAll } from '../../helpers/folder.ts';
import { hasOpenssl, issueCertificate, makeAuthority } from '../../helpers/network/certificates.ts';
import { freePort } from '../../helpers/network/free-port.ts';
import { GUARDED, PASSWORD } from '../../helpers/programs/mcp-program.ts';
import { Program, runProgram } from '../../helpers/programs/program.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('journey: TLS of its own', { timeoutMs: 120_000 });
const openssl = test.needs(hasOpenssl(), 'no openssl here');
const folder = folderOfAll(test);
const FILES = () => ({ GATEWAY_TLS_CERT: folder('door.crt'), GATEWAY_TLS_KEY: folder('door.key') });
const started: Program[] = [];
test.before(() => {
  if (!hasOpenssl()) return;
  makeAuthority(folder(), 'ca');
  issueCertificate(folder(), 'ca', 'door', '127.0.0.1');
  issueCertificate(folder(), 'ca', 'other');
});
test.after.each(async () => {
  for (const program of started.splice(0)) await program.remove();
});

for (const workers of [1, 2]) {
  openssl(`every door speaks HTTPS, with ${workers === 1 ? 'one process' : 'two workers'}`, async () => {
    const gateway = start({ GATEWAY_DATABASE_URL: 'sqlite:///gateway.db', GATEWAY_WORKERS: String(workers) });
    const url = await gateway.url();
    assert.match(url, /^https:\/\/127\.0\.0\.1:\d+$/);
    if (workers > 1) await gateway.complains(/worker 2 is ready/);
    const login = await ask(url, 'POST /auth/login', {
      headers: { 'X-Stagedoor-Console': '1', Origin: url },
      body: { username: 'admin', password: PASSWORD },
    });
    assert.is(login.status, 200, login.text);
    assert.match(String(login.headers['set-cookie']), /^stagedoor_session_\d+=\S+; HttpOnly; .*; Secure$/);
    const headers = { Authorization: `Bearer ${JSON.parse(login.text).access_token}` };
    const body = { template_name: 'tools', instance: { id: 'one', ...everythingProgram() } };
    const made = await ask(url, 'POST /gateway/register?wait=20', { headers, body });
    assert.is(made.status, 201, made.text);
    const call = { name: 'test_simple_text', arguments: {} };
    for (let n = 0; n < 2 * workers; n += 1) {
      const rest = await ask(url, 'POST /mcp/tools/tools/call', { headers, body: call });
      assert.is(rest.status, 200, rest.text);
      const modern = await ask(url, 'POST /mcp/tools', {
        headers: { ...headers, ...MODERN },
        body: MODERN_LIST,
      });
      assert.match(modern.text, '"test_simple_text"');
    }
    assert.match((await ask(url, 'GET /console/', {})).text, '<title>');
    const snippet = await ask(url, 'GET /gateway/connect/tools', { headers });
    assert.match(snippet.text, `${url}/mcp/tools`, 'what it says about itself');
  });
}

openssl(
  'clients sign in over it: the issuer is the https address, and the cookies are for https only',
  async () => {
    const gateway = start({});
    const url = await gateway.url();
    const metadata = JSON.parse((await ask(url, 'GET /.well-known/oauth-authorization-server', {})).text);
    assert.equal([metadata.issuer, metadata.token_endpoint], [url, `${url}/oauth/token`]);
    const refused = await ask(url, 'POST /mcp', { body: {} });
    assert.match(String(refused.headers['www-authenticate']), `resource_metadata="${url}/.well-known/`);
    const client = await ask(url, 'POST /oauth/register', {
      body: { redirect_uris: ['http://127.0.0.1/callback'] },
    });
    assert.is(client.status, 201, client.text);
    const query = new URLSearchParams({
      ...{ response_type: 'code', client_id: JSON.parse(client.text).client_id, scope: 'tools:call' },
      ...{
        redirect_uri: 'http://127.0.0.1:1/callback',
        code_challenge_method: 'S256',
        code_challenge: 'x'.repeat(43),
      },
    });
    const begun = await ask(url, `GET /oauth/authorize?${query}`, {});
    const cookies = [begun.headers['set-cookie'] ?? []].flat();
    assert.ok(cookies.length > 0, begun.text);
    for (const cookie of cookies) assert.match(cookie, /^__Secure-.*; secure/i);
  },
);

openssl('the command line reaches it with the authority, and says what is missing without', async () => {
  const gateway = start({});
  const url = await gateway.url();
  const status = (env: Record<string, string>) =>
    runProgram(['gateway', 'status'], { env: { STAGEDOOR_URL: url, ...env } });
  const known = await status({ NODE_EXTRA_CA_CERTS: folder('ca.crt') });
  assert.is(known.code, 0, known.err);
  assert.match(known.out, 'healthy');
  const unknown = await status({});
  assert.is(unknown.code, 1);
  assert.match(unknown.err, /an authority that is not known here .*NODE_EXTRA_CA_CERTS=<file>/);
  const plain = await status({ STAGEDOOR_URL: url.replace('https:', 'http:') });
  assert.match(plain.err, `speaks HTTPS; name it as ${url}`);
  const withKey = await status({
    STAGEDOOR_URL: url.replace('https:', 'http:'),
    STAGEDOOR_API_KEY: newKey().key,
  });
  assert.match(withKey.err, /HTTPS; name it as https:|did not prove/);
  const named = await status({
    NODE_EXTRA_CA_CERTS: folder('ca.crt'),
    STAGEDOOR_URL: url.replace('127.0.0.1', 'localhost'),
  });
  assert.match(named.err, /a certificate for another name \(127\.0\.0\.1\); name the gateway as/);
});

openssl('a gateway in the background is found by https, and so it is by the doctor', async () => {
  const port = String(await freePort());
  const files = { ...FILES(), GATEWAY_PORT: port, MCP_GATEWAY_PORT: port };
  const env = { ...GUARDED, ...files, HOME: folder(), GATEWAY_DATABASE_URL: '' };
  const trusted = { ...env, NODE_EXTRA_CA_CERTS: folder('ca.crt') };
  const run = (words: string[], variables: Record<string, string>) =>
    runProgram(words, { env: variables, folder: folder() });
  const begun = await run(['gateway', 'start', '--background', '--port', port], env);
  try {
    assert.is(begun.code, 0, begun.err);
    const status = await run(['gateway', 'status'], trusted);
    assert.match(status.out, 'healthy', status.err);
    const login = await run(['gateway', 'login', 'admin', '--password', PASSWORD], trusted);
    assert.match(login.out, `admin is logged in at https://127.0.0.1:${port}`, login.err);
    const users = await run(['user', 'list'], trusted);
    assert.match(users.err, `using the gateway https://127.0.0.1:${port}`);
    const doctor = await run(['doctor', '--port', port], trusted);
    assert.match(doctor.out, `127.0.0.1:${port} is used by a gateway that is running`);
    assert.match(doctor.out, /door\.crt is valid until \d{4}-/);
    assert.match(doctor.out, `the same as at https://127.0.0.1:${port}`);
    const unknown = await run(['gateway', 'status'], env);
    assert.is(unknown.code, 1);
    assert.match(unknown.err, /an authority that is not known here .*NODE_EXTRA_CA_CERTS=<file>/);
    const worried = await run(['doctor', '--port', port], env);
    assert.match(worried.out, `127.0.0.1:${port} is used by a gateway that is running`);
    assert.match(worried.out, /an authority that is not known here/);
    const logout = await run(['gateway', 'logout'], trusted);
    assert.match(logout.out, `logged out of https://127.0.0.1:${port}`);
  } finally {
    await run(['gateway', 'stop'], env);
  }
});

openssl('the doctor names a pair that cannot be used', async () => {
  const { code, out } = await runProgram(['doctor'], {
    env: { ...GUARDED, ...FILES(), GATEWAY_TLS_KEY: folder('third.key') },
  });
  assert.is(code, 1);
  assert.match(out, /third\.key cannot be used: there is no such file/);
});

openssl('a pair that cannot be used ends the start with one line', async () => {
  const refusal = async (env: Record<string, string>) => {
    const { code, err } = await runProgram(['gateway', 'start', '--port', '0'], { env });
    assert.is(code, 2);
    return err.trim();
  };
  assert.match(
    await refusal({ GATEWAY_TLS_CERT: folder('door.crt') }),
    /^[^\n]*tls: cert and key belong together; set both or none$/,
  );
  const mixed = { ...FILES(), GATEWAY_TLS_KEY: folder('other.key') };
  assert.match(await refusal(mixed), /^[^\n]*door\.crt and .* cannot be used as certificate and key [^\n]*$/);
  await chmod(folder('other.key'), 0o644);
  assert.match(await refusal(mixed), /^[^\n]*other users can read or change it; run "chmod 600" on it$/);
});

openssl('the key is protected from commands like other secrets', async () => {
  const gateway = start({ GATEWAY_AUTH_ENABLED: 'false' });
  const url = await gateway.url();
  const instance = { id: 'one', command: process.execPath, args: ['-p', '1', folder('door.key')] };
  const refused = await ask(url, 'POST /gateway/register', { body: { template_name: 'x', instance } });
  assert.is(refused.status, 400, refused.text);
  assert.match(refused.text, 'the private key of this gateway');
});

openssl(
  'passwords on a public address without TLS are named at each start, with TLS they are not',
  async () => {
    const open = { GATEWAY_HOST: '0.0.0.0', MCP_GATEWAY_HOST: '0.0.0.0' };
    const plain = start({ ...open, GATEWAY_TLS_CERT: '', GATEWAY_TLS_KEY: '' });
    await plain.complains(/PASSWORDS AND KEYS CROSS THE NETWORK UNENCRYPTED: .* 0\.0\.0\.0 without TLS/);
    const secure = start(open);
    assert.match((await secure.sees(/listening on (.*)/))[1] ?? '', /^0\.0\.0\.0:\d+ \(https:/);
    await becomes(async () => secure.out.includes('console: https://127.0.0.1'), true);
    assert.not.match(secure.err, 'UNENCRYPTED');
  },
);

test.run();

const MODERN = {
  'MCP-Protocol-Version': '2026-07-28',
  'Mcp-Method': 'tools/list',
  Accept: 'application/json, text/event-stream',
};
const MODERN_LIST = {
  ...{ jsonrpc: '2.0', id: 1, method: 'tools/list' },
  params: {
    _meta: {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'spec', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': {},
    },
  },
};

function start(env: Record<string, string>): Program {
  const program = new Program(['gateway', 'start', '--port', '0'], {
    env: { ...GUARDED, ...FILES(), ...env },
  });
  started.push(program);
  return program;
}

interface Asked {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: object;
}

/** A new connection each, so that workers take turns. */
async function ask(url: string, line: string, { headers = {}, body }: Asked) {
  const [method = '', path = ''] = line.split(' ');
  const ca = await readFile(folder('ca.crt'));
  const content = { 'Content-Type': 'application/json', ...headers };
  const { promise, resolve, reject } = Promise.withResolvers<import('node:http').IncomingMessage>();
  request(`${url}${path}`, { method, headers: content, ca, agent: false }, resolve)
    .once('error', reject)
    .end(body === undefined ? undefined : JSON.stringify(body));
  const response = await promise;
  const { statusCode: status, headers: received } = response;
  return { status, headers: received, text: await text(response) };
}
