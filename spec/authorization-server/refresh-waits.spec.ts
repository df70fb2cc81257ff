// Equal refreshes while the first one is slow: the others wait for its answer, for a bounded time. One that failed midway may be repeated.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { systemClock } from '../../src/domain/time/clock.ts';
import { clientKeyOf } from '../../src/persistence/oauth-rows.ts';
import { appFor } from '../helpers/http/app.ts';
import { register, startSignIn, tokensOf } from '../helpers/identity/sign-in.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('equal refreshes at once');
let [passedMs, wallMs] = [0, 0];
const app = appFor(
  test,
  () => {
    [passedMs, wallMs] = [0, 0];
    const { now, wall } = systemClock;
    return startSignIn({
      clock: { ...systemClock, now: () => now() + passedMs, wall: () => wall() + wallMs },
    });
  },
  'each',
);

function refreshed({ client_id }: { readonly client_id: string }, refresh_token: string) {
  const fields = { grant_type: 'refresh_token', client_id, refresh_token };
  return fetch(`${app.url}/oauth/token`, { method: 'POST', body: new URLSearchParams(fields) });
}

/** Equal refreshes; the answer of the first is written when `release` is called, and the second one waits for it. */
async function both() {
  const { oauth } = app.oauthStore;
  const client = await register(app.url);
  const { refresh_token: token = '' } = await tokensOf(app.url, client);
  const held = Promise.withResolvers<void>();
  const [isHeld, looks] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const { replace, find } = oauth;
  let [found, isFirst] = [0, true];
  Object.assign(oauth, {
    replace: async (...[row, version]: Parameters<typeof replace>) => {
      if (isFirst && row.kind === 'refresh' && row.value.includes('"successor"')) {
        isFirst = false;
        isHeld.resolve();
        await held.promise;
      }
      return replace.call(oauth, row, version);
    },
    find: (...asked: Parameters<typeof find>) => {
      if (asked[0] === 'refresh') found += 1;
      if (found === 4) looks.resolve();
      return find.apply(oauth, asked);
    },
  });
  const first = refreshed(client, token);
  await isHeld.promise;
  const second = refreshed(client, token);
  await looks.promise;
  return { first, second, third: () => refreshed(client, token), release: () => held.resolve() };
}

test('the second gets the answer of the first, also after five seconds', async () => {
  const { first, second, release } = await both();
  passedMs = 5_000;
  release();
  const answers = await Promise.all([first, second]);
  assert.equal(
    answers.map(({ status }) => status),
    [200, 200],
  );
  const [one, other] = await Promise.all(answers.map((answer) => answer.text()));
  assert.is(one, other);
});

test('after ten seconds it is to ask again, which ends no grant', async () => {
  const { first, second, release } = await both();
  passedMs = 10_000;
  const { status, headers, body } = await second;
  await body?.cancel();
  assert.equal([status, headers.get('retry-after')], [503, '1']);
  release();
  assert.is((await first).status, 200);
  assert.is(await app.oauthStore.oauth.count({ kind: 'grant' }), 1);
});

test('one whose answer was not stored is repeated after 30 s, and ends no grant', async () => {
  for (const fails of ['replace', 'consume'] as const) {
    const { oauth } = app.oauthStore;
    const client = await register(app.url);
    const { refresh_token: token = '' } = await tokensOf(app.url, client);
    const { [fails]: original } = oauth;
    const away = async (...sent: readonly unknown[]) => {
      if (fails === 'consume') await Reflect.apply(original, oauth, sent);
      throw new Error('the database is away');
    };
    Object.assign(oauth, { [fails]: away });
    const lost = await refreshed(client, token);
    assert.ok(lost.status >= 500, String(lost.status));
    await lost.body?.cancel();
    Object.assign(oauth, { [fails]: original });

    wallMs += 31_000;
    passedMs += 31_000;
    const answers = await Promise.all([refreshed(client, token), refreshed(client, token)]);
    const texts = await Promise.all(answers.map((answer) => answer.text()));
    assert.equal(
      answers.map(({ status }) => status),
      [200, 200],
      texts.join(),
    );
    assert.is(texts[0], texts[1]);
    const next = await refreshed(client, JSON.parse(texts[0] ?? '').refresh_token);
    assert.is(next.status, 200);
    await next.body?.cancel();
    const replayed = await refreshed(client, token);
    assert.is(replayed.status, 400);
    await replayed.body?.cancel();
  }
});

test('a clock that was ahead for a moment does not prolong the 30 s of a repetition', async () => {
  const AHEAD_MS = 100 * 86_400_000;
  const client = await register(app.url);
  const { refresh_token: token = '' } = await tokensOf(app.url, client);
  // Within its life: the token is stored as taken by another node, which died before it had an answer.
  const { oauth } = app.oauthStore;
  const [row] = await oauth.list({ kind: 'refresh' }, 1);
  assert.ok(row);
  const consumedAt = new Date(systemClock.wall() + AHEAD_MS).toISOString();
  await oauth.replace({ ...row, consumedAt }, row.version);
  const repeated = await refreshed(client, token);
  assert.is(repeated.status, 200, await repeated.text());
  const [taken] = await oauth.find('refresh', [row.key]);
  assert.ok(taken);
  const later = new Date(Date.parse(consumedAt) + 1).toISOString(); // of another node
  await oauth.replace({ ...taken, consumedAt: later }, taken.version);
  const replayed = await refreshed(client, token);
  assert.is(replayed.status, 400, await replayed.text());
  assert.is(await oauth.count({ kind: 'grant' }), 0);
});

test('a clock that is set right after a refresh neither ends nor prolongs the 30 s of its repetition', async () => {
  for (const stepMs of [300_000, -300_000]) {
    const client = await register(app.url);
    const { refresh_token: token = '' } = await tokensOf(app.url, client);
    const first = await (await refreshed(client, token)).text();
    wallMs += stepMs;
    assert.is(await (await refreshed(client, token)).text(), first, `${stepMs} ms`);
    passedMs += 30_000;
    wallMs = 0;
    assert.is((await refreshed(client, token)).status, 400, `${stepMs} ms, and 30 s later`);
  }
});

test('a refresh while the clock was far behind does not end the sign-in, nor the client, when it is right again', async () => {
  for (const days of [100, 400]) {
    const client = await register(app.url);
    const { refresh_token: token = '' } = await tokensOf(app.url, client);
    const { now } = Date;
    const behind = mock.method(Date, 'now', () => now() - days * 86_400_000);
    const refreshedThen = await refreshed(client, token).finally(() => behind.mock.restore());
    assert.is(refreshedThen.status, 200);
    const { refresh_token: next } = (await refreshedThen.json()) as { refresh_token: string };
    await app.oauthStore.oauth.sweep(new Date(systemClock.wall()).toISOString());
    assert.is(await app.oauthStore.oauth.count({ kind: 'client' }), 1, `${days} days`);
    const answer = await refreshed(client, next);
    assert.is(answer.status, 200, `${days} days: ${await answer.text()}`);
    await app.oauthStore.oauth.end({ clientKey: clientKeyOf(client.client_id) });
  }
});

test('one that was repeated meanwhile sends the answer of the repetition', async () => {
  const { first, second, third, release } = await both();
  passedMs = 10_000;
  const late = await second;
  await late.body?.cancel();
  assert.is(late.status, 503);
  [passedMs, wallMs] = [31_000, 31_000];
  const repetition = await third();
  assert.is(repetition.status, 200);
  release();
  const answer = await first;
  assert.is(answer.status, 200);
  assert.is(await answer.text(), await repetition.text());
});

test.run();
