// The rules of a node for programs, sentence by sentence of ADR 146: each test is a few events, and the actions that must follow.

import * as assert from 'uvu/assert';
import { type NodeAction, newNode } from '../../../src/cluster/rules/node-state.ts';
import type { LifeRow } from '../../../src/cluster/rules/rows.ts';
import { rendezvousOrder } from '../../../src/domain/nodes/rendezvous.ts';
import { suite } from '../../helpers/suite.ts';
import { Driven, EXPIRED, joined, program, REFUSED, row, typesOf } from './driven.ts';

const programs = suite('cluster rules: programs');
/** A node first in the order of this program among `a` and `b`, and one second. */
const FIRST = ['p', 'q', 'r', 's', 't'].find((name) => rendezvousOrder(name, ['a', 'b'])[0] === 'a') ?? '';
const SECOND = ['p', 'q', 'r', 's', 't'].find((name) => rendezvousOrder(name, ['a', 'b'])[0] === 'b') ?? '';
const takesOf = (actions: readonly NodeAction[]) => actions.filter(({ type }) => type === 'take');

programs('the first in the order of a program takes it at once, the second a second later', () => {
  const node = joined([row('b')], []);
  node.programs = [program({ program: FIRST }), program({ program: SECOND })];
  while (node.state.programs.size === 0) node.pass(500);
  const name = (action: NodeAction) => (action.type === 'take' ? action.program : '');
  assert.equal(takesOf(node.actions).map(name), [FIRST]);
  assert.equal(takesOf(node.pass(1_000)).map(name), [SECOND]);
});

for (const [name, what] of [
  ['drains', { isDraining: true }],
  ['takes no programs', { takesNoPrograms: true }],
] as const)
  programs(`a member that ${name} has no rank, and a program that fails is not left to it`, () => {
    const node = joined([row('b', what)], []);
    node.programs = [program({ program: SECOND })];
    while (node.state.programs.size === 0) node.pass(500);
    assert.is(takesOf(node.actions).length, 1);
    node.do({ type: 'taken', program: SECOND, generation: 7, isOurs: true });
    node.programs = [program({ program: SECOND, life: 'life-a', generation: 8 })];
    for (let start = 1; start <= 4; start += 1) {
      node.do({ type: 'programGone', program: SECOND, start, isRefused: false });
      node.pass(1_000);
    }
    assert.not.ok(typesOf(node.actions).includes('release'));
  });

programs(
  'a node that takes no programs knows who runs them, and takes none, also when there is no other',
  () => {
    const node = new Driven([row('b')], [program({ program: FIRST, life: 'life-b' })]);
    node.state = newNode('a', 'life-a', node.now, { takesNoPrograms: true });
    node.beating.add('life-b');
    node.pass(20_000);
    assert.is(node.state.programs.get(FIRST)?.row.life, 'life-b');
    const [join] = node.actions.flatMap((action) => (action.type === 'join' ? [action.row] : []));
    assert.is(join?.takesNoPrograms, true);
    for (const lives of [[row('b')], [row('b', { end: EXPIRED })]]) {
      node.lives = lives;
      node.programs = [program({ program: FIRST, generation: 9 })];
      assert.equal(takesOf(node.pass(30_000)), []);
    }
  },
);

programs('a node that joins others takes nothing in its first 15 s', () => {
  const node = new Driven([row('b')], [program({ program: FIRST })]);
  node.beating.add('life-b');
  assert.equal(takesOf(node.pass(15_000)), []);
  assert.is(takesOf(node.pass(2_000)).length, 1);
});

programs('a node without others, and a start whose former life held the program, take it at once', () => {
  const alone = new Driven([], [program()]);
  assert.is(takesOf(alone.pass(2_000)).length, 1);
  const lives = [row('b'), row('a', { life: 'life-a0', end: { cause: 'restarted', frees: 'all' } })];
  const again = new Driven(lives, [program({ program: SECOND, life: 'life-a0' })]);
  again.beating.add('life-b');
  assert.is(takesOf(again.pass(2_000)).length, 1);
});

programs('the program of a life that frees only its sessions is not free', () => {
  const node = joined([row('b', { end: REFUSED, sees: [] })], [program({ life: 'life-b' })], 2_000);
  assert.equal(takesOf(node.pass(60_000)), []);
});

programs('a program starts after the answer to its lease, and only while the lease of the node holds', () => {
  const node = joined([], [program()]);
  const answered = node.do({ type: 'taken', program: 'p', generation: 7, isOurs: true });
  assert.equal(answered, [{ type: 'start', program: 'p', start: 1 }]);
  const late = joined([row('b')], [program({ program: FIRST })]);
  late.isAway = true;
  late.pass(8_000);
  assert.equal(late.do({ type: 'taken', program: FIRST, generation: 7, isOurs: true }), []);
});

programs('a lease whose answer was lost is used after the next read', () => {
  const node = joined([], [program()]);
  node.do({ type: 'taken', program: 'p', generation: 7, isOurs: undefined });
  node.programs = [program({ life: 'life-a', generation: 8 })];
  assert.equal(node.pass(3_000), [{ type: 'start', program: 'p', start: 1 }]);
  assert.equal(node.do({ type: 'taken', program: 'p', generation: 7, isOurs: true }), []);
});

programs('a program whose lease went to another is killed', () => {
  const node = running();
  node.programs = [program({ life: 'life-b', generation: 9 })];
  assert.equal(node.pass(3_000), [{ type: 'killProgram', program: 'p' }]);
});

