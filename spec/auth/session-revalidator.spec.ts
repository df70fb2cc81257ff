// Principals with open sessions: changes of their accounts on other nodes (the store reports a change), and expiring keys.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import type { User, UserChange } from '../../src/domain/accounts/account.ts';
import { databaseUnavailable } from '../../src/domain/errors/gateway-errors.ts';
import { suite } from '../helpers/suite.ts';
import { passTurns } from '../helpers/time/turns.ts';
import { authHarness, LIFETIME_MS, minuteMs, START_MS } from './auth-harness.ts';

const lookMs = 2_000;
const test = suite('the session revalidator');

test.before.each(() => mock.timers.enable({ apis: ['setInterval'] }));
test.after.each(() => mock.timers.reset());

test('reports keys and users that another node deleted, disabled or changed, except for a new e-mail address', async () => {
  const { harness, changedIds, enter, key } = made();
  const names = ['deleted', 'disabled', 'renewed', 'confined', 'untouched', 'absent, untouched'];
  const users = new Map<string, User>();
  for (const name of names) users.set(name, await harness.createUser(name.replace(', ', '-')));
  const idOf = (name: string) => users.get(name)?.id ?? '';
  const ids = new Map<string, string>();
  for (const [name, user] of users) {
    if (!name.startsWith('absent')) ids.set(name, await enter(await harness.bearer(user)));
    ids.set(`key of ${name}`, await enter(await key(idOf(name))));
  }
  const free = await harness.auth.accounts.createApiKey({ name: 'free', permissions: ['tools:call'] });
  ids.set('free key', await enter({ apiKey: free.key }));
  await storeChanged(harness);
  assert.equal(changedIds, []);

  const elsewhere = (name: string, change: Omit<UserChange, 'updatedAt'>) =>
    harness.store.accounts.changeUser(idOf(name), { ...change, updatedAt: later });
  await harness.store.accounts.deleteApiKey(free.apiKey.apiKey.id);
  await harness.store.accounts.deleteUser(idOf('deleted'));
  await elsewhere('disabled', { isActive: false, credentialsChangedAt: later });
  await elsewhere('renewed', { passwordHash: 'x', credentialsChangedAt: later });
  await elsewhere('confined', { templates: ['demo'] });
  await elsewhere('untouched', { email: 'other@example.org' });
  await passTurns(20);
  assert.equal(changedIds, []);
  await storeChanged(harness);
  const lost = [...ids].filter(([name]) => !name.endsWith('untouched')).map(([, id]) => id);
  assert.equal(changedIds.toSorted(), lost.toSorted());

  // Changed users are reported once; their current state is the new baseline.
  changedIds.length = 0;
  await storeChanged(harness);
  const gone = ['free key', 'deleted', 'disabled'].flatMap((name) => [name, `key of ${name}`]);
  assert.equal(changedIds.toSorted(), gone.flatMap((name) => ids.get(name) ?? []).toSorted());
});

test('reports an expired key at the next check without a query', async () => {
  const { harness, changedIds, enter, key } = made();
  const short = await enter(await key(undefined, START_MS + 5_000));
  await enter(await key(undefined, START_MS + 50_000));
  for (const passedMs of [2_000, 4_000]) {
    await tick(harness);
    harness.watch.asked.length = 0;
    assert.equal([harness.clock.nowMs, changedIds], [START_MS + passedMs, []]);
  }
  await tick(harness);
  assert.equal(changedIds, [short]);
  assert.equal(harness.watch.asked, []);
});

