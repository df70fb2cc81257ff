// Sign-ins that one network begins within a minute, and registrations that no user has allowed.

import * as assert from 'uvu/assert';
import { Clients } from '../../src/authorization-server/clients/clients.ts';
import { systemClock } from '../../src/domain/time/clock.ts';
import { MemoryStore } from '../../src/persistence/memory/memory-store.ts';
import { appFor } from '../helpers/http/app.ts';
import { begin, REDIRECT, register, startSignIn } from '../helpers/identity/sign-in.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('the number of sign-ins');
const app = appFor(test, () => startSignIn({ signIn: { signInsPerMinute: 3 } }), 'each');

test('of one network in a minute is that of the setting', async () => {
  const client = await register(app.url);
  const statuses: number[] = [];
  for (let n = 0; n < 4; n += 1) statuses.push((await begin(app.url, client)).page.status);
  assert.equal(statuses, [200, 200, 200, 429]);
});

test('of registrations without a user stays bounded, however many come at once', async () => {
  const store = new MemoryStore().oauth;
  let nowMs = Date.parse('2030-01-01T00:00:00Z');
  const clients = new Clients({
    ...{ store, rule: 'any', keepsSecrets: true, warn: () => {} },
    clock: { ...systemClock, wall: () => nowMs },
    documents: { find: () => Promise.reject(new Error('it has no document')) },
  });
  const registerAtOnce = (count: number) =>
    Promise.all(Array.from({ length: count }, () => clients.register({ redirect_uris: [REDIRECT] })));
  const unused = { kind: 'client', isUsed: false } as const;
  await registerAtOnce(1_000);
  nowMs += 11 * 60_000;
  for (let round = 0; round < 10; round += 1) await registerAtOnce(20);
  assert.ok((await store.count(unused)) < 1_020, String(await store.count(unused)));
});

test.run();