programs(
  'after a release without an answer, which may still come, a program starts only with a new lease',
  () => {
    const node = joined([row('b')], [program()]);
    node.do({ type: 'taken', program: 'p', generation: 7, isOurs: true });
    node.programs = [program({ life: 'life-a', generation: 8 })];
    node.do({ type: 'programGone', program: 'p', start: 1, isRefused: true });
    assert.equal(typesOf(node.actions).at(-1), 'release');
    node.do({ type: 'released', program: 'p', isReleased: false });
    node.lives = []; // no other node can take it
    const again = { type: 'take', program: 'p', generation: 8, life: 'life-a' };
    assert.equal(node.do({ type: 'read', rows: { lives: [], programs: node.programs } }), [again]);
    const start = node.do({ type: 'taken', program: 'p', generation: 8, isOurs: true });
    assert.equal(start, [{ type: 'start', program: 'p', start: 2 }]);
  },
);

programs('a row that was read before the lease was taken kills nothing', () => {
  const node = running();
  node.programs = [program({ life: 'life-b', generation: 7 })];
  assert.equal(node.pass(2_000), []);
});

programs(
  'a database that lost the lease, as after a failover to an older copy, is believed: first by its holder',
  () => {
    const older = [program({ life: 'life-c', generation: 6 })];
    const lives = [row('b'), row('c', { end: EXPIRED })];
    const holder = running(lives);
    holder.programs = older;
    assert.equal(holder.pass(4_500), [{ type: 'killProgram', program: 'p' }]);
    const other = joined(lives, [program({ life: 'life-b', generation: 8 })]);
    other.programs = older;
    assert.equal(other.pass(6_000), []);
    const take = { type: 'take', program: 'p', generation: 6, life: 'life-a' };
    assert.equal(other.pass(6_000), [take]);
    for (const node of [holder, other]) assert.is(node.state.programs.get('p')?.row.generation, 6);
  },
);

programs('three failed starts release a program with a mark, and a node with a mark does not take it', () => {
  const node = joined([row('b')], [program()]);
  const fail = (start: number) => node.do({ type: 'programGone', program: 'p', start, isRefused: false });
  node.do({ type: 'taken', program: 'p', generation: 7, isOurs: true });
  node.programs = [program({ life: 'life-a', generation: 8 })];
  fail(1);
  node.pass(500);
  fail(2);
  node.pass(500);
  const release = { type: 'release', program: 'p', generation: 8, life: 'life-a', failedOn: 'a' };
  assert.equal(fail(3), [release]);
  node.do({ type: 'released', program: 'p', isReleased: true });
  node.programs = [program({ generation: 8, failedOn: ['a'] })];
  assert.not.ok(typesOf(node.pass(30_000)).includes('take'));
  // What the program needs may be back, and no node is left without a mark.
  node.programs = [program({ generation: 8, failedOn: ['a', 'b'] })];
  assert.ok(typesOf(node.pass(30_000)).includes('take'));
});

programs('a program that fails everywhere else is started here again and again', () => {
  for (const others of [[], [row('b')]]) {
    const failedOn = others.map(() => 'b');
    const node = joined(others, [program({ failedOn })]);
    node.do({ type: 'taken', program: 'p', generation: 7, isOurs: true });
    node.programs = [program({ life: 'life-a', generation: 8, failedOn })];
    for (let start = 1; start <= 5; start += 1) {
      assert.equal(node.do({ type: 'programGone', program: 'p', start, isRefused: false }), []);
      assert.ok(typesOf(node.pass(500)).includes('start'));
    }
  }
});

programs(
  'a command that the policy of the node refuses is released at once, if another node may take it',
  () => {
    for (const others of [[], [row('b')]]) {
      const node = joined(others, [program()]);
      node.do({ type: 'taken', program: 'p', generation: 7, isOurs: true });
      const actions = node.do({ type: 'programGone', program: 'p', start: 1, isRefused: true });
      assert.equal(
        actions,
        others.map(() => ({ type: 'release', program: 'p', generation: 8, life: 'life-a', failedOn: 'a' })),
      );
    }
  },
);

programs('a program that ends after its start is started again here, however often', () => {
  const node = running();
  for (let start = 1; start <= 5; start += 1) {
    node.do({ type: 'programGone', program: 'p', start, isRefused: false });
    assert.equal(node.pass(500), [{ type: 'start', program: 'p', start: start + 1 }]);
    node.do({ type: 'started', program: 'p', start: start + 1 });
  }
});

programs('an answer about an earlier process group says nothing', () => {
  const node = running();
  node.do({ type: 'programGone', program: 'p', start: 1, isRefused: false });
  node.pass(500);
  node.do({ type: 'programGone', program: 'p', start: 1, isRefused: false });
  assert.equal(node.pass(2_000), []);
});

programs('a node that drains stops a program before it releases it, and takes none', () => {
  const node = running();
  node.do({ type: 'drain', isDraining: true });
  assert.equal(node.pass(500), [{ type: 'stopProgram', program: 'p' }]);
  const release = { type: 'release', program: 'p', generation: 8, life: 'life-a', failedOn: undefined };
  assert.equal(node.do({ type: 'programGone', program: 'p', start: 1, isRefused: false }), [release]);
  node.do({ type: 'released', program: 'p', isReleased: true });
  node.programs = [program({ generation: 8 })];
  assert.equal(node.pass(30_000), []);
});

programs('a program that is not registered any more is killed', () => {
  const node = running();
  node.programs = [];
  assert.equal(node.pass(3_000), [{ type: 'killProgram', program: 'p' }]);
});
programs.run();

function running(lives: LifeRow[] = []): Driven {
  const node = joined(lives, [program()]);
  node.do({ type: 'taken', program: 'p', generation: 7, isOurs: true });
  node.do({ type: 'started', program: 'p', start: 1 });
  node.programs = [program({ life: 'life-a', generation: 8 })];
  node.actions = [];
  return node;
}
