// What a node does when others may have ended its life: in the table of members, in simulated time. life-doubt.spec.ts has what requests get.

import * as assert from 'uvu/assert';
import { silentNodes } from '../../../src/domain/nodes/nodes.ts';
import { suite } from '../../helpers/suite.ts';
import { simulateTime } from '../../helpers/time/simulated-time.ts';
import { JoinedNodes, pass } from './joined-nodes.ts';

const test = suite('node table: the own life');
let joined: JoinedNodes;
simulateTime(test, () => {
  joined = new JoinedNodes();
});

test('a node that others ended goes on under a new life', async () => {
  const a = await joined.join('a');
  const { life } = a;
  await joined.store.nodes.end(life, undefined, { cause: 'refused', frees: 'sessions' });
  await pass(8_000);
  assert.is.not(a.life, life);
  assert.equal([a.counts.livesLost, a.counts.livesEnded.refused], [1, 0]);
  const named = joined.notices.filter((line) => line.includes('set cluster.advertise'));
  assert.equal(named.length, 1, 'its address, once');
  assert.equal(
    (await joined.store.nodes.list()).filter(({ end }) => end === undefined).map((row) => row.life),
    [a.life],
  );
  // As `/readyz?verbose` and `doctor` say it.
  assert.equal(silentNodes(a.list()), [
    'other nodes cannot connect to this one: set cluster.advertise to an address that they reach',
  ]);
});

test('a node that was frozen serves nothing before the database has confirmed its life', async () => {
  const a = await joined.join('a');
  assert.is(a.untilLifeKnown(), undefined);
  a.halt();
  await pass(6_000);
  assert.is(a.untilLifeKnown(), undefined, 'nobody can have ended it so soon');
  await pass(6_000);
  const { life } = a;
  const { beat } = joined.store.nodes;
  const { promise: answers, resolve } = Promise.withResolvers<void>();
  joined.store.nodes.beat = async (...beaten) => answers.then(() => beat(...beaten));
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
  const a = await joined.join('a', { onNextLife: () => ending.promise });
  const { life } = a;
  a.halt();
  await joined.store.nodes.end(life, undefined, { cause: 'expired', frees: 'sessions' });
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
  const rows = await joined.store.nodes.list();
  assert.is(rows.find((row) => row.life === servedAs)?.end, undefined);
  assert.is(a.untilLifeKnown(), undefined);
});

test('a node that was frozen goes on when the database is away, and does not ask again for each request', async () => {
  const a = await joined.join('a');
  a.halt();
  await pass(12_000);
  joined.store.nodes.beat = () => new Promise(() => {});
  let isLifeKnown = false;
  void a.untilLifeKnown()?.then(() => {
    isLifeKnown = true;
  });
  await pass(2_000);
  assert.equal([isLifeKnown, a.untilLifeKnown()], [true, undefined]);
});

test('a node that was frozen does not go on because its heartbeat fails, while others reach the database', async () => {
  const [a] = [await joined.join('a'), await joined.join('b')];
  await pass(4_000);
  const { life } = a;
  a.halt();
  await pass(14_000);
  const { beat } = joined.store.nodes;
  joined.store.nodes.beat = async (of, state) => {
    if (of !== life) return beat(of, state);
    joined.store.nodes.beat = beat;
    throw new Error('its connections were closed');
  };
  const servedAs: string[] = [];
  void a.untilLifeKnown()?.then(() => servedAs.push(a.life));
  await pass(500);
  assert.equal([servedAs.length, servedAs.includes(life)], [1, false]);
});

test('a node that was frozen goes on when the database is away for the others, too', async () => {
  const away = new Set<string>();
  const [a, b] = [await joined.join('a', { away }), await joined.join('b', { away })];
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
  const a = await joined.join('a');
  await joined.store.nodes.end(a.life, undefined, { cause: 'expired', frees: 'sessions' });
  const { insert } = joined.store.nodes;
  joined.store.nodes.insert = () => new Promise(() => {});
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
  joined.store.nodes.insert = insert;
  await pass(4_000);
  assert.is(a.untilLifeKnown(), undefined);
});

test('a wall clock that is set ahead kills no program, a suspension of the machine does', async () => {
  const a = await joined.join('a', { away: new Set() });
  await pass(6_000);
  const started = [[a.life, 'start']];
  assert.equal(joined.programs, started);
  joined.setMs = 3_600_000;
  await pass(6_000);
  assert.equal(joined.programs, started);
  joined.suspendedMs = 2_500;
  await pass(500);
  assert.equal(joined.programs[1], [a.life, 'kill']);
});

test('a node that another one does not know reads its life again', async () => {
  const a = await joined.join('a');
  const { life } = a;
  a.halt();
  await a.recheck();
  assert.is(a.life, life);
  await joined.store.nodes.end(life, undefined, { cause: 'refused', frees: 'sessions' });
  await a.recheck();
  assert.is.not(a.life, life);
  assert.is(a.untilLifeKnown(), undefined);
});
test.run();
