// Which node serves a session, by the table of members in simulated time.

import * as assert from 'uvu/assert';
import { RELEASED } from '../../../src/domain/nodes/life.ts';
import { MemoryStore } from '../../../src/persistence/memory/memory-store.ts';
import { againWith, chosenSeed, Dice } from '../../helpers/dice.ts';
import { suite } from '../../helpers/suite.ts';
import { simulateTime } from '../../helpers/time/simulated-time.ts';
import { JoinedNodes, pass, rowOf } from './joined-nodes.ts';

const test = suite('node table: holders of sessions');
let joined: JoinedNodes;
simulateTime(test, () => {
  joined = new JoinedNodes();
});

test('who serves a session: decided from its row and from what the members are known to be', async () => {
  const [a, b] = [await joined.join('a'), await joined.join('b')];
  await pass(4_000);
  const decided = (life: string, node = 'b') => a.decideSession(rowOf(life, node));
  const claim = { do: 'claim' };
  assert.equal(await decided(a.life, 'a'), { do: 'recover' });
  assert.equal(await decided(RELEASED), claim);
  assert.equal(await decided(b.life), { do: 'forward', life: b.life });
  assert.equal(await decided('never-was'), { do: 'end', reason: 'unknown life' });
  assert.equal(await decided('never-was', 'a'), claim, 'an earlier life of this node is over');
  // Silence is no end: nobody claims, whatever time passes, while the row of the node changes.
  joined.pings.set(b.life, 'silent');
  await pass(30_000);
  assert.is(a.list()[1]?.state, 'silent');
  assert.equal(await decided(b.life), { do: 'forward', life: b.life });
  await b.close();
  await pass(4_000);
  assert.equal(await decided(b.life), claim);
});

test('a session without a row is of a node that has just begun, or of none: the members are read for it once a second', async () => {
  const a = await joined.join('a');
  await pass(2_000);
  const { list } = joined.store.nodes;
  let reads = 0;
  joined.store.nodes.list = () => {
    reads += 1;
    return list();
  };
  const b = await joined.join('b');
  reads = 0;
  const found: unknown[] = [];
  const guesses = Array.from({ length: 50 }, (_, n) => `life-g${n}`);
  for (const life of [b.life, a.life, ...guesses])
    void a.mayBeStoredLater(life).then((may) => found.push(may));
  await pass(1_100);
  assert.equal(found.toSorted(), [...[a.life, ...guesses].map(() => false), true]);
  assert.ok(reads <= 2, `${reads} reads`);
  await b.close();
  await pass(4_000);
  assert.is(await a.mayBeStoredLater(b.life), false, 'its node stopped');
});

test('a node that goes on under its next life stores nothing more under the one before, as it knows itself at once', async () => {
  const away = new Set<string>();
  const [a, b] = [await joined.join('a', { away }), await joined.join('b', { away })];
  await pass(4_000);
  const { life } = b;
  away.add(life);
  b.halt();
  await pass(14_000);
  assert.equal([a.find(life), await a.mayBeStoredLater(life)], [undefined, true]);
  away.delete(life);
  let servedAs = '';
  void b.untilLifeKnown()?.then(() => {
    servedAs = b.life;
  });
  await pass(500, 100);
  assert.equal([servedAs !== '' && servedAs !== life, await b.mayBeStoredLater(life)], [true, false]);
  await pass(4_000);
  assert.equal([a.find(servedAs)?.node, await a.mayBeStoredLater(life)], ['b', false]);
});

test('whether a session without a row may get one is not decided while the members cannot be read', async () => {
  const a = await joined.join('a');
  Object.assign(joined.store.nodes, { list: () => Promise.reject(new Error('away')) });
  let outcome: unknown;
  void a.mayBeStoredLater('unknown-').catch(({ code }) => {
    outcome = code;
  });
  await pass(1_500);
  assert.is(outcome, 'DATABASE_UNAVAILABLE');
});

