import { concat, EMPTY, of, Subject, throwError } from 'rxjs';
import * as assert from 'uvu/assert';
import { type Change, Pool } from '../../src/balancing/pool.ts';
import { STRATEGIES } from '../../src/balancing/strategies.ts';
import { suite } from '../helpers/suite.ts';
import { candidate, type TestCandidate } from './candidates.ts';

const test = suite('pool');
/** No timer runs: no candidate is checked for silence. */
const OPTIONS = {
  now: () => performance.now(),
  alarm: () => () => undefined,
  ejected: () => undefined,
  readmitted: () => undefined,
  silent: () => undefined,
};

const up = (arriving: TestCandidate): Change<TestCandidate> => ({ kind: 'up', candidate: arriving });
const down = (id: string): Change<TestCandidate> => ({ kind: 'down', id });

/** A pool by round robin in which these candidates are up, and the changes that feed it. */
function pooled(...members: TestCandidate[]) {
  const changes$ = new Subject<Change<TestCandidate>>();
  const pool = new Pool(changes$, STRATEGIES.round_robin, OPTIONS);
  for (const member of members) changes$.next(up(member));
  return { pool, changes$ };
}

/** The ids of so many picks. */
const picked = (pool: Pool<TestCandidate>, times: number) =>
  Array.from({ length: times }, () => pool.pick()?.id);

test('distinguishes full candidates from none', () => {
  const full = candidate('a', { inFlight: 1, capacity: 1 });
  const { pool, changes$ } = pooled(full);
  assert.equal([pool.pick(), pool.isFull()], [undefined, true]);
  changes$.next(down('a'));
  assert.equal([pool.pick(), pool.isFull()], [undefined, false]);
});

test('chooses by another strategy from the next pick on', () => {
  const { pool } = pooled(candidate('a', { inFlight: 1 }), candidate('b'));
  assert.is(pool.pick()?.id, 'a');
  pool.setStrategy(STRATEGIES.least_connections);
  assert.equal(picked(pool, 2), ['b', 'b']);
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

test('is empty when the changes end during the subscription', () => {
  const failing = concat(
    of(up(candidate('a'))),
    throwError(() => new Error('the source broke')),
  );
  assert.is(new Pool(failing, STRATEGIES.round_robin, OPTIONS).pick(), undefined);
  assert.is(
    new Pool(concat(of(up(candidate('a'))), EMPTY), STRATEGIES.round_robin, OPTIONS).pick(),
    undefined,
  );
});

test.run();
