// The table of members: nodes on one store in memory, in simulated time. Each sends heartbeats, sees the others, and ends lives that are
// over. The rules alone: spec/cluster/rules. Real gateways: spec/system/nodes/members.spec.ts.

import * as assert from 'uvu/assert';
import { foreignNodes, otherDatabases, otherVersions } from '../../../src/domain/nodes/nodes.ts';
import { MemoryStore } from '../../../src/persistence/memory/memory-store.ts';
import { suite } from '../../helpers/suite.ts';
import { simulatedClock, simulateTime } from '../../helpers/time/simulated-time.ts';
import { JoinedNodes, pass, rowOf } from './joined-nodes.ts';

const test = suite('node table');
const SECRET = 'a secret of these nodes, 32 bytes or more';
let joined: JoinedNodes;
simulateTime(test, () => {
  joined = new JoinedNodes();
});

test('a node has a row from its start, and sees another one after its next read', async () => {
  const [a, b] = [await joined.join('a'), await joined.join('b')];
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
  const [a] = [await joined.join('a'), await joined.join('b')];
  joined.doing = { programs: 3, calls: 7, isDraining: true };
  await pass(7_000);
  const other = a.list()[1];
  assert.equal([other?.programs, other?.calls, other?.isDraining], [3, 7, true]);
  const counters = (await joined.store.nodes.list()).map(({ counter }) => counter);
  assert.ok(counters.every((counter) => counter >= 2));
});

test('a node that does not answer pings is silent', async () => {
  const [a, b, c] = [await joined.join('a'), await joined.join('b'), await joined.join('c')];
  await pass(4_000);
  assert.equal(a.openers, []);
  joined.pings.set(b.life, 'silent');
  await pass(4_000);
  assert.is(a.list().find(({ life }) => life === b.life)?.state, 'silent');
  assert.ok(a.find(b.life));
  assert.equal(a.openers, [c.life], 'it may reach what this node does not');
});

test('the life of a node whose heartbeats end is ended after 10 s, and one that refuses connections at once', async () => {
  const a = await joined.join('a');
  const [b, c] = [await joined.join('b'), await joined.join('c', { isDead: true })];
  await pass(4_000);
  assert.is(a.list().length, 3);
  await pass(15_000);
  assert.is(a.find(c.life), undefined);
  assert.ok(await a.mayBeStoredLater(c.life), 'it may only stand still');
  b.halt();
  joined.pings.set(b.life, 'refused');
  await pass(5_000);
  assert.is((await joined.store.nodes.list()).find(({ life }) => life === b.life)?.end?.cause, 'refused');
  assert.match(joined.notices.join('\n'), 'the node "b" is gone: its address refuses connections');
  await pass(20_000); // its programs are freed, too
  for (const { life } of [b, c]) assert.is(await a.mayBeStoredLater(life), false);
  assert.equal(a.counts.livesEnded, { refused: 1, expired: 1 - b.counts.livesEnded.expired, restarted: 0 });
});

test('the members are read when a node answers pings no more as the life that it had', async () => {
  const [a, b] = [await joined.join('a'), await joined.join('b')];
  await pass(5_000);
  const { list } = joined.store.nodes;
  let reads = 0;
  joined.store.nodes.list = () => {
    reads += 1;
    return list.call(joined.store.nodes);
  };
  await joined.store.nodes.end(b.life, undefined, { cause: 'stopped', frees: 'all' });
  joined.pings.set(b.life, 'failed');
  for (let count = 0; count < 10; count += 1) a.suspect(b.life);
  await pass(500, 100);
  assert.equal([a.find(b.life), reads], [undefined, 1]);
  joined.store.nodes.list = list;
});

test('a worker that its supervisor sees end is gone at once, whatever its pings said', async () => {
  const [a, b] = [await joined.join('a'), await joined.join('b')];
  await pass(4_000);
  await a.seeProcesses([a.life, b.life], undefined);
  joined.pings.set(b.life, 'refused');
  await pass(15_000);
  assert.is(a.list()[1]?.state, 'live');
  b.halt();
  void a.seeProcesses([a.life], b.life);
  await pass(100);
  assert.is((await joined.store.nodes.list()).find(({ life }) => life === b.life)?.end?.cause, 'restarted');
  assert.is(a.find(b.life), undefined);
});

