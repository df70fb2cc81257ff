// Clients that are named by the URL of a document, and what the gateway fetches for them.

import { promises } from 'node:dns';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { ClientDocuments, isDocumentUrl } from '../../src/authorization-server/clients/client-documents.ts';
import { FetchFailure, GuardedFetch } from '../../src/authorization-server/clients/guarded-fetch.ts';
import { systemClock } from '../../src/domain/time/clock.ts';
import { MemoryStore } from '../../src/persistence/memory/memory-store.ts';
import { appFor } from '../helpers/http/app.ts';
import { allow, askToken, begin, REDIRECT, startSignIn } from '../helpers/identity/sign-in.ts';
import { hasOpenssl, issueCertificate, makeAuthority } from '../helpers/network/certificates.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('documents of clients');
const LOOPBACK = ['127.0.0.0/8', '::1/128'];

const state: { body: string; status: number; asked: number } = { body: '', status: 200, asked: 0 };
const folder = mkdtempSync(join(tmpdir(), 'stagedoor-documents-'));
makeAuthority(folder, 'authority');
issueCertificate(folder, 'authority', 'server', 'localhost');
const read = (name: string) => readFileSync(join(folder, name), 'utf8');
const ca = read('authority.crt');
const server = createServer({ cert: read('server.crt'), key: read('server.key') }, (_, response) => {
  state.asked += 1;
  response.writeHead(state.status, { location: '/elsewhere' }).end(state.body);
});
let base = '';
test.before(async () => {
  await new Promise<void>((resolve) => server.listen(0, 'localhost', resolve));
  base = `https://localhost:${(server.address() as AddressInfo).port}`;
});
test.after(() => {
  server.close();
  rmSync(folder, { recursive: true });
});
test.before.each(() => Object.assign(state, { body: '', status: 200, asked: 0 }));
const app = appFor(test, () => startSignIn({ signIn: { ca, openNetworks: LOOPBACK } }), 'each');

const documentOf = (id: string, changes: object = {}) =>
  JSON.stringify({
    client_id: id,
    client_name: 'Claude Code',
    redirect_uris: ['http://localhost/callback', REDIRECT],
    grant_types: ['authorization_code', 'refresh_token'],
    token_endpoint_auth_method: 'none',
    scope: 'openid offline_access',
    ...changes,
  });
const clientOf = (id: string) => ({ client_id: id, redirect_uris: [REDIRECT] });

test('a client signs its user in by its document, which is fetched once', async () => {
  const id = `${base}/client.json`;
  state.body = documentOf(id);
  const begun = await begin(app.url, clientOf(id));
  const consent = await begun.browser.signIn(begun.page);
  assert.match(consent.text, /Claude Code, described by localhost:/);
  const code = (await allow({ ...begun, page: consent })).get('code') ?? '';
  const { status, body } = await askToken(app.url, {
    ...{ grant_type: 'authorization_code', code, client_id: id },
    ...{ redirect_uri: REDIRECT, code_verifier: begun.verifier },
  });
  assert.is(status, 200, JSON.stringify(body));
  assert.is(typeof body.refresh_token, 'string');
  assert.is(state.asked, 1);
});

test('a document that lies, fails, redirects or is too long is one page, which does not quote it', async () => {
  const cases: readonly (readonly [path: string, body: string, status: number, expected: number])[] = [
    ['/lies', documentOf('https://other.example/client'), 200, 400],
    ['/secret', documentOf(`${base}/secret`, { client_secret: 'hush-hush-hush' }), 200, 400],
    ['/script', documentOf(`${base}/script`, { redirect_uris: ['javascript:alert(1)'] }), 200, 400],
    ['/fails', 'secret words', 500, 502],
    ['/redirects', 'secret words', 302, 502],
    ['/long', documentOf(`${base}/long`, { client_uri: 'x'.repeat(6_000) }), 200, 502],
  ];
  for (const [path, body, status, expected] of cases) {
    Object.assign(state, { body, status });
    const { page } = await begin(app.url, clientOf(`${base}${path}`));
    assert.is(page.status, expected, path);
    assert.ok(page.text.includes(path), 'the page names the client');
    assert.not.match(page.text, /secret words|hush/, path);
  }
  const asked = state.asked;
  await begin(app.url, clientOf(`${base}/fails`));
  assert.is(state.asked, asked, 'a failure is remembered');
});