test('reports no key that a clock which was set ahead calls expired, unless it stays so for 15 min', async () => {
  const { harness, changedIds, enter, key } = made();
  const credentials = await key(undefined, START_MS + 3_600_000);
  const id = await enter(credentials);
  await tick(harness);
  harness.clock.step(86_400_000);
  for (let count = 0; count < 3; count += 1) await tick(harness);
  assert.is(await harness.codeFor(credentials), 'INVALID_CREDENTIALS', 'refused all the same');
  await storeChanged(harness);
  assert.equal(changedIds, []);
  harness.clock.step(-86_400_000);
  await tick(harness);
  await storeChanged(harness);
  assert.equal([await harness.codeFor(credentials), changedIds], ['none', []]);
  harness.clock.step(86_400_000);
  await tick(harness);
  harness.clock.pass(15 * minuteMs);
  await tick(harness);
  assert.equal(changedIds, [id]);
});

test('reports no key as expired while the clock differs from that of the database, or that does not answer', async () => {
  const { harness, changedIds, enter, key } = made();
  const id = await enter(await key(undefined, START_MS + 1_000));
  let asked = 0;
  harness.serverTimeMs = async () => {
    asked += 1;
    throw databaseUnavailable(new Error('connection refused'));
  };
  await tick(harness);
  harness.serverTimeMs = async () => {
    asked += 1;
    return harness.clock.nowMs - 61_000;
  };
  await tick(harness);
  await tick(harness);
  assert.equal([changedIds, asked], [[], 2]);
  harness.serverTimeMs = async () => harness.clock.nowMs;
  harness.clock.pass(15 * minuteMs);
  await tick(harness);
  assert.equal(changedIds, [id]);
});

test('does not report a user whose token expires', async () => {
  const { harness, changedIds, enter } = made();
  const ada = await harness.createUser('ada');
  await enter(await harness.bearer(ada));
  harness.clock.pass(LIFETIME_MS + 1);
  harness.emitChange('answered');
  await tick(harness);
  await enter(await harness.bearer(ada));
  await tick(harness);
  assert.equal(changedIds, []);
});

test('queries all principals together, and only when the store may have changed', async () => {
  const { harness, open, enter, key } = made();
  for (let count = 0; count < 20; count += 1) await enter(await key());
  open.add('anonymous');
  await tick(harness);
  harness.watch.asked.length = 0;
  await tick(harness);
  assert.equal(harness.watch.asked, []);
  await storeChanged(harness);
  assert.equal(harness.watch.asked, ['findApiKeys', 'findUsers']);
  await tick(harness);
  assert.is(harness.watch.asked.length, 2);
});

test('queries many principals at once', async () => {
  const { harness, open, changedIds } = made();
  for (let count = 0; count <= 500; count += 1) open.add(`key:${count}`);
  harness.watch.asked.length = 0;
  await tick(harness);
  assert.is(harness.watch.asked.length, 2);
  assert.is(changedIds.length, 501, 'those without an account');
});

test('reports no principal while the database is unavailable, and queries it afterwards', async () => {
  const { harness, changedIds, enter, key } = made();
  const id = await enter(await key());
  await harness.store.accounts.deleteApiKey(id.slice('key:'.length));
  harness.watch.isAway = true;
  await storeChanged(harness);
  harness.emitChange('away');
  await tick(harness, 'silent');
  assert.equal([changedIds, harness.warnings], [[], []]);
  harness.watch.isAway = false;
  harness.emitChange('answered');
  await tick(harness);
  assert.equal(changedIds, [id]);
});

test('logs an unexpected error of the store', async () => {
  const { harness, enter, key } = made();
  await enter(await key());
  harness.watch.gate = Promise.reject(new TypeError('a fault of ours'));
  harness.watch.gate.catch(() => undefined); // before the first await
  await storeChanged(harness);
  assert.is(harness.warnings.length, 1);
});

