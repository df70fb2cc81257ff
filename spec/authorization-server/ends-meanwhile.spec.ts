// What ends while a request that uses it is being served.

import * as assert from 'uvu/assert';
import { Clients } from '../../src/authorization-server/clients/clients.ts';
import { databaseUnavailable } from '../../src/domain/errors/gateway-errors.ts';
import { type Clock, systemClock } from '../../src/domain/time/clock.ts';
import { appFor } from '../helpers/http/app.ts';
import {
  allow,
  askToken,
  begin,
  REDIRECT,
  register,
  startSignIn,
  tokensOf,
} from '../helpers/identity/sign-in.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('ends during a request');
/** Pauses of half a second take none. */
const clock: Clock = {
  ...systemClock,
  alarm: (waitMs, callback) => systemClock.alarm(waitMs === 500 ? 0 : waitMs, callback),
};
const app = appFor(test, () => startSignIn({ clock }), 'each');

test('a grant that ends while its code is redeemed gives no token', async () => {
  const { oauth } = app.oauthStore;
  const client = await register(app.url);
  const begun = await begin(app.url, client);
  const code = (await allow(begun)).get('code') ?? '';
  const { replace } = oauth;
  Object.assign(oauth, {
    replace: async (...parameters: Parameters<typeof replace>) => {
      const [{ kind, grantId }] = parameters;
      if (kind === 'grant') await oauth.end({ grantId });
      return replace.apply(oauth, parameters);
    },
  });
  const { status, body } = await askToken(app.url, {
    ...{ grant_type: 'authorization_code', client_id: client.client_id, redirect_uri: REDIRECT },
    ...{ code, code_verifier: begun.verifier },
  });
  assert.equal([status, body.error], [400, 'invalid_grant']);
});

test('a code whose grant could not be stored can be redeemed again', async () => {
  const { oauth } = app.oauthStore;
  const client = await register(app.url);
  const begun = await begin(app.url, client);
  const code = (await allow(begun)).get('code') ?? '';
  const redeem = () =>
    askToken(app.url, {
      ...{ grant_type: 'authorization_code', client_id: client.client_id, redirect_uri: REDIRECT },
      ...{ code, code_verifier: begun.verifier },
    });
  const { replace } = oauth;
  oauth.replace = async (row, version) => {
    if (row.kind === 'grant') throw databaseUnavailable(new Error('away'), 'no');
    return replace(row, version);
  };
  const { status } = await redeem();
  oauth.replace = replace;
  assert.equal([status, (await redeem()).status], [503, 200]);
});

test('the first refresh token of a grant is stored again when the database fails: its code is used', async () => {
  const { oauth } = app.oauthStore;
  const { replace } = oauth;
  let failures = 0;
  oauth.replace = async (row, version) => {
    if (row.kind !== 'refresh' || failures > 1) return replace(row, version);
    failures += 1;
    throw databaseUnavailable(new Error('away'), 'unknown');
  };
  const client = await register(app.url);
  const { refresh_token = '' } = await tokensOf(app.url, client);
  const asked = { grant_type: 'refresh_token', client_id: client.client_id, refresh_token };
  assert.equal([failures, (await askToken(app.url, asked)).status], [2, 200]);
});

for (const held of ['find', 'end'] as const)
  test(`a client that is removed is unknown afterwards, also while "${held}" of the store is slow`, async () => {
    const { oauth } = app.oauthStore;
    const { client_id: id } = await register(app.url);
    const [isHeld, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const wait = () => {
      isHeld.resolve();
      return release.promise;
    };
    const slow = {
      find: async (...asked: Parameters<typeof oauth.find>) => {
        const rows = await oauth.find(...asked);
        await wait();
        return rows;
      },
      end: async (of: Parameters<typeof oauth.end>[0]) => {
        await wait();
        return oauth.end(of);
      },
    };
    const clients = new Clients({
      ...{ store: { ...oauth, [held]: slow[held] }, rule: 'any', keepsSecrets: true },
      ...{ clock: systemClock, warn: () => {} },
      documents: { find: () => Promise.reject(new Error('it has no document')) },
    });
    const slowOne = held === 'find' ? clients.find(id, 'here') : clients.remove(id);
    await isHeld.promise;
    await (held === 'find' ? clients.remove(id) : clients.find(id, 'here'));
    release.resolve();
    await slowOne;
    assert.is(await clients.find(id, 'here'), undefined);
  });

test.run();
