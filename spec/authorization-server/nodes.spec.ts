// Two nodes of one deployment: what may happen once happens once over both.

import { randomBytes } from 'node:crypto';
import * as assert from 'uvu/assert';
import { OAuthKeys } from '../../src/auth/grants/oauth-keys.ts';
import type { AuthorizationServerOptions } from '../../src/authorization-server/authorization-server.ts';
import { systemClock } from '../../src/domain/time/clock.ts';
import { clientKeyOf } from '../../src/persistence/oauth-rows.ts';
import { type AppFixture, startApp } from '../helpers/http/app.ts';
import {
  allow,
  askToken,
  begin,
  REDIRECT,
  register,
  type SignInFixture,
  startSignIn,
  tokensOf,
} from '../helpers/identity/sign-in.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('the authorization server on two nodes');
const nodes: { one?: SignInFixture; two?: AppFixture } = {};
/** How far the clock of the second node is ahead. */
let aheadMs = 0;

test.before(async () => {
  const one = await startSignIn();
  const { url, auth, oauthStore: store } = one;
  const clock = { ...systemClock, wall: () => systemClock.wall() + aheadMs };
  Object.assign(store, { serverTimeMs: async () => systemClock.wall() });
  const authorizationServer: AuthorizationServerOptions = {
    ...{ store, auth, clock, secrets: [randomBytes(32)], rule: 'any', openNetworks: [], keepsSecrets: true },
    keys: new OAuthKeys({ store: store.oauth, clock }),
    // Both are reached by the address of the first.
    address: { issuer: url, baseFor: () => url, pathOf: () => '', normalise: () => url },
    tokenSeconds: 3_600,
    log: { warn: () => {}, error: () => {} },
  };
  Object.assign(nodes, { one, two: await startApp({ auth, authorizationServer }) });
});
test.after(async () => {
  await nodes.two?.close();
  await nodes.one?.close();
});

test('a code that is redeemed at both gives at most one answer, and its grant ends', async () => {
  const { one, two } = opened();
  const client = await register(one.url);
  const begun = await begin(one.url, client);
  const fields = {
    ...{ grant_type: 'authorization_code', client_id: client.client_id, redirect_uri: REDIRECT },
    ...{ code: (await allow(begun)).get('code') ?? '', code_verifier: begun.verifier },
  };
  const answers = await Promise.all([one.url, two.url].map((url) => askToken(url, fields)));
  assert.ok(answers.filter(({ status }) => status === 200).length <= 1);
  assert.is(await one.oauthStore.oauth.count({ kind: 'grant' }), 0);
});

test('a refresh token that is used at both at the same time gets one answer, and the keys are shared', async () => {
  const { one, two } = opened();
  const client = await register(one.url);
  const { refresh_token = '' } = await tokensOf(one.url, client);
  const fields = { grant_type: 'refresh_token', client_id: client.client_id, refresh_token };
  const answers = await Promise.all([one.url, two.url].map((url) => askToken(url, fields)));
  assert.equal(
    answers.map(({ status }) => status),
    [200, 200],
  );
  assert.equal(answers[0]?.body, answers[1]?.body);
  const [left, right] = await Promise.all(
    [one.url, two.url].map(async (url) => (await fetch(`${url}/oauth/jwks`)).text()),
  );
  assert.is(left, right);
});

test('a refresh that is repeated at a node whose clock is ahead or behind gets the same answer', async () => {
  const { one, two } = opened();
  for (aheadMs of [40_000, -40_000]) {
    const client = await register(one.url);
    const { refresh_token = '' } = await tokensOf(one.url, client);
    const fields = { grant_type: 'refresh_token', client_id: client.client_id, refresh_token };
    const first = await askToken(one.url, fields);
    const repeated = await askToken(two.url, fields);
    assert.equal([first.status, repeated], [200, first]);
    const other = { ...fields, refresh_token: String(Object(first.body).refresh_token) };
    const behind = await askToken(two.url, other);
    assert.equal([behind.status, await askToken(one.url, other)], [200, behind]);
  }
  aheadMs = 0;
});

test('a client that was removed at one begins no sign-in at the other', async () => {
  const { one } = opened();
  const client = await register(one.url);
  assert.is((await begin(one.url, client)).page.status, 200);
  // As the other node does it.
  await one.oauthStore.oauth.end({ clientKey: clientKeyOf(client.client_id) });
  const { page } = await begin(one.url, client);
  assert.is(page.status, 400);
  assert.match(page.text, /This client is not known here/);
});

function opened(): { one: SignInFixture; two: AppFixture } {
  const { one, two } = nodes;
  if (one === undefined || two === undefined) throw new Error('the nodes are not open');
  return { one, two };
}

test.run();
