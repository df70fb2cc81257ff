// Clients that authenticate by a key of their own: the keys are in a document that the gateway fetches, and what they sign is used once.

import { generateKeyPairSync, type KeyObject, randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SignJWT } from 'jose/jwt/sign';
import * as assert from 'uvu/assert';
import { networkOf } from '../../src/net/network-of.ts';
import { appFor } from '../helpers/http/app.ts';
import { allow, askToken, begin, REDIRECT, startSignIn } from '../helpers/identity/sign-in.ts';
import { hasOpenssl, issueCertificate, makeAuthority } from '../helpers/network/certificates.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('clients with a key of their own');
const folder = mkdtempSync(join(tmpdir(), 'stagedoor-keys-'));
makeAuthority(folder, 'authority');
issueCertificate(folder, 'authority', 'server', 'localhost');
const read = (name: string) => readFileSync(join(folder, name), 'utf8');
const ca = read('authority.crt');

const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const served: { base: string; asked: string[]; keys: string | undefined } = { base: '', asked: [], keys: '' };
const server = createServer(
  { cert: read('server.crt'), key: read('server.key') },
  ({ url = '' }, response) => {
    served.asked.push(url);
    if (url === '/keys')
      return void response.writeHead(served.keys === undefined ? 500 : 200).end(served.keys);
    response.end(
      JSON.stringify({
        ...{ client_id: served.base + url, client_name: 'Signer', redirect_uris: [REDIRECT] },
        ...{ grant_types: ['authorization_code', 'refresh_token'], jwks_uri: `${served.base}/keys` },
        token_endpoint_auth_method: 'private_key_jwt',
      }),
    );
  },
);
test.before(async () => {
  await new Promise<void>((resolve) => server.listen(0, 'localhost', resolve));
  served.base = `https://localhost:${(server.address() as AddressInfo).port}`;
});
test.after(() => {
  server.close();
  rmSync(folder, { recursive: true });
});
test.before.each(() => {
  const jwk = { ...pair.publicKey.export({ format: 'jwk' }), kid: 'client-1', use: 'sig' };
  Object.assign(served, { asked: [], keys: JSON.stringify({ keys: [jwk] }) });
});
const app = appFor(
  test,
  () => startSignIn({ signIn: { ca, openNetworks: ['127.0.0.0/8', '::1/128'] } }),
  'each',
);

interface Signed {
  readonly claims?: Record<string, unknown>;
  readonly header?: Record<string, unknown>;
  readonly key?: KeyObject | Uint8Array;
}

async function signedBy(id: string, { claims = {}, header = {}, key = pair.privateKey }: Signed = {}) {
  const seconds = Math.floor(Date.now() / 1_000);
  const own = { iss: id, sub: id, aud: app.url, jti: randomUUID(), iat: seconds, exp: seconds + 60 };
  const assertion = await new SignJWT({ ...own, ...claims })
    .setProtectedHeader({ alg: 'ES256', kid: 'client-1', ...header })
    .sign(key);
  const type = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';
  return { client_assertion_type: type, client_assertion: assertion };
}

/** The refresh token of a user who agreed. */
async function refreshTokenOf(id: string): Promise<string> {
  const begun = await begin(app.url, { client_id: id, redirect_uris: [REDIRECT] });
  const code = (await allow(begun)).get('code') ?? '';
  const { status, body } = await askToken(app.url, {
    ...{ grant_type: 'authorization_code', code, redirect_uri: REDIRECT, code_verifier: begun.verifier },
    ...(await signedBy(id)),
  });
  assert.is(status, 200, JSON.stringify(body));
  return String(body.refresh_token);
}

const refresh = (token: string, fields: Readonly<Record<string, string>>) =>
  askToken(app.url, { grant_type: 'refresh_token', refresh_token: token, ...fields });

