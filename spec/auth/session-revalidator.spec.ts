// Those who have something open: what happens to their accounts on other nodes (the store changes and there is news), and
// when their keys expire.

import { mock } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import type { User, UserChange } from '../../src/domain/account.ts';
import { MOST_FOUND } from '../../src/persistence/store.ts';
import { suite } from '../helpers/suite.ts';
import { authHarness, LIFETIME_MS, START_MS } from './auth-harness.ts';

const lookMs = 2_000;
const test = suite('who may keep what they have open');

test.before.each(() => mock.timers.enable({ apis: ['setInterval'] }));
test.after.each(() => mock.timers.reset());

test('a key or a user that another node deleted, disabled or changed is told; an address is nobody else', async () => {
  const { stage, told, enter, key } = made();
  const names = ['deleted', 'disabled', 'renewed', 'confined', 'untouched'];
  const users = new Map<string, User>();
  for (const name of names) users.set(name, await stage.createUser(name));
  const idOf = (name: string) => users.get(name)?.id ?? '';
  const ids = new Map<string, string>();
  for (const [name, user] of users) {
    ids.set(name, await enter(await stage.bearer(user)));
    ids.set(`key of ${name}`, await enter(await key(idOf(name))));
  }
  const free = await stage.auth.accounts.createApiKey({ name: 'free', permissions: ['tools:call'] });
  ids.set('free key', await enter({ apiKey: free.key }));
  stage.hear('changed');
  await settled();
  assert.equal(told, []);

  const elsewhere = (name: string, change: Omit<UserChange, 'updatedAt'>) =>
    stage.store.accounts.changeUser(idOf(name), { ...change, updatedAt: later });
  await stage.store.accounts.deleteApiKey(free.apiKey.apiKey.id);
  await stage.store.accounts.deleteUser(idOf('deleted'));
  await elsewhere('disabled', { isActive: false, credentialsChangedAt: later });
  await elsewhere('renewed', { passwordHash: 'x', credentialsChangedAt: later });
  await elsewhere('confined', { templates: ['demo'] });
  await elsewhere('untouched', { email: 'other@example.org' });
  await settled();
  assert.equal(told, []);
  stage.hear('changed');
  await settled();
  const lost = [...ids].filter(([name]) => !name.endsWith('untouched')).map(([, id]) => id);
  assert.equal(told.toSorted(), lost.toSorted());

  // Once: who is still there stands as he stands now.
  told.length = 0;
  stage.hear('changed');
  await settled();
  const gone = ['free key', 'deleted', 'disabled'].flatMap((name) => [name, `key of ${name}`]);
  assert.equal(told.toSorted(), gone.flatMap((name) => ids.get(name) ?? []).toSorted());
});

test('a key that expires is told within a look, without news and without a question', async () => {
  const { stage, told, enter, key } = made();
  const short = await enter(await key(undefined, START_MS + 5_000));
  await enter(await key(undefined, START_MS + 50_000));
  stage.watch.asked.length = 0;
  for (const passedMs of [2_000, 4_000]) {
    await tick(stage);
    assert.equal([stage.clock.nowMs, told], [START_MS + passedMs, []]);
  }
  await tick(stage);
  assert.equal(told, [short]);
  assert.equal(stage.watch.asked, []);
});

test('a token that ends costs nothing: its user may come with the next one', async () => {
  const { stage, told, enter } = made();
  const ada = await stage.createUser('ada');
  await enter(await stage.bearer(ada));
  stage.clock.pass(LIFETIME_MS + 1);
  stage.hear('answered');
  await tick(stage);
  await enter(await stage.bearer(ada));
  await tick(stage);
  assert.equal(told, []);
});

test('the store is asked by two questions for all, and only when it may have news', async () => {
  const { stage, open, enter, key } = made();
  for (let count = 0; count < 20; count += 1) await enter(await key());
  open.add('anonymous');
  stage.watch.asked.length = 0;
  await tick(stage);
  assert.equal(stage.watch.asked, []);
  stage.hear('changed');
  await settled();
  assert.equal(stage.watch.asked, ['findApiKeys', 'findUsers']);
  await tick(stage);
  assert.is(stage.watch.asked.length, 2);
  // No news at all for long: then it is asked anyway.
  for (let count = 0; count < 6; count += 1) await tick(stage, 'silent');
  assert.is(stage.watch.asked.length, 4);
});

test('many are asked about in pieces', async () => {
  const { stage, open, told } = made();
  for (let count = 0; count <= MOST_FOUND; count += 1) open.add(`key:${count}`);
  stage.watch.asked.length = 0;
  await tick(stage);
  assert.is(stage.watch.asked.length, 4);
  assert.is(told.length, MOST_FOUND + 1, 'those without an account');
});

