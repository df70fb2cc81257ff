// The table of members: nodes on one store in memory, in simulated time. Each sends heartbeats, sees the others, and ends lives that are
// over. The rules alone: spec/cluster/rules. Real gateways: spec/system/nodes/members.spec.ts.

import { mock } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import type { PingResult } from '../../../src/cluster/channel/peer-prober.ts';
import { loneNode } from '../../../src/cluster/lone-node.ts';
import { NodeTable } from '../../../src/cluster/node-table/node-table.ts';
import { ClusterCounts } from '../../../src/counts/cluster-counts.ts';
import { RELEASED } from '../../../src/domain/nodes/life.ts';
import {
  foreignNodes,
  type LeasedPrograms,
  otherDatabases,
  otherVersions,
  type ShownNode,
  silentNodes,
} from '../../../src/domain/nodes/nodes.ts';
import { MemoryStore } from '../../../src/persistence/memory/memory-store.ts';
import { againWith, chosenSeed, Dice } from '../../helpers/dice.ts';
import { suite } from '../../helpers/suite.ts';
import { simulatedClock, simulateTime } from '../../helpers/time/simulated-time.ts';

const test = suite('node table');
const SECRET = 'a secret of these nodes, 32 bytes or more';
let store: MemoryStore;
/** What pings of each life meet; silent: no answer. */
const pings = new Map<string, PingResult | 'silent'>();
/** What the members that are asked about another one say, by their life. Default: they reach it. */
const opinions = new Map<string, 'reached' | 'refused' | 'silent'>();
/** `<third> about <life>` */
const questions: string[] = [];
const notices: string[] = [];
/** What happened to the program: its life, and whether it was started, stopped or killed. */
const programs: (readonly [life: string, what: string])[] = [];
let doing: Pick<ShownNode, 'programs' | 'calls' | 'isDraining'>;

simulateTime(test, () => {
  store = new MemoryStore();
  pings.clear();
  opinions.clear();
  questions.length = 0;
  notices.length = 0;
  programs.length = 0;
  doing = { programs: 0, calls: 0, isDraining: false };
});

test('a node has a row from its start, and sees another one after its next read', async () => {
  const [a, b] = [await joined('a'), await joined('b')];
  await pass(4_000);
  for (const [table, other] of [
    [a, b],
    [b, a],
  ] as const) {
    const node = other === a ? 'a' : 'b';
    assert.equal(table.find(other.life), { node, life: other.life, address: `http://${node}:1` });
    assert.equal(
      table.list().map(({ id, state }) => [id, state]),
      [
        [node === 'a' ? 'b' : 'a', 'live'],
        [node, 'live'],
      ],
    );
  }
});

test('a heartbeat every 3 s says what the node does', async () => {
  const [a] = [await joined('a'), await joined('b')];
  doing = { programs: 3, calls: 7, isDraining: true };
  await pass(7_000);
  const other = a.list()[1];
  assert.equal([other?.programs, other?.calls, other?.isDraining], [3, 7, true]);
  const counters = (await store.nodes.list()).map(({ counter }) => counter);
  assert.ok(counters.every((counter) => counter >= 2));
});

test('a node that does not answer pings is silent', async () => {
  const [a, b, c] = [await joined('a'), await joined('b'), await joined('c')];
  await pass(4_000);
  assert.equal(a.openers, []);
  pings.set(b.life, 'silent');
  await pass(4_000);
  assert.is(a.list().find(({ life }) => life === b.life)?.state, 'silent');
  assert.ok(a.find(b.life));
  assert.equal(a.openers, [c.life], 'it may reach what this node does not');
});

test('the life of a node whose heartbeats end is ended after 10 s, and one that refuses connections at once', async () => {
  const a = await joined('a');
  const [b, c] = [await joined('b'), await joined('c', { isDead: true })];
  await pass(4_000);
  assert.is(a.list().length, 3);
  await pass(15_000);
  assert.is(a.find(c.life), undefined);
  assert.ok(await a.mayBeStoredLater(c.life), 'it may only stand still');
  b.halt();
  pings.set(b.life, 'refused');
  await pass(5_000);
  assert.is((await store.nodes.list()).find(({ life }) => life === b.life)?.end?.cause, 'refused');
  assert.match(notices.join('\n'), 'the node "b" is gone: its address refuses connections');
  await pass(20_000); // its programs are freed, too
  for (const { life } of [b, c]) assert.is(await a.mayBeStoredLater(life), false);
  assert.equal(a.counts.livesEnded, { refused: 1, expired: 1 - b.counts.livesEnded.expired, restarted: 0 });
});

