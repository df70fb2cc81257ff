// Addresses at which accounts are connected in the middle of calls, where several calls of one owner ask at once.

import * as assert from 'uvu/assert';
import { systemClock } from '../../src/domain/time/clock.ts';
import { MemoryStore } from '../../src/persistence/memory/memory-store.ts';
import { type Connected, type ConnectGoal, ConnectLinks } from '../../src/vault/connect-links.ts';
import { thrownBy } from '../helpers/outcome.ts';
import { suite } from '../helpers/suite.ts';
import { settled } from '../helpers/time/simulated-time.ts';

const test = suite('addresses for connecting');
const GOAL: ConnectGoal = { template: 'mail', instanceId: 'mail-1', owner: 'ann' };

function setup() {
  const store = new MemoryStore().oauth;
  const alarms = new Set<() => void>();
  const alarm = (_: number, callback: () => void) => {
    alarms.add(callback);
    return () => alarms.delete(callback);
  };
  const checks = new Set<() => void>();
  const every = (_: number, check: () => void) => {
    checks.add(check);
    return () => checks.delete(check);
  };
  const background = { ...systemClock.background, alarm, every };
  const world = { isConnected: async (_: ConnectGoal) => false };
  const links = new ConnectLinks({
    ...{ store, clock: { ...systemClock, background }, base: () => 'https://gateway.example' },
    isConnected: (goal) => world.isConnected(goal),
  });
  return { store, alarms, checks, world, links };
}

test('calls of one owner at once get one address, and all go on with the connection', async () => {
  const { store, links, alarms } = setup();
  const told: Connected[] = [];
  links.connected$.subscribe((connected) => told.push(connected));
  const waits = [links.whenConnected(GOAL, 60_000), links.whenConnected(GOAL, 60_000)];
  const [first, second] = await Promise.all([links.linkFor(GOAL), links.linkFor(GOAL)]);
  assert.equal(first, second);
  assert.is(await store.count({ kind: 'visit' }), 1);
  const other = await links.linkFor({ ...GOAL, owner: 'bob' });
  assert.is.not(other.url, first.url);
  await settled();
  links.connected(GOAL);
  await Promise.all(waits);
  assert.equal(told, [{ ...GOAL, elicitationIds: [first.elicitationId] }]);
  assert.is(alarms.size, 0);
});

test('a database that does not answer leaves nothing that waits', async () => {
  const { store, world, links, alarms } = setup();
  const { save } = store;
  store.save = async () => Promise.reject(new Error('away'));
  await thrownBy(links.linkFor(GOAL));
  store.save = save;
  world.isConnected = async () => Promise.reject(new Error('away'));
  await links.whenConnected(GOAL, 60_000);
  assert.is(alarms.size, 0);
});

test('an account that cannot be read does not hide the connections of others', async () => {
  const { world, links, checks } = setup();
  const told: string[] = [];
  links.connected$.subscribe(({ owner }) => told.push(owner));
  for (const owner of ['ann', 'bob', 'cid']) await links.linkFor({ ...GOAL, owner });
  world.isConnected = async ({ owner }) => owner !== 'bob' || Promise.reject(new Error('its row is damaged'));
  for (const check of checks) check();
  await settled();
  assert.equal(told.sort(), ['ann', 'cid']);
  links.close();
});

test('nothing is checked, and nothing waits, for an address that is made while it closes', async () => {
  const { store, links, alarms, checks } = setup();
  const { save } = store;
  const held = Promise.withResolvers<void>();
  store.save = async (row) => held.promise.then(() => save(row));
  const waits = [links.whenConnected(GOAL, 60_000), links.linkFor(GOAL)];
  links.close();
  held.resolve();
  await Promise.all([...waits, links.whenConnected(GOAL, 60_000)]);
  assert.equal([checks.size, alarms.size], [0, 0]);
});

test.run();
