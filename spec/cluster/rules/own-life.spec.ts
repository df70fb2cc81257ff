// The rules of a node for its own life, sentence by sentence of ADR 146: each test is a few events, and the actions that must follow.

import * as assert from 'uvu/assert';
import { isAlone, standings } from '../../../src/cluster/rules/node-state.ts';
import type { LifeRow } from '../../../src/cluster/rules/rows.ts';
import type { LifeEnd } from '../../../src/domain/nodes/life.ts';
import { suite } from '../../helpers/suite.ts';
import { Driven, EXPIRED, endsOf, joined, program, REFUSED, row, typesOf } from './driven.ts';

const life = suite('cluster rules: the own life');

life('a node reads, inserts its row once, and then sends a heartbeat every 3 s', () => {
  const node = new Driven();
  node.pass(10_000);
  const sent = node.actions.filter(({ type }) => type === 'read' || type === 'join' || type === 'heartbeat');
  assert.equal(typesOf(sent).slice(0, 2), ['read', 'join']);
  assert.is(sent.filter(({ type }) => type === 'join').length, 1);
  const beats = sent.flatMap((action) => (action.type === 'heartbeat' ? [action.sent.atMs] : []));
  assert.equal(beats, [4_000, 7_000, 10_000]);
});

life('a lease counts from the sending of the last confirmed heartbeat, however late the answer comes', () => {
  const node = joined();
  const sent = node.now;
  node.isAway = true;
  node.atMs += 5_000;
  const [lease] = node.do({ type: 'confirmed', life: 'life-a', sent });
  assert.equal(lease, { type: 'lease', untilMs: sent.atMs + 7_000 });
  node.atMs += 2_000;
  assert.equal(node.do({ type: 'confirmed', life: 'life-a', sent }), [], 'an answer after that gives none');
});

life('the programs are killed 7 s after the last confirmed heartbeat, when others have no such fault', () => {
  const node = joined([row('b')], [program()]);
  node.isAway = true;
  const beforeMs = node.state.own.leaseFrom.atMs;
  assert.not.ok(typesOf(node.pass(beforeMs + 6_500 - node.atMs)).includes('killPrograms'));
  assert.ok(typesOf(node.pass(500)).includes('killPrograms'));
});

life(
  'a heartbeat that hits nothing ends the life: sessions are dropped, programs killed, then a new life',
  () => {
    const node = joined([], [program()]);
    node.do({ type: 'taken', program: 'p', generation: 7, isOurs: true });
    const ending = node.do({ type: 'heartbeatMissed', life: 'life-a' });
    assert.equal(typesOf(ending), ['dropSessions', 'killPrograms']);
    assert.not.ok(typesOf(node.pass(2_000)).includes('renew'), 'while a process group may exist');
    node.do({ type: 'programGone', program: 'p', start: 1, isRefused: false });
    assert.ok(typesOf(node.pass(500)).includes('renew'));
    node.do({ type: 'renewed', life: 'life-a2' });
    node.lives = [row('a', { end: EXPIRED })];
    node.pass(4_000);
    assert.is(node.state.own.life, 'life-a2');
    assert.is(node.state.own.stage, 'living');
  },
);

life('a read that shows the end of the own life ends it', () => {
  const node = joined();
  node.lives = [row('a', { end: REFUSED })];
  assert.equal(typesOf(node.pass(3_000)).slice(0, 2), ['dropSessions', 'killPrograms']);
});

life('answers about an earlier life change nothing', () => {
  const node = joined();
  const before = node.state;
  node.do({ type: 'heartbeatMissed', life: 'life-z' });
  node.do({ type: 'confirmed', life: 'life-z', sent: node.now });
  assert.equal(node.state, before);
});

life('a machine that was suspended kills the programs, though the lease seems to hold', () => {
  const node = joined([], [program()]);
  node.suspendedMs = 2_500;
  assert.equal(typesOf(node.do({ type: 'tick' }))[0], 'killPrograms');
});

life('a stop ends the own life, and nothing is sent afterwards', () => {
  const node = joined();
  assert.equal(node.do({ type: 'stop' }), [{ type: 'stop', life: 'life-a' }]);
  node.actions = [];
  node.pass(10_000);
  assert.equal(node.actions, []);
});