test('the members are read when a node answers pings no more as the life that it had', async () => {
  const [a, b] = [await joined('a'), await joined('b')];
  await pass(5_000);
  const { list } = store.nodes;
  let reads = 0;
  store.nodes.list = () => {
    reads += 1;
    return list.call(store.nodes);
  };
  await store.nodes.end(b.life, undefined, { cause: 'stopped', frees: 'all' });
  pings.set(b.life, 'failed');
  for (let count = 0; count < 10; count += 1) a.suspect(b.life);
  await pass(500, 100);
  assert.equal([a.find(b.life), reads], [undefined, 1]);
  store.nodes.list = list;
});

test('a worker that its supervisor sees end is gone at once, whatever its pings said', async () => {
  const [a, b] = [await joined('a'), await joined('b')];
  await pass(4_000);
  await a.seeProcesses([a.life, b.life], undefined);
  pings.set(b.life, 'refused');
  await pass(15_000);
  assert.is(a.list()[1]?.state, 'live');
  b.halt();
  void a.seeProcesses([a.life], b.life);
  await pass(100);
  assert.is((await store.nodes.list()).find(({ life }) => life === b.life)?.end?.cause, 'restarted');
  assert.is(a.find(b.life), undefined);
});

test('a node that stops ends its life, and its row goes after half an hour', async () => {
  const [a, b] = [await joined('a'), await joined('b')];
  await pass(4_000);
  await b.close();
  await pass(4_000);
  assert.is(a.list()[1]?.state, 'ended');
  await pass(31 * 60_000, 3_000);
  assert.equal(
    (await store.nodes.list()).map(({ life }) => life),
    [a.life],
  );
});

test('a node that leaves waits until the others know it, if there are any', async () => {
  const [a, b] = [await joined('a'), await joined('b')];
  await pass(4_000);
  let hasLeft = false;
  void b.leave().then(() => {
    hasLeft = true;
  });
  await pass(2_500);
  assert.equal([a.find(b.life), hasLeft], [undefined, false]);
  await pass(1_000);
  assert.ok(hasLeft);
  await a.leave(); // time stands still
});

test('a node that others ended goes on under a new life', async () => {
  const a = await joined('a');
  const { life } = a;
  await store.nodes.end(life, undefined, { cause: 'refused', frees: 'sessions' });
  await pass(8_000);
  assert.is.not(a.life, life);
  assert.equal([a.counts.livesLost, a.counts.livesEnded.refused], [1, 0]);
  const named = notices.filter((line) => line.includes('set cluster.advertise'));
  assert.equal(named.length, 1, 'its address, once');
  assert.equal(
    (await store.nodes.list()).filter(({ end }) => end === undefined).map((row) => row.life),
    [a.life],
  );
  // As `/readyz?verbose` and `doctor` say it.
  assert.equal(silentNodes(a.list()), [
    'other nodes cannot connect to this one: set cluster.advertise to an address that they reach',
  ]);
});

test('a node that was frozen serves nothing before the database has confirmed its life', async () => {
  const a = await joined('a');
  assert.is(a.untilLifeKnown(), undefined);
  a.halt();
  await pass(6_000);
  assert.is(a.untilLifeKnown(), undefined, 'nobody can have ended it so soon');
  await pass(6_000);
  const { life } = a;
  const { beat } = store.nodes;
  const { promise: answers, resolve } = Promise.withResolvers<void>();
  store.nodes.beat = async (...beaten) => answers.then(() => beat(...beaten));
  let isLifeKnown = false;
  void a.untilLifeKnown()?.then(() => {
    isLifeKnown = true;
  });
  await pass(500);
  assert.is(isLifeKnown, false);
  resolve();
  await pass(500);
  assert.equal([isLifeKnown, a.untilLifeKnown(), a.life], [true, undefined, life]);
});

