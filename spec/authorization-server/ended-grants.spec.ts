// A grant that ends at the authorization server: its access token is refused here at once, although it was verified just before.

import * as assert from 'uvu/assert';
import { appFor } from '../helpers/http/app.ts';
import { askToken, REDIRECT, register, startSignIn, tokensOf } from '../helpers/identity/sign-in.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('grants that end at the authorization server');
const app = appFor(test, () => startSignIn());

type Tokens = Awaited<ReturnType<typeof tokensOf>>;

/** What the access token of a grant can do, before and after `end`. */
async function outcomesAround(end: (clientId: string, tokens: Tokens) => Promise<number>) {
  const client = await register(app.url);
  const tokens = await tokensOf(app.url, client);
  const use = async () => {
    const bearer = { authorization: `Bearer ${tokens.access_token}` };
    return (await app.as(bearer, 'GET', '/auth/me')).status;
  };
  const before = await use();
  return [before, await end(client.client_id, tokens), await use()];
}

const send = async (path: string, fields: Readonly<Record<string, string>>) => {
  const answer = await fetch(`${app.url}${path}`, { method: 'POST', body: new URLSearchParams(fields) });
  await answer.body?.cancel();
  return answer.status;
};

test('because its client was removed', async () => {
  const remove = async (id: string) => (await app.as(app.admin, 'DELETE', `/auth/clients/${id}`)).status;
  assert.equal(await outcomesAround(remove), [200, 204, 401]);
});

test('because its client revoked a token of it', async () => {
  for (const which of ['access_token', 'refresh_token'] as const) {
    const revoke = (client_id: string, tokens: Tokens) =>
      send('/oauth/revoke', { client_id, token: tokens[which] ?? '' });
    assert.equal(await outcomesAround(revoke), [200, 200, 401], which);
  }
});

test('because a code or a refresh token was used a second time', async () => {
  const replayCode = async (client_id: string, { code, verifier: code_verifier }: Tokens) => {
    const fields = { grant_type: 'authorization_code', client_id, redirect_uri: REDIRECT };
    return (await askToken(app.url, { ...fields, code, code_verifier })).status;
  };
  assert.equal(await outcomesAround(replayCode), [200, 400, 401]);
  const replayToken = async (client_id: string, { refresh_token = '' }: Tokens) => {
    const refresh = (token: string) =>
      askToken(app.url, { grant_type: 'refresh_token', client_id, refresh_token: token });
    const { body } = await refresh(refresh_token);
    await refresh(String(body.refresh_token));
    return (await refresh(refresh_token)).status;
  };
  assert.equal(await outcomesAround(replayToken), [200, 400, 401]);
});

test.run();
