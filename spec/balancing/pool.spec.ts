import { concat, EMPTY, NEVER, of, Subject, throwError } from 'rxjs';
import * as assert from 'uvu/assert';
import { leastConnections } from '../../src/balancing/least-connections.ts';
import { type Change, Pool } from '../../src/balancing/pool.ts';
import { roundRobin } from '../../src/balancing/round-robin.ts';
import type { Candidate, Strategy } from '../../src/balancing/strategy.ts';
import { suite } from '../helpers/suite.ts';
import { candidate, counted, type TestCandidate } from './candidates.ts';

const test = suite('pool');

const up = (arriving: TestCandidate): Change<TestCandidate> => ({ kind: 'up', candidate: arriving });
const down = (id: string): Change<TestCandidate> => ({ kind: 'down', id });

/** A pool by round robin in which these candidates are up, and the changes that feed it. */
function pooled(...members: TestCandidate[]) {
  const changes$ = new Subject<Change<TestCandidate>>();
  const pool = new Pool(changes$, roundRobin);
  for (const member of members) changes$.next(up(member));
  return { pool, changes$ };
}

/** The ids of so many picks. */
const picked = (pool: Pool<TestCandidate>, times: number) =>
  Array.from({ length: times }, () => pool.pick()?.id);

test('picks nobody while nobody is up', () => {
  const { pool } = pooled();
  assert.is(pool.pick(), undefined);
  assert.is(pool.isFull(), false);
  assert.is(pool.size, 0);
});

test('picks from those that are up', () => {
  const { pool } = pooled(candidate('a'), candidate('b'));
  assert.equal(picked(pool, 4), ['a', 'b', 'a', 'b']);
});

test('picks at once what came up while it subscribed', () => {
  const pool = new Pool(concat(of(up(candidate('a'))), NEVER), roundRobin);
  assert.is(pool.pick()?.id, 'a');
});

test('cannot see a candidate that went down, from the very next pick on', () => {
  const { pool, changes$ } = pooled(candidate('a'), candidate('b'));
  changes$.next(down('a'));
  assert.equal(picked(pool, 3), ['b', 'b', 'b']);
  assert.is(pool.size, 1);
});

test('takes no notice when somebody unknown goes down', () => {
  const { pool, changes$ } = pooled(candidate('a'));
  changes$.next(down('b'));
  assert.is(pool.pick()?.id, 'a');
});

test('replaces a candidate that comes up again with the same id', () => {
  const { pool, changes$ } = pooled(candidate('a', { weight: 1 }));
  const renewed = candidate('a', { weight: 2 });
  changes$.next(up(renewed));
  assert.is(pool.pick(), renewed);
  assert.is(pool.size, 1);
});

test('skips an instance that was tried already', () => {
  const { pool } = pooled(candidate('a'), candidate('b'));
  assert.is(pool.pick(new Set(['a']))?.id, 'b');
  assert.is(pool.pick(new Set(['a', 'b'])), undefined);
});

test('skips an instance at its capacity and takes it again when it has room', () => {
  const full = candidate('a', { inFlight: 2, capacity: 2 });
  const { pool } = pooled(full, candidate('b'));
  assert.equal(picked(pool, 2), ['b', 'b']);
  full.inFlight = 1;
  assert.is(pool.pick()?.id, 'a');
});

test('tells that all are full from nobody being there', () => {
  const full = candidate('a', { inFlight: 1, capacity: 1 });
  const { pool, changes$ } = pooled(full);
  assert.equal([pool.pick(), pool.isFull()], [undefined, true]);
  changes$.next(down('a'));
  assert.equal([pool.pick(), pool.isFull()], [undefined, false]);
});

test('is not full while one that was not tried has room', () => {
  const { pool } = pooled(candidate('a', { inFlight: 1, capacity: 1 }), candidate('b'));
  assert.is(pool.isFull(), false);
  assert.is(pool.isFull(new Set(['b'])), true);
  assert.is(pool.isFull(new Set(['a', 'b'])), false);
});

test('lists the candidates that are up, full ones included, oldest first', () => {
  const second = candidate('b', { inFlight: 1, capacity: 1 });
  const first = candidate('z');
  const { pool } = pooled(first, second);
  assert.equal(pool.candidates, [first, second]);
});

test('never changes a list it has handed out', () => {
  const { pool, changes$ } = pooled(candidate('a'));
  const before = pool.candidates;
  changes$.next(up(candidate('b')));
  assert.is(before.length, 1);
  assert.is(pool.candidates.length, 2);
});

test('hands its own list to the strategy when nobody is excluded or full', () => {
  const seen: (readonly Candidate[])[] = [];
  const watching: Strategy = (candidates) => {
    seen.push(candidates);
    return candidates[0];
  };
  const { pool } = pooled(candidate('a'), candidate('b'));
  pool.setStrategy(() => watching);
  pool.pick();
  assert.is(seen[0], pool.candidates);
});

test('chooses by another strategy from the next pick on', () => {
  const { pool } = pooled(candidate('a', { inFlight: 1 }), candidate('b'));
  assert.is(pool.pick()?.id, 'a');
  pool.setStrategy(leastConnections);
  assert.equal(picked(pool, 2), ['b', 'b']);
});

test('spreads a burst of 2 000 as 500 each when every pick is counted at once', () => {
  const { pool } = pooled(...['a', 'b', 'c', 'd'].map((id) => candidate(id, { capacity: 1_000 })));
  pool.setStrategy(leastConnections);
  const ids = Array.from({ length: 2_000 }, () => {
    const chosen = pool.pick();
    if (chosen) chosen.inFlight += 1;
    return chosen?.id ?? 'nobody';
  });
  assert.equal(counted(ids), { a: 500, b: 500, c: 500, d: 500 });
});

test('is empty when it is closed, and stops listening', () => {
  const { pool, changes$ } = pooled(candidate('a'));
  pool.close();
  pool.close();
  changes$.next(up(candidate('b')));
  assert.equal([pool.pick(), pool.size, pool.candidates], [undefined, 0, []]);
  assert.is(changes$.observed, false);
});

for (const [end, finish] of [
  ['complete', (changes$: Subject<Change<TestCandidate>>) => changes$.complete()],
  ['fail', (changes$: Subject<Change<TestCandidate>>) => changes$.error(new Error('the source broke'))],
] as const) {
  test(`keeps nobody when the changes ${end}`, () => {
    const { pool, changes$ } = pooled(candidate('a'));
    finish(changes$);
    assert.equal([pool.pick(), pool.isFull(), pool.size], [undefined, false, 0]);
  });
}

test('keeps nobody when the changes end while they are being subscribed to', () => {
  const failing = concat(
    of(up(candidate('a'))),
    throwError(() => new Error('the source broke')),
  );
  assert.is(new Pool(failing, roundRobin).pick(), undefined);
  assert.is(new Pool(concat(of(up(candidate('a'))), EMPTY), roundRobin).pick(), undefined);
});

test('shares nothing with another pool over the same ids', () => {
  const mine = pooled(candidate('a'), candidate('b'));
  const theirs = pooled(candidate('a'), candidate('b'));
  mine.pool.pick();
  theirs.changes$.next(down('b'));
  assert.equal([mine.pool.pick()?.id, theirs.pool.pick()?.id], ['b', 'a']);
});

test.run();