test('a node whose life others ended while it was frozen serves under the next one, when its sessions have ended', async () => {
  const ending = Promise.withResolvers<void>();
  const a = await joined('a', { onNextLife: () => ending.promise });
  const { life } = a;
  a.halt();
  await store.nodes.end(life, undefined, { cause: 'expired', frees: 'sessions' });
  await pass(12_000);
  let servedAs = '';
  void a.untilLifeKnown()?.then(() => {
    servedAs = a.life;
  });
  await pass(500);
  assert.is(servedAs, '');
  ending.resolve();
  await pass(500);
  assert.is.not(servedAs, life);
  const rows = await store.nodes.list();
  assert.is(rows.find((row) => row.life === servedAs)?.end, undefined);
  assert.is(a.untilLifeKnown(), undefined);
});

test('a node that was frozen goes on when the database is away, and does not ask again for each request', async () => {
  const a = await joined('a');
  a.halt();
  await pass(12_000);
  store.nodes.beat = () => new Promise(() => {});
  let isLifeKnown = false;
  void a.untilLifeKnown()?.then(() => {
    isLifeKnown = true;
  });
  await pass(2_000);
  assert.equal([isLifeKnown, a.untilLifeKnown()], [true, undefined]);
});

test('a node that was frozen does not go on because its heartbeat fails, while others reach the database', async () => {
  const [a] = [await joined('a'), await joined('b')];
  await pass(4_000);
  const { life } = a;
  a.halt();
  await pass(14_000);
  const { beat } = store.nodes;
  store.nodes.beat = async (of, state) => {
    if (of !== life) return beat(of, state);
    store.nodes.beat = beat;
    throw new Error('its connections were closed');
  };
  const servedAs: string[] = [];
  void a.untilLifeKnown()?.then(() => servedAs.push(a.life));
  await pass(500);
  assert.equal([servedAs.length, servedAs.includes(life)], [1, false]);
});

test('a node that was frozen goes on when the database is away for the others, too', async () => {
  const away = new Set<string>();
  const [a, b] = [await joined('a', { away }), await joined('b', { away })];
  await pass(4_000);
  for (const { life } of [a, b]) away.add(life);
  a.halt();
  await pass(12_000);
  const { life } = a;
  const servedAs: string[] = [];
  void a.untilLifeKnown()?.then(() => servedAs.push(a.life));
  await pass(3_000);
  assert.equal([servedAs, a.untilLifeKnown()], [[life], undefined]);
});

test('a node that cannot learn whether its life goes on refuses requests after 2.5 s, until it knows', async () => {
  const a = await joined('a');
  await store.nodes.end(a.life, undefined, { cause: 'expired', frees: 'sessions' });
  const { insert } = store.nodes;
  store.nodes.insert = () => new Promise(() => {});
  while (a.untilLifeKnown() === undefined) await pass(500);
  const outcomes: unknown[] = [];
  const serve = () =>
    void a.untilLifeKnown()?.then(
      () => outcomes.push('served'),
      ({ code, facts, delivered }) => outcomes.push([code, facts.retryAfterSeconds, delivered]),
    );
  serve();
  await pass(1_000);
  serve();
  assert.equal(outcomes, []);
  await pass(1_500);
  const refusal = ['NODE_UNAVAILABLE', 1, 'no'];
  assert.equal(outcomes, [refusal, refusal]);
  serve();
  await pass(1);
  assert.equal(outcomes.slice(2), [refusal]);
  store.nodes.insert = insert;
  await pass(4_000);
  assert.is(a.untilLifeKnown(), undefined);
});

test('a node that another one does not know reads its life again', async () => {
  const a = await joined('a');
  const { life } = a;
  a.halt();
  await a.recheck();
  assert.is(a.life, life);
  await store.nodes.end(life, undefined, { cause: 'refused', frees: 'sessions' });
  await a.recheck();
  assert.is.not(a.life, life);
  assert.is(a.untilLifeKnown(), undefined);
});

