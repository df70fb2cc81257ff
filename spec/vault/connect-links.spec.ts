// Addresses at which accounts are connected in the middle of calls, where several calls of one owner ask at once.

import * as assert from 'uvu/assert';
import { CONNECT_LINK_MS } from '../../src/domain/calls/connection-required.ts';
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
  const world = { isConnected: async (_: ConnectGoal) => false, laterMs: 0 };
  const links = new ConnectLinks({
    ...{ store, base: () => 'https://gateway.example' },
    clock: { ...systemClock, background, now: () => systemClock.now() + world.laterMs },
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

test('an address that is renewed while others are checked is still waited for', async () => {
  const { world, links, checks } = setup();
  const told: string[] = [];
  links.connected$.subscribe(({ owner }) => told.push(owner));
  await links.linkFor({ ...GOAL, owner: 'cid' });
  await links.linkFor({ ...GOAL, owner: 'bob' }); // the newest is looked at first
  world.laterMs = CONNECT_LINK_MS - 1_000;
  const bob = Promise.withResolvers<boolean>();
  world.isConnected = ({ owner }) => (owner === 'bob' ? bob.promise : Promise.resolve(false));
  for (const check of checks) check();
  world.laterMs += 10_000;
  const waits = links.whenConnected({ ...GOAL, owner: 'cid' }, 60_000);
  await settled();
  bob.resolve(false);
  await settled();
  links.connected({ ...GOAL, owner: 'cid' });
  assert.equal(told, ['cid']);
  await waits;
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
