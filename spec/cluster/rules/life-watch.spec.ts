// The rules of a node for the lives of other members, sentence by sentence of ADR 146: each test is a few events, and the actions that
// must follow.

import * as assert from 'uvu/assert';
import { standings } from '../../../src/cluster/rules/node-state.ts';
import type { LifeRow } from '../../../src/cluster/rules/rows.ts';
import type { LifeEnd } from '../../../src/domain/nodes/life.ts';
import { suite } from '../../helpers/suite.ts';
import { Driven, EXPIRED, endsOf, joined, REFUSED, row, typesOf } from './driven.ts';

/** A node whose former life ended so goes on beside a member that beats no more. */
function renewedBeside(member: LifeRow, end: LifeEnd): Driven {
  const node = joined([member]);
  node.do({ type: 'heartbeatMissed', life: 'life-a' });
  node.do({ type: 'renewed', life: 'life-a2' });
  node.lives = [row('a', { end }), ...node.lives];
  node.beating.clear();
  node.pass(16_000);
  return node;
}

const watch = suite('cluster rules: the watch of members');

watch(
  'a row that did not change in four reads over 10 s is ended, if its counter is still the one that was seen',
  () => {
    const node = joined([row('b')]);
    const [seen] = node.lives;
    node.beating.clear();
    const atMs = node.atMs;
    const [first] = endsOf(node.pass(16_000));
    assert.equal(first, { type: 'end', life: 'life-b', counter: seen?.counter, end: EXPIRED });
    assert.ok(node.atMs - atMs >= 10_000);
  },
);

watch('a row that changes is not ended', () => {
  const node = joined([row('b')]);
  assert.equal(endsOf(node.pass(60_000)), []);
});

watch('a failed operation, or two reads more than 4 s apart, begin the watch again', () => {
  for (const disturb of [
    (node: Driven) => node.do({ type: 'failed', sentAtMs: node.atMs }),
    (node: Driven) => {
      node.atMs += 4_500;
      return node.do({ type: 'tick' });
    },
  ]) {
    const node = joined([row('b')]);
    node.beating.clear();
    node.pass(9_000);
    disturb(node);
    assert.equal(endsOf(node.pass(9_500)), []);
    assert.is(endsOf(node.pass(7_000)).length > 0, true);
  }
});

watch('of a member that has not seen this life only the sessions are free, its programs after 310 s', () => {
  const node = joined([row('b', { sees: ['life-c'] })]);
  node.beating.clear();
  const [first] = endsOf(node.pass(16_000));
  const sessions: LifeEnd = { cause: 'expired', frees: 'sessions' };
  assert.equal(first, { type: 'end', life: 'life-b', counter: node.lives[0]?.counter, end: sessions });
  node.lives = node.lives.map((read) => ({ ...read, end: sessions }));
  assert.equal(endsOf(node.pass(280_000)), []);
  const [last] = endsOf(node.pass(20_000));
  assert.equal(last, { type: 'end', life: 'life-b', counter: node.lives[0]?.counter, end: EXPIRED });
});

watch('a member that has seen only a former life, whose programs are free, may have forgotten it', () => {
  const firstEndOf = ({ actions }: Driven) =>
    actions.flatMap((action) => (action.type === 'end' && action.life === 'life-b' ? [action.end] : []))[0];
  const sessions: LifeEnd = { cause: 'expired', frees: 'sessions' };
  assert.equal(firstEndOf(renewedBeside(row('b'), EXPIRED)), sessions);
  // While they are not free, the member needs the word of that life.
  assert.equal(firstEndOf(renewedBeside(row('b'), REFUSED)), EXPIRED);
});