test('queries again after a change during a query', async () => {
  const { harness, changedIds, enter, key } = made();
  const id = await enter(await key());
  const gate = Promise.withResolvers<void>();
  harness.watch.gate = gate.promise;
  harness.watch.asked.length = 0;
  await storeChanged(harness);
  await harness.store.accounts.deleteApiKey(id.slice('key:'.length));
  harness.emitChange('changed');
  assert.equal(harness.watch.asked, ['findApiKeys'], 'one query at a time');
  gate.resolve();
  await passTurns(20);
  assert.equal(changedIds, []);
  await tick(harness);
  assert.equal(changedIds, [id]);
  // The change was noticed before the session of this key was there.
  const [first, late] = [await key(), await key()];
  await enter(first);
  const verified = Promise.withResolvers<void>();
  harness.watch.gate = verified.promise;
  const entering = enter(late);
  await passTurns(20);
  harness.watch.gate = undefined;
  const lateId = late.apiKey.slice(3, 19);
  await harness.store.accounts.deleteApiKey(lateId);
  await storeChanged(harness);
  verified.resolve();
  await entering;
  await tick(harness);
  assert.is(changedIds.at(-1), `key:${lateId}`);
});

test('reports a user that logs in again after a change on another node only once', async () => {
  const { harness, changedIds, enter } = made();
  const ada = await harness.createUser('ada');
  const id = await enter(await harness.bearer(ada));
  const changed = await harness.store.accounts.changeUser(ada.id, {
    passwordHash: 'x',
    credentialsChangedAt: later,
    updatedAt: later,
  });
  harness.clock.pass(1);
  await enter(await harness.bearer(changed));
  assert.equal(changedIds.splice(0), [id]);
  await storeChanged(harness);
  assert.equal(changedIds, []);
});

test('reports a principal that was verified during its revocation on this node', async () => {
  const { harness, changedIds, open, key } = made();
  const credentials = await key();
  const gate = Promise.withResolvers<void>();
  harness.watch.gate = gate.promise;
  const entering = harness.auth.authenticate(credentials);
  await passTurns(20);
  harness.watch.gate = undefined;
  const id = `key:${credentials.apiKey.slice(3, 19)}`;
  await harness.auth.accounts.revokeApiKey(id.slice('key:'.length));
  gate.resolve();
  assert.is((await entering).id, id);
  open.add(id); // for example a session that no caller will be able to use
  assert.equal(changedIds.splice(0), [id]);
  await tick(harness);
  assert.equal(changedIds, [id]);
});

test('stops its checks when it is closed, and does not start them while authentication is off', async () => {
  for (const enabled of [true, false]) {
    const harness = authHarness({ enabled });
    let looks = 0;
    harness.auth.watchSessions(() => {
      looks += 1;
      return [];
    });
    if (enabled) await harness.auth.close();
    await tick(harness);
    assert.is(looks, 0);
  }
});

const later = new Date(START_MS + 60_000).toISOString();

/** A session revalidator with a source of open sessions; records the accounts it reports. */
function made() {
  const harness = authHarness();
  const open = new Set<string>();
  const changedIds: string[] = [];
  harness.auth.changed$.subscribe((id) => changedIds.push(id));
  harness.auth.watchSessions(() => open);
  return {
    harness,
    open,
    changedIds,
    /** Authenticates a principal that opens a session. */
    enter: async (credentials: Parameters<typeof harness.auth.authenticate>[0]): Promise<string> => {
      const { id } = await harness.auth.authenticate(credentials);
      open.add(id);
      return id;
    },
    key: async (ownerId?: string, expiresAtMs?: number) => {
      const expiresAt = expiresAtMs === undefined ? undefined : new Date(expiresAtMs).toISOString();
      const made = await harness.createKey({ ownerId, expiresAt });
      return { apiKey: made.key };
    },
  };
}

/** Reports a change of the store, and waits for the work that this starts. */
async function storeChanged(harness: ReturnType<typeof authHarness>): Promise<void> {
  harness.emitChange('changed');
  await passTurns(20);
}

/** Advances the time to the next check. */
async function tick(
  harness: ReturnType<typeof authHarness>,
  news: 'answered' | 'silent' = 'answered',
): Promise<void> {
  harness.clock.pass(lookMs);
  if (news === 'answered') harness.emitChange(news);
  mock.timers.tick(lookMs);
  await passTurns(20);
}

test.run();