test('get tokens with what they sign, once, and their keys are fetched once', async () => {
  const id = `${served.base}/client.json`;
  const first = await refreshTokenOf(id);
  const proof = await signedBy(id);
  const second = await refresh(first, proof);
  assert.is(second.status, 200, JSON.stringify(second.body));
  const token = String(second.body.refresh_token);
  const replayed = await refresh(token, proof);
  assert.equal([replayed.status, replayed.body.error], [401, 'invalid_client']);
  const proofs = await signedBy(id);
  const answers = await Promise.all([1, 2, 3].map(() => refresh(token, proofs)));
  assert.equal(answers.map(({ status }) => status).sort(), [200, 401, 401]);
  assert.equal(served.asked, ['/client.json', '/keys']);
});

test('are refused with another key, without one, for another gateway, and for longer than minutes', async () => {
  const id = `${served.base}/client.json`;
  const token = await refreshTokenOf(id);
  const seconds = Math.floor(Date.now() / 1_000);
  const bad: Readonly<Record<string, Signed>> = {
    'another key': { key: generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey },
    'an unknown key': {
      header: { kid: 'client-2', alg: 'EdDSA' },
      key: generateKeyPairSync('ed25519').privateKey,
    },
    'HMAC with the public key': {
      header: { alg: 'HS256' },
      key: Buffer.from(String(pair.publicKey.export({ format: 'pem', type: 'spki' }))),
    },
    'another gateway': { claims: { aud: 'https://other.example' } },
    'another client': { claims: { iss: `${served.base}/other.json` } },
    'a long life': { claims: { exp: seconds + 3_600 } },
    'no end': { claims: { exp: undefined } },
    'no id': { claims: { jti: undefined } },
    'a long id': { claims: { jti: 'x'.repeat(501) } },
  };
  for (const [what, parts] of Object.entries(bad)) {
    const { status, body } = await refresh(token, await signedBy(id, parts));
    assert.equal([status, body.error], [401, 'invalid_client'], `${what}: ${JSON.stringify(body)}`);
  }
  for (const fields of [{ client_id: id }, { client_id: id, client_secret: 'guessed' }])
    assert.is((await refresh(token, fields)).body.error, 'invalid_client');
  assert.is((await refresh(token, await signedBy(id))).status, 200);
});

test('may have a clock that differs by up to a minute from that of the node', async () => {
  const id = `${served.base}/client.json`;
  let token = await refreshTokenOf(id);
  const seconds = Math.floor(Date.now() / 1_000);
  const ahead = { iat: seconds + 40, nbf: seconds + 40, exp: seconds + 100 };
  for (const claims of [ahead, { iat: seconds - 70, exp: seconds - 40 }]) {
    const { status, body } = await refresh(token, await signedBy(id, { claims }));
    assert.is(status, 200, JSON.stringify(body));
    token = String(body.refresh_token);
  }
  for (const claims of [{ nbf: seconds + 90 }, { exp: seconds - 61 }])
    assert.is((await refresh(token, await signedBy(id, { claims }))).status, 401);
});

test('whose keys are too large, no list or away are refused, and nothing of the answer is quoted', async () => {
  for (const keys of [' '.repeat(70_000), 'secret words', '{"keys":"secret words"}', undefined]) {
    served.keys = keys;
    const id = `${served.base}/${String(keys?.length)}.json`;
    const { status, body } = await refresh('x', await signedBy(id));
    assert.equal([status, body.error], [401, 'invalid_client'], JSON.stringify(body));
    assert.not.match(JSON.stringify(body), /secret/);
  }
  assert.not.match(JSON.stringify(app.warnings), /secret/);
});

test('cannot fill the table: what one network signs is counted', async () => {
  const id = `${served.base}/client.json`;
  const token = await refreshTokenOf(id);
  const clients = await app.authorizationServer.clients();
  const network = networkOf('127.0.0.1');
  for (let n = 0; n < 598; n += 1) clients.admitAssertion(network);
  const answers = [];
  for (let n = 0; n < 3; n += 1) answers.push(await refresh(`${token}-`, await signedBy(id)));
  assert.equal(
    answers.map(({ status, body }) => [status, body.error]),
    [
      [400, 'invalid_grant'],
      [429, 'temporarily_unavailable'],
      [429, 'temporarily_unavailable'],
    ],
  );
  assert.ok(clients.admitAssertion(networkOf('192.0.2.1')));
});

if (hasOpenssl()) test.run();