test('who serves a session: decided from its row and from what the members are known to be', async () => {
  const [a, b] = [await joined('a'), await joined('b')];
  await pass(4_000);
  const decided = (life: string, node = 'b') => a.decideSession(rowOf(life, node));
  const claim = { do: 'claim' };
  assert.equal(await decided(a.life, 'a'), { do: 'recover' });
  assert.equal(await decided(RELEASED), claim);
  assert.equal(await decided(b.life), { do: 'forward', life: b.life });
  assert.equal(await decided('never-was'), { do: 'end', reason: 'unknown life' });
  assert.equal(await decided('never-was', 'a'), claim, 'an earlier life of this node is over');
  // Silence is no end: nobody claims, whatever time passes, while the row of the node changes.
  pings.set(b.life, 'silent');
  await pass(30_000);
  assert.is(a.list()[1]?.state, 'silent');
  assert.equal(await decided(b.life), { do: 'forward', life: b.life });
  await b.close();
  await pass(4_000);
  assert.equal(await decided(b.life), claim);
});

test('a session without a row is of a node that has just begun, or of none: the members are read for it once a second', async () => {
  const a = await joined('a');
  await pass(2_000);
  const { list } = store.nodes;
  let reads = 0;
  store.nodes.list = () => {
    reads += 1;
    return list();
  };
  const b = await joined('b');
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

test('whether a session without a row may get one is not decided while the members cannot be read', async () => {
  const a = await joined('a');
  Object.assign(store.nodes, { list: () => Promise.reject(new Error('away')) });
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
    store = new MemoryStore();
    pings.clear();
    const a = await joined('a');
    const others = [await joined('b'), await joined('c'), await joined('d')];
    await pass(4_000);
    const closed = new Set<string>();
    const { list } = store.nodes;
    const log: string[] = [];
    for (let steps = 0; steps < 12; steps += 1) {
      const one = dice.pick(others);
      const event = dice.pick(['close', 'silence', 'answer', 'database away', 'database back', 'join']);
      log.push(`${event} ${one.life}`);
      if (event === 'close' && closed.size < others.length - 1) {
        closed.add(one.life);
        await one.close();
      } else if (event === 'silence') pings.set(one.life, 'silent');
      else if (event === 'answer') pings.delete(one.life);
      else if (event === 'database away')
        Object.assign(store.nodes, { list: () => Promise.reject(new Error('away')) });
      else if (event === 'database back') Object.assign(store.nodes, { list });
      else if (event === 'join' && store.nodes.list === list && others.length < 6)
        others.push(await joined(dice.pick(['e', 'f', 'g'])));
      await pass(dice.pick([500, 2_000, 5_000]));
      for (const { life } of others) {
        const decision = await a.decideSession(rowOf(life)).catch(({ code }) => ({ do: String(code) }));
        const hint = `${life}: ${JSON.stringify(decision)} after ${log.join(', ')}; ${againWith(seed)}`;
        const mayClaim = closed.has(life) || (await isEnded(list, life));
        if (!mayClaim) assert.ok(decision.do === 'forward' || decision.do === 'DATABASE_UNAVAILABLE', hint);
        else assert.ok(['claim', 'forward', 'DATABASE_UNAVAILABLE'].includes(decision.do), hint);
      }
    }
    Object.assign(store.nodes, { list });
    await pass(8_000);
    for (const life of closed) assert.is((await a.decideSession(rowOf(life))).do, 'claim');
    await Promise.all([a, ...others].map((table) => table.close()));
  }
});

for (const [opinion, wanted] of [
  ['refused', 'ended'],
  ['reached', 'live'],
  ['silent', 'live'],
] as const)
  test(`a node that refuses this one, and a third member to which it is ${opinion}: ${wanted}`, async () => {
    const [a, b, c] = [await joined('a'), await joined('b'), await joined('c')];
    await pass(4_000);
    opinions.set(c.life, opinion);
    pings.set(b.life, 'refused');
    await pass(1_500);
    const asked = [...new Set(questions)];
    assert.ok(asked.includes(`${c.life} about ${b.life}`), String(asked));
    const end = (await store.nodes.list()).find(({ life }) => life === b.life)?.end;
    assert.is(end?.cause, wanted === 'ended' ? 'refused' : undefined);
    const { do: decision } = await a.decideSession(rowOf(b.life));
    assert.is(decision, wanted === 'ended' ? 'claim' : 'forward');
  });

test('the holder of a session is not decided while the members cannot be read', async () => {
  const a = await joined('a');
  const row = { key: 'k', node: 'b', life: 'unknown-', generation: 1, value: '', usedAt: '' };
  const decided = async () => a.decideSession(row).catch(({ code }) => code);
  const { list } = store.nodes;
  Object.assign(store.nodes, { list: () => Promise.reject(new Error('away')) });
  assert.is(await decided(), 'DATABASE_UNAVAILABLE');
  Object.assign(store.nodes, { list });
  assert.equal(await decided(), { do: 'end', reason: 'unknown life' });
});

test('the sessions of a drained node go on at live nodes that are not drained, each at the same one', async () => {
  const [a, b, c] = [await joined('a'), await joined('b'), await joined('c')];
  await pass(4_000);
  const keys = Array.from({ length: 40 }, (_, n) => n.toString(16).padStart(8, '0'));
  const successors = () => new Set(keys.map((key) => a.successorOf(key)));
  assert.equal(successors(), new Set([b.life, c.life]));
  assert.is(a.successorOf(keys[7] ?? ''), a.successorOf(keys[7] ?? ''));
  await c.close();
  await pass(4_000);
  assert.equal(successors(), new Set([b.life]));
  const { list } = store.nodes;
  Object.assign(store.nodes, { list: () => Promise.reject(new Error('away')) });
  await pass(4_000);
  assert.equal(successors(), new Set([undefined]));
  Object.assign(store.nodes, { list });
  doing = { programs: 0, calls: 0, isDraining: true };
  await pass(8_000);
  assert.equal(successors(), new Set([undefined]));
});

test('the first read after a failed one counts before its changes are told', async () => {
  const [a, b] = [await joined('a'), await joined('b')];
  await pass(4_000);
  const { list } = store.nodes;
  Object.assign(store.nodes, { list: () => Promise.reject(new Error('away')) });
  await pass(4_000);
  const heard: (string | undefined)[] = [];
  a.onChanged(() => heard.push(a.successorOf('00000007')));
  Object.assign(store.nodes, { list });
  await pass(4_000);
  assert.ok(heard.length > 0);
  assert.equal([...new Set(heard)], [b.life]);
});

test('a start ends the former life of its node', async () => {
  const former = await joined('a', { isDead: true });
  const again = await joined('a');
  const ended = (await store.nodes.list()).filter(({ end }) => end !== undefined);
  assert.equal(
    ended.map(({ life, end }) => [life, end?.cause]),
    [[former.life, 'restarted']],
  );
  assert.is(again.find(former.life), undefined);
});

test('a node with another secret is foreign to the others, and is named', async () => {
  const [a, b] = [await joined('a'), await joined('b', { secrets: [`another ${SECRET}`] })];
  await pass(4_000);
  assert.is(a.find(b.life), undefined);
  assert.is(a.list()[1]?.state, 'foreign');
  assert.is(b.find(a.life), undefined);
  assert.match(notices.join('\n'), 'the node "b" has another secret than the other nodes of its database');
});

test('a node with another version of the protocol is foreign, and named with both versions, once', async () => {
  const a = await joined('a');
  const profiles = {
    next: { protocol: 2, version: '2.0.0' }, // all other fields may be others
    later: {
      protocol: 1,
      version: '1.1.0',
      address: 'http://later:1',
      since: '',
      follows_refusal: false,
      mac: '',
    },
    broken: 'no profile',
  };
  for (const [node, profile] of Object.entries(profiles))
    await store.nodes.insert({
      ...{ life: `life-${node}`, node, counter: 0, end: undefined, state: '{}' },
      profile: JSON.stringify(profile),
    });
  await pass(8_000);
  const line =
    'the node "next" has version 2.0.0 and protocol 2, this one 1.0.0 and protocol 1: it is not a member until all have the same version';
  const secrets = notices.filter((notice) => /secret/.test(notice));
  assert.equal([notices.filter((notice) => notice === line).length, secrets], [1, []]);
  const { id, version, state } = a.list().find(({ life }) => life === 'life-next') ?? {};
  assert.equal([id, version, state, a.find('life-next')], ['next', '2.0.0', 'foreign', undefined]);
  const released = 'the node "later" has version 1.1.0, this one 1.0.0';
  assert.equal(otherVersions(a.list()), [line, released]);
  assert.equal(
    foreignNodes(a.list()).map((text) => text.slice(0, 20)),
    ['the node "later" has', 'the node "broken" ha'],
  );
  const b = await joined('b'); // which finds it at its start
  assert.is(notices.filter((notice) => notice === line).length, 2);
  await store.nodes.end('life-next', undefined, { cause: 'stopped', frees: 'all' });
  await pass(4_000);
  assert.not.match(otherVersions(b.list()).join(), 'next');
});

test('nodes are members in each step of a rotation, and a node without the new key is foreign after it', async () => {
  const next = `next ${SECRET}`;
  const [a, b] = [
    await joined('a', { secrets: [SECRET, next] }),
    await joined('b', { secrets: [next, SECRET] }),
  ];
  await pass(4_000);
  assert.equal([a.find(b.life)?.node, b.find(a.life)?.node], ['b', 'a']);
  await a.close();
  const [again, c] = [await joined('a', { secrets: [next, SECRET] }), await joined('c', { secrets: [next] })];
  await pass(4_000);
  for (const [from, to] of [
    [again, b],
    [again, c],
    [b, c],
    [c, again],
  ] as const)
    assert.ok(from.find(to.life));
  assert.equal(notices, []);
  const late = await joined('late');
  await pass(4_000);
  assert.equal([late.find(c.life), c.find(late.life)], [undefined, undefined]);
  assert.match(notices.join('\n'), 'the node "late" has another secret');
});

test('a row that was changed in the database redirects nothing', async () => {
  const [a, b] = [await joined('a'), await joined('b')];
  await pass(4_000);
  const { list } = store.nodes;
  store.nodes.list = async () =>
    (await list()).map((row) => ({ ...row, profile: row.profile.replace('http://b:1', 'http://evil:1') }));
  await pass(4_000);
  assert.is(a.find(b.life), undefined);
});

test('a database that does not answer ends no life, and a start fails after 10 s', async () => {
  const [a, b] = [await joined('a'), await joined('b')];
  await pass(4_000);
  const { list, beat } = store.nodes;
  store.nodes.list = () => new Promise(() => {});
  store.nodes.beat = () => new Promise(() => {});
  await pass(60_000);
  store.nodes.list = list;
  store.nodes.beat = beat;
  await pass(20_000);
  assert.equal([a.find(b.life)?.node, b.find(a.life)?.node], ['b', 'a']);
  store.nodes.insert = () => new Promise(() => {});
  const failing = joined('c').then(
    () => 'joined',
    (thrown: Error) => thrown.message,
  );
  await pass(12_000);
  assert.is(await failing, 'the row of this node could not be written within 10 s');
});

test('a start takes the row that a slow database has written late', async () => {
  const { insert } = store.nodes;
  store.nodes.insert = async (row) => {
    await insert.call(store.nodes, row);
    await new Promise<void>((resolve) => void simulatedClock.background.alarm(4_000, resolve));
  };
  const joining = joined('a');
  await pass(5_000);
  const a = await joining;
  assert.equal(
    [a.untilLifeKnown(), (await store.nodes.list()).map(({ life }) => life)],
    [undefined, [a.life]],
  );
});

test('a program goes on while the database is away for all members', async () => {
  const away = new Set<string>();
  const nodes = [await joined('a', { away }), await joined('b', { away }), await joined('c', { away })];
  await pass(20_000);
  const before = [...programs];
  assert.equal(
    before.map(([, what]) => what),
    ['start'],
  );
  for (const { life } of nodes) away.add(life);
  await pass(60_000);
  assert.not.ok(nodes.some(({ isCutOff }) => isCutOff));
  away.clear();
  await pass(20_000);
  assert.equal(programs, before);
  assert.equal(notices, []);
  assert.equal(
    nodes.map((table) => table.list().filter(({ state }) => state === 'live').length),
    [3, 3, 3],
  );
});

test('a node whose database is slow is not cut off', async () => {
  const nodes = [await joined('a'), await joined('b')];
  await pass(4_000);
  const { list, beat } = store.nodes;
  const slowly = <Result>(answer: Result) =>
    new Promise<Result>((resolve) => void simulatedClock.background.alarm(4_000, () => resolve(answer)));
  store.nodes.list = async () => slowly(await list.call(store.nodes));
  store.nodes.beat = async (...values) => slowly(await beat.apply(store.nodes, values));
  for (let seconds = 0; seconds < 30; seconds += 1) {
    await pass(1_000);
    assert.not.ok(nodes.some(({ isCutOff }) => isCutOff));
  }
  store.nodes.list = list;
  store.nodes.beat = beat;
});

test('a program ends within the time of its lease when its node alone has lost the database', async () => {
  const away = new Set<string>();
  const nodes = [await joined('a', { away }), await joined('b', { away }), await joined('c', { away })];
  await pass(20_000);
  const [[holder = ''] = []] = programs;
  const lost = nodes.find(({ life }) => life === holder);
  away.add(holder);
  await pass(7_000);
  assert.equal(
    nodes.map((table) => table.isCutOff),
    nodes.map(({ life }) => life === holder),
  );
  assert.equal(
    nodes.map(({ openers }) => openers.toSorted()),
    nodes.map(({ life }) =>
      life === holder ? nodes.flatMap((other) => (other.life === life ? [] : other.life)).toSorted() : [],
    ),
    'the others open its sessions',
  );
  assert.equal(
    programs.map(([, what]) => what),
    ['start', 'kill'],
  );
  await pass(10_000);
  assert.equal(
    programs.map(([life, what]) => [life === holder, what]),
    [
      [true, 'start'],
      [true, 'kill'],
      [false, 'start'],
    ],
  );
  assert.ok(lost);
  const taken = nodes.map(({ counts }) => counts.leases.taken);
  assert.equal([lost.counts.leases, taken.toSorted()], [{ taken: 1, released: 0 }, [0, 1, 1]]);
  assert.match(notices.join(), `the node "${lost.list()[0]?.id}" is gone: it sent no heartbeat for 10 s`);
});

test('a member whose life is over says nothing about the database', async () => {
  const [a, b] = [await joined('a'), await joined('b')];
  assert.is(await a.isDatabaseAway(b.life), false);
  await a.close();
  const answer = a.isDatabaseAway(b.life);
  await pass(4_000);
  assert.is(await answer, undefined);
});

test('a node with a copy of the database is named on both sides', async () => {
  const a = await joined('a');
  await pass(4_000);
  const copy = new MemoryStore();
  for (const row of await store.nodes.list()) await copy.nodes.insert(row);
  store = copy;
  const b = await joined('b');
  await pass(40_000);
  assert.equal(otherDatabases(b.list()), [
    'the node "a" continues a life that has ended in this database: it uses another database, of which this one is a copy',
  ]);
  assert.equal(otherDatabases(a.list()), [
    'a node that uses a copy of the database of this node sends requests to it',
  ]);
  assert.equal(
    notices.filter((line) => /copy/.test(line)),
    [...otherDatabases(b.list()), ...otherDatabases(a.list())].toSorted(),
    'once each',
  );
});

test('a node that has stood still goes on with the same database, whatever it answers first', async () => {
  const [a, b] = [await joined('a'), await joined('b')];
  await pass(4_000);
  b.halt();
  await pass(26_000);
  assert.is(a.list()[1]?.state, 'ended');
  await b.recheck(); // it goes on, under its next life
  await pass(30_000);
  assert.equal([...otherDatabases(a.list()), ...otherDatabases(b.list())], []);
});

test('a gateway without others lists itself', () => {
  const list = loneNode({ id: 'a', life: 'life-a--', version: '1' }, simulatedClock, () => doing);
  const [own] = list();
  assert.equal([own?.id, own?.address, own?.state], ['a', undefined, 'live']);
});
test.run();

interface Options {
  readonly secrets?: readonly [string, ...string[]];
  /** Sends no heartbeat after its start. */
  readonly isDead?: boolean;
  readonly onNextLife?: () => Promise<void>;
  /** Lives that get no answer from the database. Default: all get one. */
  readonly away?: ReadonlySet<string>;
}

async function joined(
  node: string,
  { secrets: [first, ...others] = [SECRET], isDead = false, onNextLife = async () => {}, away }: Options = {},
): Promise<NodeTable & { readonly counts: ClusterCounts; halt(): void }> {
  const life = `life-${node}-${tables}`;
  tables += 1;
  let cancel = (): void => {};
  const { background } = simulatedClock;
  const every: typeof background.every = (everyMs, callback) => {
    cancel = isDead ? () => {} : background.every(everyMs, callback);
    return cancel;
  };
  const counts = new ClusterCounts();
  const table = new NodeTable({
    nodes: unlessAway(store.nodes, () => away?.has(life)),
    settings: unlessAway(store.settings, () => away?.has(life)),
    programs: away && {
      store: unlessAway(store.programs, () => away.has(life)),
      host: hostOf(life),
    },
    own: { node, life, address: `http://${node}:1` },
    version: '1.0.0',
    secrets: [Buffer.from(first), ...others.map((secret) => Buffer.from(secret))],
    clock: { ...simulatedClock, wall: () => Date.now(), background: { ...background, every } },
    prober: {
      askThird: (third, life, report) => {
        questions.push(`${third.life} about ${life}`);
        const opinion = opinions.get(third.life) ?? 'reached';
        if (opinion !== 'silent') report(opinion === 'refused');
      },
      askDatabase: (member, report) => {
        const asked = tablesByLife.get(member.life);
        if (asked?.life !== member.life) return; // it goes on under another life
        void asked.isDatabaseAway(table.life).then((isAway) => isAway !== undefined && report(isAway));
      },
      ping: (member, report) => {
        const result = pings.get(member.life) ?? 'answered';
        if (result !== 'silent') report(result);
      },
      keep: () => {},
    },
    report: () => doing,
    onNextLife,
    onNotice: (line) => notices.push(line),
    counts,
  });
  tablesByLife.set(life, table);
  await table.join();
  return Object.assign(table, { counts, halt: () => cancel() });
}

/** What it is asked while the database is away has no answer. */
function unlessAway<Part extends object>(part: Part, isAway: () => boolean | undefined): Part {
  return new Proxy(part, {
    get: (target, name) => {
      const value = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      return (...values: unknown[]) =>
        isAway() ? new Promise(() => {}) : Reflect.apply(value, target, values);
    },
  });
}

/** Runs the one program of the deployment, and notes what happens to it. */
function hostOf(life: string): LeasedPrograms {
  let isRunning = false;
  const end = async (how: string): Promise<void> => {
    if (isRunning) programs.push([life, how]);
    isRunning = false;
  };
  return {
    mayFormerRun: false,
    list: () => [{ program: 'one', changedAt: '' }],
    onChanged: () => {},
    start: (_program, { onStarted }) => {
      isRunning = true;
      programs.push([life, 'start']);
      onStarted();
    },
    stop: () => end('stop'),
    kill: () => end('kill'),
    lease: () => {},
    place: () => {},
  };
}

let tables = 0;
const tablesByLife = new Map<string, NodeTable>();

async function pass(ms: number, stepMs = 500): Promise<void> {
  for (let leftMs = ms; leftMs > 0; leftMs -= stepMs) {
    mock.timers.tick(stepMs);
    for (let left = 4; left > 0; left -= 1) await turn();
  }
}

/** The row of a session of this life, as it is stored. */
function rowOf(life: string, node = 'b') {
  return { key: 'k', node, life, generation: 3, value: '', usedAt: '' };
}

async function isEnded(list: MemoryStore['nodes']['list'], life: string): Promise<boolean> {
  const row = (await list()).find((stored) => stored.life === life);
  return row === undefined || row.end !== undefined;
}