test('nothing inside the network is reached, by address or by name', async () => {
  const clock = { ...systemClock, now: () => 0, alarm: () => () => {} };
  const closed = new GuardedFetch(clock, [], ca);
  const bounds = { mostBytes: 100, timeoutMs: 1_000 };
  for (const url of [
    ...[base, 'https://127.0.0.1/', 'https://[::1]/', 'https://169.254.169.254/latest', 'https://10.0.0.1/'],
    ...['https://[::ffff:10.0.0.1]/', 'https://0.0.0.0/', 'https://2130706433/', 'http://example.com/'],
    ...['https://[::ffff:0:127.0.0.1]/', 'https://[4000::1]/', 'https://[ff02::1]/'],
  ]) {
    const failure = await closed.get(new URL(url), url, bounds).catch((thrown: unknown) => thrown);
    assert.instance(failure, FetchFailure, url);
    assert.match(String(failure), /public address|not https/, url);
  }
  assert.is(state.asked, 0);
  const counted = new GuardedFetch(clock, []);
  const ask = () => counted.get(new URL('https://10.0.0.1/'), 'a', bounds).catch(String);
  const answers = await Promise.all(Array.from({ length: 12 }, ask));
  assert.is(answers.filter((answer) => String(answer).includes('too many')).length, 2);
});

test('a name without an address is told apart from a look-up that fails', async () => {
  const fetching = new GuardedFetch(systemClock, []);
  const messageFor = async (code: string) => {
    const fail = () => Promise.reject(Object.assign(new Error('DNS'), { code }));
    const families = ['resolve4', 'resolve6'] as const;
    const mocked = families.map((each) => mock.method(promises.Resolver.prototype, each, fail));
    const bounds = { mostBytes: 100, timeoutMs: 5_000 };
    const asked = fetching.get(new URL('https://client.example/x'), 'a', bounds);
    const message = await asked.catch(({ message: text }: Error) => text);
    for (const each of mocked) each.mock.restore();
    return message;
  };
  for (const code of ['ENOTFOUND', 'ENODATA']) assert.is(await messageFor(code), 'its server has no address');
  for (const code of ['ETIMEOUT', 'ESERVFAIL', 'ECONNREFUSED'])
    assert.is(await messageFor(code), 'the address of its server cannot be looked up now');
});

test('only URLs that every reader understands alike name a document', () => {
  for (const good of ['https://a.example/client.json', 'https://a.example:8443/x?y=1'])
    assert.ok(isDocumentUrl(good), good);
  for (const bad of [
    ...['http://a.example/x', 'https://a.example/', 'https://a.example', 'https://u@a.example/x'],
    ...[
      'https://a.example/x#y',
      'https://a.example/a/../x',
      'https://a.example/%2e%2e/x',
      'https://A.example/x',
    ],
    ...['https://*/x', 'https://a;b/x', 'https://a,b.example/x', "https://a'b/x"],
    ...['https://a.example/\\x', `https://a.example/${'x'.repeat(500)}`],
  ])
    assert.not.ok(isDocumentUrl(bad), bad);
});

test('an address that asked too often does not spoil the document for others that ask at the same time', async () => {
  const id = 'https://client.example/x';
  const found = { status: 200, body: Buffer.from(documentOf(id)) };
  const get = async (_: URL, causedBy: string) => {
    if (causedBy === 'flood') throw new FetchFailure('too many', true);
    return found;
  };
  const documents = new ClientDocuments({
    clock: systemClock,
    store: new MemoryStore().oauth,
    fetch: { get },
  });
  const [refused, client] = await Promise.all([
    documents.find(id, 'flood').catch((thrown: Error) => thrown.message),
    documents.find(id, 'another'),
  ]);
  assert.equal([refused, client.id], ['too many', id]);
});

test('stored documents are bounded: the oldest make room', async () => {
  const { oauth: store } = new MemoryStore();
  let nowMs = 0;
  const fetched = {
    get: async (url: URL) => ({ status: 200, body: Buffer.from(documentOf(url.href)) }),
  };
  const documents = new ClientDocuments({
    store,
    fetch: fetched,
    clock: { ...systemClock, now: () => nowMs, wall: () => nowMs },
  });
  for (let n = 0; n < 1_050; n += 1) {
    nowMs += 1;
    await documents.find(`https://a.example/${n}`, 'anyone');
  }
  const kept = await store.list({ kind: 'document' }, 2_000);
  assert.ok(kept.length <= 1_000, String(kept.length));
  assert.match(kept[0]?.value ?? '', 'https://a.example/1049');
});

if (hasOpenssl()) test.run();