test('a node that stops ends its life, and its row goes after half an hour', async () => {
  const [a, b] = [await joined.join('a'), await joined.join('b')];
  await pass(4_000);
  await b.close();
  await pass(4_000);
  assert.is(a.list()[1]?.state, 'ended');
  await pass(31 * 60_000, 3_000);
  assert.equal(
    (await joined.store.nodes.list()).map(({ life }) => life),
    [a.life],
  );
});

test('a node that leaves waits until the others know it, if there are any', async () => {
  const [a, b] = [await joined.join('a'), await joined.join('b')];
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

for (const [opinion, wanted] of [
  ['refused', 'ended'],
  ['reached', 'live'],
  ['silent', 'live'],
] as const)
  test(`a node that refuses this one, and a third member to which it is ${opinion}: ${wanted}`, async () => {
    const [a, b, c] = [await joined.join('a'), await joined.join('b'), await joined.join('c')];
    await pass(4_000);
    joined.opinions.set(c.life, opinion);
    joined.pings.set(b.life, 'refused');
    await pass(1_500);
    const asked = [...new Set(joined.questions)];
    assert.ok(asked.includes(`${c.life} about ${b.life}`), String(asked));
    const end = (await joined.store.nodes.list()).find(({ life }) => life === b.life)?.end;
    assert.is(end?.cause, wanted === 'ended' ? 'refused' : undefined);
    const { do: decision } = await a.decideSession(rowOf(b.life));
    assert.is(decision, wanted === 'ended' ? 'claim' : 'forward');
  });

test('the first read after a failed one counts before its changes are told', async () => {
  const [a, b] = [await joined.join('a'), await joined.join('b')];
  await pass(4_000);
  const { list } = joined.store.nodes;
  Object.assign(joined.store.nodes, { list: () => Promise.reject(new Error('away')) });
  await pass(4_000);
  const heard: (string | undefined)[] = [];
  a.onChanged(() => heard.push(a.successorOf('00000007')));
  Object.assign(joined.store.nodes, { list });
  await pass(4_000);
  assert.ok(heard.length > 0);
  assert.equal([...new Set(heard)], [b.life]);
});

test('a start ends the former life of its node', async () => {
  const former = await joined.join('a', { isDead: true });
  const again = await joined.join('a');
  const ended = (await joined.store.nodes.list()).filter(({ end }) => end !== undefined);
  assert.equal(
    ended.map(({ life, end }) => [life, end?.cause]),
    [[former.life, 'restarted']],
  );
  assert.is(again.find(former.life), undefined);
});

test('a node with another secret is foreign to the others, and is named', async () => {
  const [a, b] = [await joined.join('a'), await joined.join('b', { secrets: [`another ${SECRET}`] })];
  await pass(4_000);
  assert.is(a.find(b.life), undefined);
  assert.is(a.list()[1]?.state, 'foreign');
  assert.is(b.find(a.life), undefined);
  assert.match(
    joined.notices.join('\n'),
    'the node "b" has another secret than the other nodes of its database',
  );
});

test('a secret that all nodes have in the place of the first one is the key of the deployment', async () => {
  const first = await joined.join('a');
  await first.close();
  const secrets = [`another ${SECRET}`] as const;
  const [a, b] = [await joined.join('a', { secrets }), await joined.join('b', { secrets })];
  await pass(4_000);
  assert.equal([a.find(b.life)?.node, joined.notices], ['b', []]);
  const late = await joined.join('late');
  await pass(4_000);
  assert.is(late.find(a.life), undefined);
  assert.match(joined.notices.join('\n'), 'the node "late" has another secret than the other nodes');
});

test('a node with another version of the protocol is foreign, and named with both versions, once', async () => {
  const a = await joined.join('a');
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
    await joined.store.nodes.insert({
      ...{ life: `life-${node}`, node, counter: 0, end: undefined, state: '{}' },
      profile: JSON.stringify(profile),
    });
  await pass(8_000);
  const line =
    'the node "next" has version 2.0.0 and protocol 2, this one 1.0.0 and protocol 1: it is not a member until all have the same version';
  const secrets = joined.notices.filter((notice) => /secret/.test(notice));
  assert.equal([joined.notices.filter((notice) => notice === line).length, secrets], [1, []]);
  const { id, version, state } = a.list().find(({ life }) => life === 'life-next') ?? {};
  assert.equal([id, version, state, a.find('life-next')], ['next', '2.0.0', 'foreign', undefined]);
  const released = 'the node "later" has version 1.1.0, this one 1.0.0';
  assert.equal(otherVersions(a.list()), [line, released]);
  assert.equal(
    foreignNodes(a.list()).map((text) => text.slice(0, 20)),
    ['the node "later" has', 'the node "broken" ha'],
  );
  const b = await joined.join('b'); // which finds it at its start
  assert.is(joined.notices.filter((notice) => notice === line).length, 2);
  await joined.store.nodes.end('life-next', undefined, { cause: 'stopped', frees: 'all' });
  await pass(4_000);
  assert.not.match(otherVersions(b.list()).join(), 'next');
});

test('nodes are members in each step of a rotation, and a node without the new key is foreign after it', async () => {
  const next = `next ${SECRET}`;
  const [a, b] = [
    await joined.join('a', { secrets: [SECRET, next] }),
    await joined.join('b', { secrets: [next, SECRET] }),
  ];
  await pass(4_000);
  assert.equal([a.find(b.life)?.node, b.find(a.life)?.node], ['b', 'a']);
  await a.close();
  const [again, c] = [
    await joined.join('a', { secrets: [next, SECRET] }),
    await joined.join('c', { secrets: [next] }),
  ];
  await pass(4_000);
  for (const [from, to] of [
    [again, b],
    [again, c],
    [b, c],
    [c, again],
  ] as const)
    assert.ok(from.find(to.life));
  assert.equal(joined.notices, []);
  const late = await joined.join('late');
  await pass(4_000);
  assert.equal([late.find(c.life), c.find(late.life)], [undefined, undefined]);
  assert.match(joined.notices.join('\n'), 'the node "late" has another secret');
});

test('a row that was changed in the database redirects nothing', async () => {
  const [a, b] = [await joined.join('a'), await joined.join('b')];
  await pass(4_000);
  const { list } = joined.store.nodes;
  joined.store.nodes.list = async () =>
    (await list()).map((row) => ({ ...row, profile: row.profile.replace('http://b:1', 'http://evil:1') }));
  await pass(4_000);
  assert.is(a.find(b.life), undefined);
});

test('a database that does not answer ends no life, and a start fails after 10 s', async () => {
  const [a, b] = [await joined.join('a'), await joined.join('b')];
  await pass(4_000);
  const { list, beat } = joined.store.nodes;
  joined.store.nodes.list = () => new Promise(() => {});
  joined.store.nodes.beat = () => new Promise(() => {});
  await pass(60_000);
  joined.store.nodes.list = list;
  joined.store.nodes.beat = beat;
  await pass(20_000);
  assert.equal([a.find(b.life)?.node, b.find(a.life)?.node], ['b', 'a']);
  joined.store.nodes.insert = () => new Promise(() => {});
  const failing = joined.join('c').then(
    () => 'joined',
    (thrown: Error) => thrown.message,
  );
  await pass(12_000);
  assert.is(await failing, 'the row of this node could not be written within 10 s');
});

test('a start takes the row that a slow database has written late', async () => {
  const { insert } = joined.store.nodes;
  joined.store.nodes.insert = async (row) => {
    await insert.call(joined.store.nodes, row);
    await new Promise<void>((resolve) => void simulatedClock.background.alarm(4_000, resolve));
  };
  const joining = joined.join('a');
  await pass(5_000);
  const a = await joining;
  assert.equal(
    [a.untilLifeKnown(), (await joined.store.nodes.list()).map(({ life }) => life)],
    [undefined, [a.life]],
  );
});

test('a program goes on while the database is away for all members', async () => {
  const away = new Set<string>();
  const nodes = [
    await joined.join('a', { away }),
    await joined.join('b', { away }),
    await joined.join('c', { away }),
  ];
  await pass(20_000);
  const before = [...joined.programs];
  assert.equal(
    before.map(([, what]) => what),
    ['start'],
  );
  for (const { life } of nodes) away.add(life);
  await pass(60_000);
  assert.not.ok(nodes.some(({ isCutOff }) => isCutOff));
  away.clear();
  await pass(20_000);
  assert.equal(joined.programs, before);
  assert.equal(joined.notices, []);
  assert.equal(
    nodes.map((table) => table.list().filter(({ state }) => state === 'live').length),
    [3, 3, 3],
  );
});

test('a program goes on while the database only answers questions, as after it was replaced by a copy', async () => {
  const away = new Set<string>();
  const nodes = [await joined.join('a', { away }), await joined.join('b', { away })];
  await pass(20_000);
  const before = [...joined.programs];
  const { store } = joined;
  const refuse = async (): Promise<never> => {
    throw new Error('it is read-only');
  };
  const { nodes: lives, settings } = store;
  const { beat, end } = lives;
  const { touch } = settings;
  Object.assign(lives, { beat: refuse, end: refuse });
  Object.assign(settings, { touch: refuse });
  await pass(60_000);
  assert.equal(joined.programs, before);
  Object.assign(lives, { beat, end });
  Object.assign(settings, { touch });
  await pass(20_000);
  assert.equal([joined.programs, joined.notices], [before, []]);
  assert.equal(
    nodes.map((table) => table.list().filter(({ state }) => state === 'live').length),
    [2, 2],
  );
});

test('a node whose database is slow is not cut off', async () => {
  const nodes = [await joined.join('a'), await joined.join('b')];
  await pass(4_000);
  const { list, beat } = joined.store.nodes;
  const slowly = <Result>(answer: Result) =>
    new Promise<Result>((resolve) => void simulatedClock.background.alarm(4_000, () => resolve(answer)));
  joined.store.nodes.list = async () => slowly(await list.call(joined.store.nodes));
  joined.store.nodes.beat = async (...values) => slowly(await beat.apply(joined.store.nodes, values));
  for (let seconds = 0; seconds < 30; seconds += 1) {
    await pass(1_000);
    assert.not.ok(nodes.some(({ isCutOff }) => isCutOff));
  }
  joined.store.nodes.list = list;
  joined.store.nodes.beat = beat;
});

test('a program ends within the time of its lease when its node alone has lost the database', async () => {
  const away = new Set<string>();
  const nodes = [
    await joined.join('a', { away }),
    await joined.join('b', { away }),
    await joined.join('c', { away }),
  ];
  await pass(20_000);
  const [[holder = ''] = []] = joined.programs;
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
    joined.programs.map(([, what]) => what),
    ['start', 'kill'],
  );
  await pass(10_000);
  assert.equal(
    joined.programs.map(([life, what]) => [life === holder, what]),
    [
      [true, 'start'],
      [true, 'kill'],
      [false, 'start'],
    ],
  );
  assert.ok(lost);
  const taken = nodes.map(({ counts }) => counts.leases.taken);
  assert.equal([lost.counts.leases, taken.toSorted()], [{ taken: 1, released: 0 }, [0, 1, 1]]);
  assert.match(
    joined.notices.join(),
    `the node "${lost.list()[0]?.id}" is gone: it sent no heartbeat for 10 s`,
  );
});

test('a member whose life is over says nothing about the database', async () => {
  const [a, b] = [await joined.join('a'), await joined.join('b')];
  assert.is(await a.isDatabaseAway(b.life), false);
  await a.close();
  const answer = a.isDatabaseAway(b.life);
  await pass(4_000);
  assert.is(await answer, undefined);
});

test('a node with a copy of the database is named on both sides', async () => {
  const a = await joined.join('a');
  await pass(4_000);
  const copy = new MemoryStore();
  for (const row of await joined.store.nodes.list()) await copy.nodes.insert(row);
  joined.store = copy;
  const b = await joined.join('b');
  await pass(40_000);
  assert.equal(otherDatabases(b.list()), [
    'the node "a" continues a life that has ended in this database: it uses another database, of which this one is a copy',
  ]);
  assert.equal(otherDatabases(a.list()), [
    'a node that uses a copy of the database of this node sends requests to it',
  ]);
  assert.equal(
    joined.notices.filter((line) => /copy/.test(line)),
    [...otherDatabases(b.list()), ...otherDatabases(a.list())].toSorted(),
    'once each',
  );
});

test('a node that has stood still goes on with the same database, whatever it answers first', async () => {
  const [a, b] = [await joined.join('a'), await joined.join('b')];
  await pass(4_000);
  b.halt();
  await pass(26_000);
  assert.is(a.list()[1]?.state, 'ended');
  await b.recheck(); // it goes on, under its next life
  await pass(30_000);
  assert.equal([...otherDatabases(a.list()), ...otherDatabases(b.list())], []);
});

test.run();