watch(
  'two refused connections, 200 ms apart, end the life at once, and its programs when the row expired',
  () => {
    const node = joined([row('b')]);
    node.beating.clear();
    node.pass(3_000);
    assert.equal(node.do({ type: 'refused', life: 'life-b' }), [
      { type: 'ping', life: 'life-b', afterMs: 200 },
    ]);
    node.atMs += 200;
    const [end] = node.do({ type: 'refused', life: 'life-b' });
    assert.equal(end, { type: 'end', life: 'life-b', counter: node.lives[0]?.counter, end: REFUSED });
    node.lives = node.lives.map((read) => ({ ...read, end: REFUSED }));
    const [later] = endsOf(node.pass(16_000));
    assert.equal(later, {
      type: 'end',
      life: 'life-b',
      counter: node.lives[0]?.counter,
      end: { cause: 'refused', frees: 'all' },
    });
  },
);

watch('a third member must be refused, too', () => {
  for (const isRefused of [true, false]) {
    const node = joined([row('b'), row('c')]);
    node.do({ type: 'refused', life: 'life-b' });
    node.atMs += 200;
    assert.equal(node.do({ type: 'refused', life: 'life-b' }), [
      { type: 'askThird', life: 'life-b', third: 'life-c' },
    ]);
    assert.is(node.do({ type: 'thirdAnswered', life: 'life-b', isRefused }).length, isRefused ? 1 : 0);
  }
});

watch('an accepted connection between two refused ones forgets the first', () => {
  const node = joined([row('b')]);
  node.do({ type: 'refused', life: 'life-b' });
  node.atMs += 200;
  node.do({ type: 'answered', life: 'life-b', sentAtMs: node.atMs });
  assert.equal(typesOf(node.do({ type: 'refused', life: 'life-b' })), ['ping']);
});

watch('a life that follows one that was refused is not ended for this in its first 10 min', () => {
  const node = joined([row('b', { followsRefusal: true })]);
  const refuse = () => {
    node.do({ type: 'refused', life: 'life-b' });
    node.atMs += 200;
    return endsOf(node.do({ type: 'refused', life: 'life-b' }));
  };
  assert.equal(refuse(), []);
  node.pass(600_000);
  assert.is(refuse().length, 1);
});

watch(
  'a new life of a process says that it follows one that was refused, the first of another process does not',
  () => {
    const joins = (node: Driven) =>
      node.actions.flatMap((action) => (action.type === 'join' ? [action.row.followsRefusal] : []));
    const node = new Driven([row('a', { life: 'life-a0', end: REFUSED })]);
    node.pass(2_000);
    assert.equal(joins(node), [false], 'the process of that life was gone');
    node.do({ type: 'heartbeatMissed', life: 'life-a' });
    node.do({ type: 'renewed', life: 'life-a2' });
    node.lives = [...node.lives, row('a', { life: 'life-a', end: REFUSED })];
    node.pass(2_000);
    assert.equal(joins(node), [false, true]);
  },
);

watch(
  'a member is silent after 3 s without an answer, slow after 5 s of slow answers, and live again after a fast one',
  () => {
    const node = joined([row('b'), row('c', { end: EXPIRED })]);
    const standing = () => standings(node.state).get('life-b');
    assert.is(standings(node.state).get('life-c'), 'ended');
    assert.is(standing(), 'live');
    node.beating.clear();
    node.pass(3_000);
    assert.is(standing(), 'silent');
    for (let waitedMs = 0; waitedMs <= 5_000; waitedMs += 1_000) {
      node.do({ type: 'answered', life: 'life-b', sentAtMs: node.atMs - 600 });
      node.pass(1_000);
    }
    assert.is(standing(), 'slow');
    node.do({ type: 'answered', life: 'life-b', sentAtMs: node.atMs - 100 });
    assert.is(standing(), 'live');
  },
);

watch('a node that slept does not take its own silence for that of others', () => {
  const node = joined([row('b'), row('c')]);
  node.atMs += 15_000;
  assert.is(standings(node.state).get('life-b'), 'live', 'what comes first when it wakes');
  node.actions = [];
  for (const _ of [1, 2]) {
    node.do({ type: 'refused', life: 'life-c' });
    node.atMs += 300;
  }
  assert.ok(typesOf(node.actions).includes('askThird'), 'it does not judge alone');
  node.do({ type: 'tick' });
  assert.is(standings(node.state).get('life-b'), 'live');
});
watch.run();
