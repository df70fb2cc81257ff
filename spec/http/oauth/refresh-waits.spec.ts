// Equal refreshes while the first one is slow: the others wait for its answer, for a bounded time.

import * as assert from 'uvu/assert';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { appFor } from '../../helpers/http-app.ts';
import { register, startSignIn, tokensOf } from '../../helpers/sign-in.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('equal refreshes at once');
let passedMs = 0;
const app = appFor(
  test,
  () => {
    passedMs = 0;
    return startSignIn({ clock: { ...systemClock, now: () => systemClock.now() + passedMs } });
  },
  'each',
);

/** Two equal refreshes; the answer of the first is written when `release` is called, and the second one waits for it. */
async function both() {
  const { oauth } = app.oauthStore;
  const client = await register(app.url);
  const { refresh_token: token = '' } = await tokensOf(app.url, client);
  const held = Promise.withResolvers<void>();
  const [isHeld, looks] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const { save, find } = oauth;
  let found = 0;
  Object.assign(oauth, {
    save: async (row: Parameters<typeof save>[0]) => {
      if (row.kind === 'refresh' && row.value.includes('"successor"')) {
        isHeld.resolve();
        await held.promise;
      }
      return save.call(oauth, row);
    },
    find: (...asked: Parameters<typeof find>) => {
      if (asked[0] === 'refresh') found += 1;
      if (found === 4) looks.resolve();
      return find.apply(oauth, asked);
    },
  });
  const refresh = () => {
    const fields = { grant_type: 'refresh_token', client_id: client.client_id, refresh_token: token };
    return fetch(`${app.url}/oauth/token`, { method: 'POST', body: new URLSearchParams(fields) });
  };
  const first = refresh();
  await isHeld.promise;
  const second = refresh();
  await looks.promise;
  return { first, second, release: () => held.resolve() };
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

test.run();
