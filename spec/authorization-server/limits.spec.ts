// Sign-ins that one network begins within a minute, and registrations that no user has allowed.

import * as assert from 'uvu/assert';
import { Clients } from '../../src/authorization-server/clients/clients.ts';
import { databaseUnavailable } from '../../src/domain/errors/gateway-errors.ts';
import { DAY_MS, systemClock } from '../../src/domain/time/clock.ts';
import { MemoryStore } from '../../src/persistence/memory/memory-store.ts';
import { appFor } from '../helpers/http/app.ts';
import { begin, REDIRECT, register, startSignIn } from '../helpers/identity/sign-in.ts';
import { endOf } from '../helpers/outcome.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('the number of sign-ins');
const app = appFor(test, () => startSignIn({ signIn: { signInsPerMinute: 3 } }), 'each');

test('of one network in a minute is that of the setting', async () => {
  const client = await register(app.url);
  const statuses: number[] = [];
  for (let n = 0; n < 4; n += 1) statuses.push((await begin(app.url, client)).page.status);
  assert.equal(statuses, [200, 200, 200, 429]);
});

test('of all networks of one site in a minute is ten times as many', async () => {
  const proxied = await startSignIn({ signIn: { signInsPerMinute: 3 }, trustedProxies: ['127.0.0.0/8'] });
  const client = { client_id: 'stagedoor-cli' };
  const proof = { code_challenge: 'x'.repeat(43), code_challenge_method: 'S256' };
  const query = new URLSearchParams({ ...client, ...proof, redirect_uri: REDIRECT, response_type: 'code' });
  const ask = async (path: string, from: string, method = 'GET') => {
    const headers = { 'x-forwarded-for': from };
    const body = method === 'GET' ? null : new URLSearchParams(client);
    const answer = await fetch(`${proxied.url}${path}`, { method, headers, body, redirect: 'manual' });
    await answer.body?.cancel();
    return answer.status;
  };
  const statuses: number[] = [];
  for (let n = 0; n < 33; n += 1)
    statuses.push(await ask(`/oauth/authorize?${query}`, `2001:db8:1:${n % 11}::1`));
  assert.equal(statuses, [...Array(30).fill(303), ...Array(3).fill(429)]);
  assert.is(await ask(`/oauth/authorize?${query}`, '2001:db8:2::1'), 303);
  const devices: number[] = [];
  for (let n = 0; n < 101; n += 1)
    devices.push(await ask('/oauth/device_authorization', `2001:db8:1:${n.toString(16)}::1`, 'POST'));
  assert.equal(devices, [...Array(100).fill(200), 429]);
  await proxied.close();
});

function setUp() {
  const store = new MemoryStore().oauth;
  const time = { nowMs: Date.parse('2030-01-01T00:00:00Z') };
  const now = () => time.nowMs;
  const clients = new Clients({
    ...{ store, rule: 'any', keepsSecrets: true, warn: () => {} },
    clock: { ...systemClock, wall: now, now },
    documents: { find: () => Promise.reject(new Error('it has no document')) },
  });
  return { store, time, clients };
}

test('of registrations that the networks of one site make is a tenth of those that are kept', async () => {
  const { time, clients } = setUp();
  const codesFrom = (addresses: readonly string[]) =>
    Promise.all(addresses.map((address) => endOf((async () => clients.admit(address))())));
  const networks = Array.from({ length: 256 }, (_, n) => `2001:db8:1:${n.toString(16)}::1`);
  const codes = await codesFrom(networks);
  assert.equal(codes.indexOf('TOO_MANY_ATTEMPTS'), 100);
  assert.equal(await codesFrom(['2001:db8:2::1', '192.0.2.1']), ['done', 'done']);
  time.nowMs += 10 * 60_000;
  assert.equal(await codesFrom(networks.slice(-1)), ['done']);
});

test('of registrations without a user stays bounded, however many come at once', async () => {
  const { store, time, clients } = setUp();
  const registerAtOnce = (count: number) =>
    Promise.all(Array.from({ length: count }, () => clients.register({ redirect_uris: [REDIRECT] })));
  const unused = { kind: 'client', isUsed: false } as const;
  await registerAtOnce(1_000);
  time.nowMs += 11 * 60_000;
  for (let round = 0; round < 10; round += 1) await registerAtOnce(20);
  assert.ok((await store.count(unused)) < 1_020, String(await store.count(unused)));
});

test('a client that a user has allowed stays, though its use was not stored at first', async () => {
  const { store, time, clients } = setUp();
  const { id } = await clients.register({ redirect_uris: [REDIRECT] });
  const { replace } = store;
  store.replace = () => Promise.reject(databaseUnavailable('away'));
  assert.is(await endOf(clients.used(id)), 'DATABASE_UNAVAILABLE');
  store.replace = replace;
  await clients.used(id);
  time.nowMs += 2 * DAY_MS;
  await store.sweep(new Date(time.nowMs).toISOString());
  assert.is((await clients.find(id, 'here'))?.id, id);
});

test.run();
