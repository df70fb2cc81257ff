// Clients that are described by a document at their own address: documents that lie, are too large, redirect, or lie inside the network. The
// spec serves them over HTTPS on this machine, whose network the gateway opens with auth.client_networks.

import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import * as assert from 'uvu/assert';
import {
  authorize,
  isPage,
  newProof,
  ScriptedBrowser,
  textOf,
} from '../../helpers/browsers/scripted-browser.ts';
import { folderOfAll } from '../../helpers/folder.ts';
import { CALLBACK } from '../../helpers/identity/oauth-caller.ts';
import { type OAuthHarness, startWithSignIn } from '../../helpers/identity/oauth-gateway.ts';
import { hasOpenssl, issueCertificate, makeAuthority } from '../../helpers/network/certificates.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('journey: documents of clients', { timeoutMs: 120_000 });
const openssl = test.needs(hasOpenssl(), 'no openssl here');
const folder = folderOfAll(test);
const asked: string[] = [];
let server: Server | undefined;
let base = '';
let gateway: OAuthHarness;
let closed: OAuthHarness;
test.before(async () => {
  if (!hasOpenssl()) return;
  makeAuthority(folder(), 'ca');
  issueCertificate(folder(), 'ca', 'client', 'localhost');
  const pair = { cert: readFileSync(folder('client.crt')), key: readFileSync(folder('client.key')) };
  server = createServer(pair, (request, response) => {
    const path = request.url ?? '';
    asked.push(path);
    const answer = DOCUMENTS[path];
    if (answer === undefined) response.writeHead(404).end();
    else answer(response);
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server?.once('listening', resolve));
  base = `https://localhost:${Object(server.address()).port}`;
  const env = { NODE_EXTRA_CA_CERTS: folder('ca.crt') };
  gateway = await startWithSignIn({ env: { ...env, GATEWAY_AUTH_CLIENT_NETWORKS: '127.0.0.0/8,::1/128' } });
  closed = await startWithSignIn({ env });
});
test.after(async () => {
  server?.close().closeAllConnections();
  await gateway?.remove();
  await closed?.remove();
});

type Served = (response: import('node:http').ServerResponse) => void;

function json(body: object): Served {
  return (response) =>
    response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
}

const documentOf = (path: string, more: object = {}) => ({
  ...{
    client_id: base + path,
    client_name: 'Described client',
    redirect_uris: ['http://localhost/callback'],
  },
  ...more,
});

const DOCUMENTS: Readonly<Record<string, Served>> = {
  // As Claude Code publishes it: loopback without a port.
  '/good.json': (response) =>
    json(documentOf('/good.json', { token_endpoint_auth_method: 'none' }))(response),
  '/liar.json': (response) => json(documentOf('/good.json'))(response),
  '/large.json': (response) => {
    response.writeHead(200, { 'Content-Type': 'application/json' });
    response.write(`{"client_id":"${base}/large.json","client_name":"`);
    for (let n = 0; n < 10_240 && !response.destroyed; n += 1) response.write('x'.repeat(1_024));
    response.end('"}');
  },
  '/moved.json': (response) => response.writeHead(302, { Location: `${base}/good.json` }).end(),
  '/slow.json': () => {},
  '/broken.json': (response) =>
    response.writeHead(200, { 'Content-Type': 'application/json' }).end('secret-of-the-network'),
  '/failing.json': (response) => response.writeHead(500).end('secret-of-the-network'),
};

openssl('a described client signs a user in, on any port of this computer', async () => {
  const { oauth, url } = gateway;
  const metadata = await oauth.metadata();
  assert.is(metadata.client_id_metadata_document_supported, true);
  const clientId = `${base}/good.json`;
  const redirectUri = CALLBACK.replace('127.0.0.1:43117', 'localhost:53999');
  const proof = newProof();
  const browser = new ScriptedBrowser(url);
  const back = await authorize(
    browser,
    await oauth.authorizationUrl(clientId, proof, { redirect_uri: redirectUri }),
  );
  assert.ok(back.href.startsWith(redirectUri), back.href);
  const { status, body } = await oauth.redeem(
    clientId,
    back.searchParams.get('code') ?? '',
    proof,
    redirectUri,
  );
  assert.is(status, 200, JSON.stringify(body));
  assert.is(await oauth.use(String(body.access_token)), 200);
});

for (const [path, what] of [
  ['/liar.json', 'names another client'],
  ['/large.json', 'has 10 MB'],
  ['/moved.json', 'leads elsewhere'],
  ['/slow.json', 'never comes'],
  ['/broken.json', 'is no document'],
  ['/failing.json', 'cannot be had'],
  ['/none.json', 'does not exist'],
] as const) {
  openssl(`a document that ${what} is one page that names the client, and quotes nothing`, async () => {
    const { status, text } = await pageFor(gateway, base + path);
    assert.ok(isFault(status), String(status));
    assert.match(text, base + path);
    assert.not.match(text, /secret-of-the-network|x{100}/);
    const count = asked.filter((each) => each === path).length;
    await pageFor(gateway, base + path);
    assert.is(asked.filter((each) => each === path).length, count, 'a failure is remembered');
  });
}

openssl('an address inside the network is not asked, and the page does not tell what is there', async () => {
  asked.length = 0;
  const pages = new Set<string>();
  for (const clientId of [
    ...[`${base}/good.json`, `${base}/none.json`, 'https://127.0.0.1:1/x.json', 'https://[::1]:1/x.json'],
    ...['https://169.254.169.254/latest/x.json', 'https://10.0.0.1/x.json'],
  ]) {
    const { status, text } = await pageFor(closed, clientId);
    assert.ok(isFault(status), `${status} for ${clientId}`);
    pages.add(text.replaceAll(clientId, '<client>').replaceAll(new URL(clientId).host, '<host>'));
  }
  assert.equal(asked, []);
  assert.is(pages.size, 1, [...pages].join('\n'));
});

openssl('an address without https, or with a user in it, is no client', async () => {
  for (const clientId of [
    base.replace('https', 'http'),
    `${base.replace('//', '//me@')}/good.json`,
    `${base}/good.json#x`,
  ]) {
    const { status } = await pageFor(gateway, clientId);
    assert.ok(status >= 400 && status < 500, `${status} for ${clientId}`);
  }
});

test.run();

function isFault(status: number): boolean {
  return (status >= 400 && status < 500) || status === 502 || status === 503;
}

async function pageFor({ oauth, url }: OAuthHarness, clientId: string) {
  const redirectUri = 'http://localhost:53999/callback';
  const at = await new ScriptedBrowser(url).open(
    await oauth.authorizationUrl(clientId, newProof(), { redirect_uri: redirectUri }),
  );
  assert.ok(isPage(at), `sent to ${at}`);
  if (!isPage(at)) throw new Error('unreachable');
  return { status: at.status, text: textOf(at) };
}