life('a start waits for the end of the former life of its node, and ends it when its process is gone', () => {
  const node = new Driven([row('a', { life: 'life-a0', sees: [] })]);
  node.pass(2_000);
  assert.is(node.state.own.stage, 'joining');
  const [end] = node.do({ type: 'formerLifeGone', life: 'life-a0', isCleared: false });
  const restarted: LifeEnd = { cause: 'restarted', frees: 'sessions' };
  assert.equal(end, { type: 'end', life: 'life-a0', counter: 5, end: restarted });
  node.lives = [row('a', { life: 'life-a0', sees: [], end: restarted })];
  node.pass(3_500);
  assert.is(node.state.own.stage, 'living');
  const [cleared] = node.do({ type: 'formerLifeGone', life: 'life-a0', isCleared: true });
  assert.equal(cleared, {
    type: 'end',
    life: 'life-a0',
    counter: 5,
    end: { cause: 'restarted', frees: 'all' },
  });
});

life('a start whose former process is elsewhere waits until its row expired', () => {
  const node = new Driven([row('a', { life: 'life-a0', sees: [] }), row('b')]);
  const ends = endsOf(node.pass(10_500));
  assert.equal(ends.slice(0, 1), [
    { type: 'end', life: 'life-a0', counter: 5, end: { cause: 'expired', frees: 'sessions' } },
  ]);
});
life.run();

const supervised = suite('cluster rules: processes of one supervisor');

/** A node that has joined `b`, whose process its supervisor sees. */
function beside(more: Partial<LifeRow> = {}): Driven {
  const node = joined([row('b', more)], [program()]);
  node.do({ type: 'processes', running: ['life-a', 'life-b'] });
  node.beating.clear();
  node.actions = [];
  return node;
}

supervised('a process that runs gets no pings, and no silence or refusal ends its life', () => {
  const node = beside();
  for (let count = 0; count < 3; count += 1) {
    node.do({ type: 'refused', life: 'life-b' });
    assert.equal(endsOf(node.pass(20_000)), []);
  }
  assert.not.ok(typesOf(node.actions).includes('ping'));
  assert.is(standings(node.state).get('life-b'), 'live');
});

supervised(
  'the life of a process that is gone ends at the next read, its programs are free 10 s later',
  () => {
    const node = beside({ sees: [] });
    node.do({ type: 'processes', running: ['life-a'], gone: 'life-b' });
    const restarted: LifeEnd = { cause: 'restarted', frees: 'sessions' };
    const [first] = endsOf(node.pass(2_500));
    assert.equal(first, { type: 'end', life: 'life-b', counter: node.lives[0]?.counter, end: restarted });
    node.lives = node.lives.map((read) => ({ ...read, end: restarted }));
    assert.equal(endsOf(node.pass(5_000)), []);
    const [second] = endsOf(node.pass(12_000));
    assert.equal(second?.type === 'end' && second.end, { cause: 'restarted', frees: 'all' });
  },
);

supervised('a life that the supervisor does not name is judged as any other one', () => {
  const node = beside();
  node.do({ type: 'processes', running: ['life-a'] });
  assert.equal(endsOf(node.pass(16_000)).at(0)?.type, 'end');
});

supervised('while the database is away, a lease needs no word of a supervised process', () => {
  const node = beside();
  node.isAway = true;
  assert.not.ok(typesOf(node.pass(60_000)).includes('killPrograms'));
  const other = joined([row('b'), row('c')], [program()]);
  other.do({ type: 'processes', running: ['life-b'] });
  other.isAway = true;
  const asked = other.pass(3_000).flatMap((action) => (action.type === 'ask' ? [action.life] : []));
  assert.equal([...new Set(asked)], ['life-c']);
});
supervised.run();

const away = suite('cluster rules: the database is away');

away('a node alone keeps its programs', () => {
  const node = joined([], [program()]);
  node.isAway = true;
  assert.not.ok(typesOf(node.pass(60_000)).includes('killPrograms'));
});