test('who has nothing open is not asked about', async () => {
  const { stage, open, told, enter, key } = made();
  open.delete(await enter(await key()));
  stage.watch.asked.length = 0;
  stage.hear('changed');
  await settled();
  assert.equal([told, stage.watch.asked], [[], []]);
});

test('a database that is away costs nobody anything, and is asked again when it is back', async () => {
  const { stage, told, enter, key } = made();
  const id = await enter(await key());
  await stage.store.accounts.deleteApiKey(id.slice('key:'.length));
  stage.watch.isAway = true;
  stage.hear('changed');
  await settled();
  stage.hear('away');
  await tick(stage, 'silent');
  assert.equal([told, stage.warnings], [[], []]);
  stage.watch.isAway = false;
  stage.hear('answered');
  await tick(stage);
  assert.equal(told, [id]);
});

test('a store that is broken is told of', async () => {
  const { stage, enter, key } = made();
  await enter(await key());
  stage.watch.gate = Promise.reject(new TypeError('a fault of ours'));
  stage.watch.gate.catch(() => undefined); // before anybody waits for it
  stage.hear('changed');
  await settled();
  assert.is(stage.warnings.length, 1);
});

test('what changed while the store was asked is asked about again', async () => {
  const { stage, told, enter, key } = made();
  const id = await enter(await key());
  const gate = Promise.withResolvers<void>();
  stage.watch.gate = gate.promise;
  stage.hear('changed');
  await settled();
  await stage.store.accounts.deleteApiKey(id.slice('key:'.length));
  stage.hear('changed');
  gate.resolve();
  await settled();
  assert.equal(told, []);
  await tick(stage);
  assert.equal(told, [id]);
});

test('who logs in again after a change elsewhere loses what was opened before, once', async () => {
  const { stage, told, enter } = made();
  const ada = await stage.createUser('ada');
  const id = await enter(await stage.bearer(ada));
  const changed = await stage.store.accounts.changeUser(ada.id, {
    passwordHash: 'x',
    credentialsChangedAt: later,
    updatedAt: later,
  });
  stage.clock.pass(1);
  await enter(await stage.bearer(changed));
  assert.equal(told.splice(0), [id]);
  stage.hear('changed');
  await settled();
  assert.equal(told, []);
});

test('a revocation on this node reaches who was let in while it happened', async () => {
  const { stage, told, open, key } = made();
  const credentials = await key();
  const gate = Promise.withResolvers<void>();
  stage.watch.gate = gate.promise;
  const entering = stage.auth.authenticate(credentials);
  await settled();
  stage.watch.gate = undefined;
  const id = `key:${credentials.apiKey.slice(3, 19)}`;
  await stage.auth.accounts.revokeApiKey(id.slice('key:'.length));
  gate.resolve();
  assert.is((await entering).id, id);
  open.add(id); // a session, say, that nobody will be able to use
  assert.equal(told.splice(0), [id]);
  await tick(stage);
  assert.equal(told, [id]);
});

test('looks end with the handle, and never begin while authentication is off', async () => {
  const { stage, told, enter, key } = made();
  await enter(await key(undefined, START_MS + 1_000));
  await stage.auth.close();
  await tick(stage);
  assert.equal(told, []);

  const off = authHarness({ enabled: false });
  let looks = 0;
  off.auth.watchSessions(() => {
    looks += 1;
    return [];
  });
  await tick(off);
  assert.is(looks, 0);
});

const later = new Date(START_MS + 60_000).toISOString();

/** A session revalidator with a source of open sessions; records the accounts it reports. */
function made() {
  const stage = authHarness();
  const open = new Set<string>();
  const told: string[] = [];
  stage.auth.changed$.subscribe((id) => told.push(id));
  stage.auth.watchSessions(() => open);
  return {
    stage,
    open,
    told,
    /** Lets somebody in who opens something. */
    enter: async (credentials: Parameters<typeof stage.auth.authenticate>[0]): Promise<string> => {
      const { id } = await stage.auth.authenticate(credentials);
      open.add(id);
      return id;
    },
    key: async (ownerId?: string, expiresAtMs?: number) => {
      const expiresAt = expiresAtMs === undefined ? undefined : new Date(expiresAtMs).toISOString();
      const made = await stage.auth.accounts.createApiKey({
        name: 'robot',
        permissions: ['tools:call'],
        ownerId,
        expiresAt,
      });
      return { apiKey: made.key };
    },
  };
}

/** One look later. */
async function tick(
  stage: ReturnType<typeof authHarness>,
  news: 'answered' | 'silent' = 'answered',
): Promise<void> {
  stage.clock.pass(lookMs);
  if (news === 'answered') stage.hear(news);
  mock.timers.tick(lookMs);
  await settled();
}

async function settled(): Promise<void> {
  for (let turns = 0; turns < 20; turns += 1) await turn();
}

test.run();