test('in every order of ends, releases, silences and failures of the database, no session of a live node is claimed', async () => {
  const seed = chosenSeed();
  const dice = new Dice(seed);
  for (let runs = 0; runs < 12; runs += 1) {
    joined.store = new MemoryStore();
    joined.pings.clear();
    const a = await joined.join('a');
    const others = [await joined.join('b'), await joined.join('c'), await joined.join('d')];
    await pass(4_000);
    const closed = new Set<string>();
    const { list } = joined.store.nodes;
    const log: string[] = [];
    for (let steps = 0; steps < 12; steps += 1) {
      const one = dice.pick(others);
      const event = dice.pick(['close', 'silence', 'answer', 'database away', 'database back', 'join']);
      log.push(`${event} ${one.life}`);
      if (event === 'close' && closed.size < others.length - 1) {
        closed.add(one.life);
        await one.close();
      } else if (event === 'silence') joined.pings.set(one.life, 'silent');
      else if (event === 'answer') joined.pings.delete(one.life);
      else if (event === 'database away')
        Object.assign(joined.store.nodes, { list: () => Promise.reject(new Error('away')) });
      else if (event === 'database back') Object.assign(joined.store.nodes, { list });
      else if (event === 'join' && joined.store.nodes.list === list && others.length < 6)
        others.push(await joined.join(dice.pick(['e', 'f', 'g'])));
      await pass(dice.pick([500, 2_000, 5_000]));
      for (const { life } of others) {
        const decision = await a.decideSession(rowOf(life)).catch(({ code }) => ({ do: String(code) }));
        const hint = `${life}: ${JSON.stringify(decision)} after ${log.join(', ')}; ${againWith(seed)}`;
        const mayClaim = closed.has(life) || (await isEnded(list, life));
        if (!mayClaim) assert.ok(decision.do === 'forward' || decision.do === 'DATABASE_UNAVAILABLE', hint);
        else assert.ok(['claim', 'forward', 'DATABASE_UNAVAILABLE'].includes(decision.do), hint);
      }
    }
    Object.assign(joined.store.nodes, { list });
    await pass(8_000);
    for (const life of closed) assert.is((await a.decideSession(rowOf(life))).do, 'claim');
    await Promise.all([a, ...others].map((table) => table.close()));
  }
});

test('the holder of a session is not decided while the members cannot be read', async () => {
  const a = await joined.join('a');
  const row = { key: 'k', node: 'b', life: 'unknown-', generation: 1, value: '', usedAt: '' };
  const decided = async () => a.decideSession(row).catch(({ code }) => code);
  const { list } = joined.store.nodes;
  Object.assign(joined.store.nodes, { list: () => Promise.reject(new Error('away')) });
  assert.is(await decided(), 'DATABASE_UNAVAILABLE');
  Object.assign(joined.store.nodes, { list });
  assert.equal(await decided(), { do: 'end', reason: 'unknown life' });
});

test('the sessions of a drained node go on at live nodes that are not drained, each at the same one', async () => {
  const [a, b, c] = [await joined.join('a'), await joined.join('b'), await joined.join('c')];
  await pass(4_000);
  const keys = Array.from({ length: 40 }, (_, n) => n.toString(16).padStart(8, '0'));
  const successors = () => new Set(keys.map((key) => a.successorOf(key)));
  assert.equal(successors(), new Set([b.life, c.life]));
  assert.is(a.successorOf(keys[7] ?? ''), a.successorOf(keys[7] ?? ''));
  await c.close();
  await pass(4_000);
  assert.equal(successors(), new Set([b.life]));
  const { list } = joined.store.nodes;
  Object.assign(joined.store.nodes, { list: () => Promise.reject(new Error('away')) });
  await pass(4_000);
  assert.equal(successors(), new Set([undefined]));
  Object.assign(joined.store.nodes, { list });
  joined.doing = { programs: 0, calls: 0, isDraining: true };
  await pass(8_000);
  assert.equal(successors(), new Set([undefined]));
});
test.run();

async function isEnded(list: MemoryStore['nodes']['list'], life: string): Promise<boolean> {
  const row = (await list()).find((stored) => stored.life === life);
  return row === undefined || row.end !== undefined;
}