away(
  'a node asks all that it saw every 2 s, and keeps its programs while all say that the database is away',
  () => {
    const node = joined([row('b'), row('c')], [program()]);
    node.isAway = true;
    for (let waitedMs = 0; waitedMs < 60_000; waitedMs += 500) {
      const asked = node.pass(500).flatMap((action) => (action.type === 'ask' ? [action] : []));
      for (const { life, sent } of asked) node.do({ type: 'opinion', life, isAway: true, sent });
    }
    const asks = node.actions.flatMap((action) => (action.type === 'ask' ? [action.sent.atMs] : []));
    assert.ok(asks.length >= 2 * 28);
    assert.not.ok(typesOf(node.actions).includes('killPrograms'));
  },
);

for (const [name, ofC] of [
  ['says that it answers', false],
  ['says nothing', undefined],
] as const)
  away(`one member that ${name} is enough for the end of the lease`, () => {
    const node = joined([row('b'), row('c')], [program()]);
    node.isAway = true;
    for (let waitedMs = 0; waitedMs < 8_000; waitedMs += 500)
      for (const action of node.pass(500)) {
        if (action.type !== 'ask') continue;
        const isAway = action.life === 'life-b' ? true : ofC;
        if (isAway !== undefined) node.do({ ...action, type: 'opinion', isAway });
      }
    assert.ok(typesOf(node.actions).includes('killPrograms'));
  });

away('the word of others brings no lease back', () => {
  const node = joined([row('b')], [program()]);
  node.isAway = true;
  node.pass(8_000);
  assert.equal(node.do({ type: 'opinion', life: 'life-b', isAway: true, sent: node.now }), []);
});

for (const [name, lives, word, wanted] of [
  ['others say nothing', [row('b'), row('c')], undefined, true],
  ['one says that it answers', [row('b'), row('c')], (life: string) => life === 'life-b', true],
  ['all say that it is away', [row('b'), row('c')], () => true, false],
  ['there are no others', [], undefined, false],
  ['the other refused connections, and was ended', [row('b', { end: REFUSED })], undefined, false],
  ['the other has left', [row('b', { end: { cause: 'stopped', frees: 'all' } })], undefined, false],
] as const)
  away(`without the database for longer than a lease, and ${name}: ${wanted ? 'no' : 'new'} sessions`, () => {
    const node = joined([...lives]);
    node.isAway = true;
    const pass = (ms: number): void => {
      for (let waitedMs = 0; waitedMs < ms; waitedMs += 500)
        for (const action of node.pass(500))
          if (action.type === 'ask' && word)
            node.do({ ...action, type: 'opinion', isAway: word(action.life) });
    };
    pass(3_000);
    assert.is(isAlone(node.state, node.atMs), false, 'its life cannot have ended');
    pass(7_000);
    assert.is(isAlone(node.state, node.atMs), wanted);
    pass(400_000); // the word of others does not keep the lease of programs for so long
    assert.is(isAlone(node.state, node.atMs), wanted);
    node.isAway = false;
    pass(4_000);
    assert.is(isAlone(node.state, node.atMs), false);
  });

away('the word of others keeps a lease for 300 s at most, also when there are no others', () => {
  const node = joined([], [program()]);
  node.isAway = true;
  assert.not.ok(typesOf(node.pass(295_000)).includes('killPrograms'));
  assert.ok(typesOf(node.pass(15_000)).includes('killPrograms'));
});

away('a member that ended for refused connections may live: its word counts, too', () => {
  const node = joined([row('b', { end: REFUSED, sees: [] })], [program()]);
  node.isAway = true;
  assert.ok(node.pass(3_000).some((action) => action.type === 'ask' && action.life === 'life-b'));
});

away('an asked member says so when its last operation failed, else it checks first', () => {
  const node = joined([row('b')]);
  const sent = { atMs: 1, uptimeMs: 2 };
  assert.equal(node.do({ type: 'asked', from: 'life-b', sent }), [{ type: 'check', to: 'life-b', sent }]);
  assert.equal(node.do({ type: 'databaseChecked', from: 'life-b', sent, isAnswered: true }).at(-1), {
    type: 'say',
    to: 'life-b',
    isAway: false,
    sent,
  });
  node.do({ type: 'failed', sentAtMs: node.atMs });
  assert.equal(node.do({ type: 'asked', from: 'life-b', sent }), [
    { type: 'say', to: 'life-b', isAway: true, sent },
  ]);
});
away.run();
