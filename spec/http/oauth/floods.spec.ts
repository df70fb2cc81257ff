// Requests that leave a row are bounded.

import * as assert from 'uvu/assert';
import { appFor } from '../../helpers/http-app.ts';
import { begin, REDIRECT, register, startSignIn } from '../../helpers/sign-in.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('floods at the authorization server');
const app = appFor(test, () => startSignIn(), 'each');

test('requests to authorize are bounded for a user who is signed in, too', async () => {
  const client = await register(app.url);
  const { browser, page } = await begin(app.url, client);
  await browser.signIn(page);
  const url = new URL('/oauth/authorize', app.url);
  const fields = {
    response_type: 'code',
    client_id: client.client_id,
    redirect_uri: REDIRECT,
    code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
    code_challenge_method: 'S256',
  };
  for (const [name, value] of Object.entries(fields)) url.searchParams.set(name, value);
  const ask = async () => {
    const headers = { cookie: browser.cookiesFor('/oauth/authorize') };
    const answer = await fetch(url, { redirect: 'manual', headers });
    await answer.body?.cancel();
    return answer.status;
  };
  for (let n = 0; n < 100; n += 1) assert.is(await ask(), 303, `${n}: more often than without a sign-in`);
  let last = 0;
  for (let n = 0; n < 1_110; n += 1) last = await ask();
  assert.is(last, 429);
});

test('fields of requests are bounded, since the library looks for each among all', async () => {
  const many = Array.from({ length: 1_000 }, (_, field) => `f${field}`).join('&');
  for (const path of ['/oauth/authorize', '/oauth/authorize/unknown', '/oauth/device']) {
    const answer = await fetch(`${app.url}${path}?${many}`, { redirect: 'manual' });
    assert.is(answer.status, 400, path);
    assert.match(await answer.text(), 'more than 100 parameters');
  }
  for (const path of ['/oauth/token', '/oauth/revoke']) {
    const body = new URLSearchParams(`client_id=x&${many}`);
    const answer = await fetch(`${app.url}${path}`, { method: 'POST', body });
    assert.is(answer.status, 400, path);
    assert.match(await answer.text(), '100 fields');
  }
});

test.run();
