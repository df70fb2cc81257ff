// The rules of a node, sentence by sentence of ADR 146: each test is a few events, and the actions that must follow.

import * as assert from 'uvu/assert';
import {
  isAlone,
  type NodeAction,
  type NodeEvent,
  type NodeState,
  newNode,
  standings,
  stepNode,
} from '../../../src/cluster/rules/node.ts';
import type { LifeRow, Moment, ProgramRow } from '../../../src/cluster/rules/rows.ts';
import type { LifeEnd } from '../../../src/domain/nodes/life.ts';
import { rendezvousOrder } from '../../../src/domain/nodes/rendezvous.ts';
import { suite } from '../../helpers/suite.ts';
import { beaten, claimed, ended, fenced, released, type SessionRow, taken } from './updates.ts';

/** A node `a` at a time of its own. Its database has these rows; they are read, and heartbeats are answered, unless it is away. */
class Driven {
  state: NodeState;
  lives: LifeRow[] = [];
  programs: ProgramRow[] = [];
  isAway = false;
  atMs = 0;
  /** Time that the machine was suspended. */
  suspendedMs = 0;
  actions: NodeAction[] = [];
  /** Members beat like this node. */
  beating = new Set<string>();

  constructor(lives: LifeRow[] = [], programs: ProgramRow[] = []) {
    this.lives = lives;
    this.programs = programs;
    this.state = newNode('a', 'life-a', this.now);
  }

  get now(): Moment {
    return { atMs: this.atMs, wallMs: 1e12 + this.atMs + this.suspendedMs };
  }

  do(event: NodeEvent): NodeAction[] {
    const { state, actions } = stepNode(this.state, event, this.now);
    this.state = state;
    this.actions.push(...actions);
    for (const action of actions) this.#answer(action);
    return [...actions];
  }

  /** Ticks for this time; returns what was done, without pings, reads and heartbeats. */
  pass(ms: number): NodeAction[] {
    const from = this.actions.length;
    for (const endMs = this.atMs + ms; this.atMs < endMs; ) {
      this.atMs += 500;
      for (const life of this.beating) {
        this.lives = this.lives.map((row) =>
          row.life === life ? { ...row, counter: row.counter + 1 } : row,
        );
        this.do({ type: 'answered', life, sentAtMs: this.atMs });
      }
      this.do({ type: 'tick' });
    }
    const usual = new Set<string>(['ping', 'read', 'heartbeat', 'lease', 'join']);
    return this.actions.slice(from).filter(({ type }) => !usual.has(type));
  }

  #answer(action: NodeAction): void {
    if (action.type !== 'join' && action.type !== 'heartbeat' && action.type !== 'read') return;
    if (this.isAway) this.do({ type: 'failed', sentAtMs: this.atMs });
    else if (action.type === 'read')
      this.do({ type: 'read', rows: { lives: this.lives, programs: this.programs } });
    else this.do({ type: 'confirmed', life: this.state.own.life, sent: action.sent });
  }
}

const row = (node: string, more: Partial<LifeRow> = {}): LifeRow => ({
  life: `life-${node}`,
  node,
  counter: 5,
  sees: ['life-a'],
  isDraining: false,
  followsRefusal: false,
  end: undefined,
  ...more,
});
const program = (more: Partial<ProgramRow> = {}): ProgramRow => ({
  program: 'p',
  life: undefined,
  generation: 7,
  failedOn: [],
  ...more,
});
const EXPIRED: LifeEnd = { cause: 'expired', frees: 'all' };
const REFUSED: LifeEnd = { cause: 'refused', frees: 'sessions' };
const typesOf = (actions: readonly NodeAction[]): string[] => actions.map(({ type }) => type);
const endsOf = (actions: readonly NodeAction[]) => actions.filter(({ type }) => type === 'end');
/** A node that has joined these. */
function joined(lives: LifeRow[] = [], programs: ProgramRow[] = [], waitMs = 20_000): Driven {
  const node = new Driven(lives, programs);
  for (const { life, end } of lives) if (end === undefined) node.beating.add(life);
  node.pass(waitMs);
  node.actions = [];
  return node;
}

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
  const sent = { atMs: 1, wallMs: 2 };
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
    node.state = newNode('a', 'life-a', node.now, undefined, true);
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
  assert.equal(node.pass(3_000), []);
});

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

const updates = suite('cluster rules: conditional updates');
const session = (more: Partial<SessionRow> = {}): SessionRow => ({
  session: 's',
  life: 'life-b',
  generation: 3,
  isUnsafe: false,
  ...more,
});

updates('a heartbeat adds one to the counter of a life that has not ended', () => {
  const news = { sees: ['life-c'], isDraining: true };
  assert.equal(beaten(row('b'), news), { ...row('b'), ...news, counter: 6 });
  assert.is(beaten(row('b', { end: REFUSED }), news), undefined);
  assert.is(beaten(undefined, news), undefined);
});

updates(
  'a life ends when its counter is the one that was seen, and its programs may end after its sessions',
  () => {
    assert.equal(ended(row('b'), 5, REFUSED)?.end, REFUSED);
    assert.equal(ended(row('b'), undefined, EXPIRED)?.end, EXPIRED);
    assert.is(ended(row('b'), 4, REFUSED), undefined);
    assert.equal(ended(row('b', { end: REFUSED }), 5, EXPIRED)?.end, EXPIRED);
    assert.is(ended(row('b', { end: REFUSED }), 5, REFUSED), undefined);
    assert.is(ended(row('b', { end: EXPIRED }), 5, EXPIRED), undefined);
  },
);

updates('a lease is taken and released by its generation', () => {
  assert.equal(taken(program(), 7, 'life-b'), program({ life: 'life-b', generation: 8 }));
  assert.is(taken(program(), 6, 'life-b'), undefined);
  const held = program({ life: 'life-b' });
  assert.equal(released(held, 7, 'life-b', 'b'), program({ failedOn: ['b'] }));
  assert.is(released(held, 7, 'life-c', undefined), undefined);
  assert.is(released(held, 6, 'life-b', undefined), undefined);
});

updates('a claim names life, generation and mark as they were read, and adds one to the generation', () => {
  assert.equal(claimed(session(), session(), 'life-a'), session({ life: 'life-a', generation: 4 }));
  for (const stored of [
    session({ life: 'life-c' }),
    session({ generation: 4 }),
    session({ isUnsafe: true }),
    undefined,
  ])
    assert.is(claimed(stored, session(), 'life-a'), undefined);
});

updates('the mark unsafe is set by the holder only', () => {
  assert.equal(fenced(session(), 3, 'life-b'), session({ isUnsafe: true }));
  assert.is(fenced(session(), 3, 'life-a'), undefined);
  assert.is(fenced(session(), 2, 'life-b'), undefined);
  assert.is(fenced(undefined, 3, 'life-b'), undefined);
});
updates.run();

function running(): Driven {
  const node = joined([], [program()]);
  node.do({ type: 'taken', program: 'p', generation: 7, isOurs: true });
  node.do({ type: 'started', program: 'p', start: 1 });
  node.programs = [program({ life: 'life-a', generation: 8 })];
  node.actions = [];
  return node;
}
