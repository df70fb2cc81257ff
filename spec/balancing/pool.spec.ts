// Which candidates a pool may choose, for each strategy and for pools of any size: full, excluded, ejected and avoided ones. The rules
// are written here a second time, one candidate after another.

import fc from 'fast-check';
import { Subject } from 'rxjs';
import * as assert from 'uvu/assert';
import { DEFAULT_POLICY } from '../../src/balancing/policy.ts';
import { Pool, type PoolChange } from '../../src/balancing/pool.ts';
import { STRATEGY_NAMES } from '../../src/balancing/strategies.ts';
import { systemClock } from '../../src/domain/time/clock.ts';
import { suite } from '../helpers/suite.ts';
import { candidate, seeded, type TestCandidate } from './candidates.ts';

const test = suite('pool');
const TIMELESS = {
  clock: { ...systemClock, now: () => 0, alarm: () => () => {} },
  ...{ onSuspended: () => {}, onReadmitted: () => {}, onSilent: () => {} },
};

for (const strategy of STRATEGY_NAMES) {
  test(`${strategy}: chooses a candidate exactly when one may take the call, and one of these`, () => {
    fc.assert(
      fc.property(fc.constantFrom(1, 2, 3, 10, 40, 1_000), fc.integer(), (size, seed) => {
        const random = seeded(seed);
        const { pool, all } = poolOf(size, { strategy, random });
        const someOf = (share: number) => all.filter(() => random() < share);
        const shares = [0, 0.1, 0.9, 1];
        const share = () => shares[Math.floor(random() * shares.length)] ?? 0;
        for (const { id } of someOf(share() / 2)) fail(pool, all, id);
        for (const full of someOf(share())) full.activeCalls = full.capacity;
        const excluded = new Set(someOf(share()).map(({ id }) => id));

        const untried = all.filter(({ id }) => !excluded.has(id));
        const included = untried.filter((one) => !pool.outliers.isEjected(one));
        const allowed = included.length > 0 ? included : untried;
        const able = allowed.filter(({ activeCalls, capacity }) => activeCalls < capacity);

        for (const request of [{}, { callerId: 'user:1' }]) {
          for (let pick = 0; pick < 3; pick += 1) {
            const chosen = pool.pick(request, { excluded });
            assert.is(chosen !== undefined, able.length > 0);
            assert.ok(chosen === undefined || able.includes(chosen));
          }
        }
        assert.is(pool.isFull(excluded), allowed.length > 0 && able.length === 0);
        const sample = all[Math.floor(random() * size)];
        if (sample !== undefined) assert.is(pool.mayBePicked(sample, excluded), allowed.includes(sample));
      }),
      { seed: 43, numRuns: 40 },
    );
  });
}

test('a list of candidates that was read never changes, whatever comes and goes', () => {
  const { pool, all, changes$ } = poolOf(4, { strategy: 'round_robin', random: () => 0 });
  const before = pool.candidates;
  changes$.next({ kind: 'down', id: all[1]?.id ?? '' });
  const between = pool.candidates;
  const again = candidate('a-first');
  changes$.next({ kind: 'up', candidate: again });
  assert.equal(before, all);
  assert.equal(
    between,
    all.filter((_, index) => index !== 1),
  );
  assert.is(pool.candidates, pool.candidates, 'the same list while they stay');
  assert.equal(new Set(pool.candidates), new Set([again, ...between]));
  assert.equal([pool.size, pool.has(again), pool.has(candidate('a-first'))], [4, true, false]);
});

test('consistent_hash: calls at candidates that left, or that wait for their client, raise no bound', () => {
  const { pool, all, changes$ } = poolOf(4, { strategy: 'consistent_hash', random: () => 0 });
  const [one, , , four] = all;
  if (one === undefined || four === undefined) throw new Error('there are four');
  const begin = (at: TestCandidate) => {
    at.activeCalls += 1;
    return pool.outliers.sent(at);
  };
  const calls = Array.from({ length: 32 }, () => begin(four));
  changes$.next({ kind: 'down', id: four.id });
  for (let call = 0; call < 32; call += 1) {
    pool.outliers.setAwaitingClient(begin(one), true);
    one.activeCalls -= 1;
  }
  const counts = () => all.slice(0, 3).map(({ activeCalls }) => activeCalls);
  const hot = { callerId: 'user:1' };
  for (let call = 0; call < 6; call += 1) begin(pool.pick(hot) ?? four);
  assert.equal(counts().toSorted(), [1, 2, 3]); // the last one: 1.25 times 5 / 3, rounded up
  changes$.next({ kind: 'up', candidate: four });
  assert.is(pool.outliers.activeCalls, 32 + 6);
  for (const call of calls) pool.outliers.ended(call, 'answered');
  assert.is(pool.outliers.activeCalls, 6);
});

test('the candidates are in the order of their ids, whatever the order in which they come, go and return', () => {
  const changes$ = new Subject<PoolChange<TestCandidate>>();
  const pool = new Pool(changes$, { ...TIMELESS, policy: () => DEFAULT_POLICY, random: Math.random });
  const random = seeded(5);
  const up = new Map<string, TestCandidate>();
  for (let change = 0; change < 500; change += 1) {
    const id = `${Math.floor(random() * 30)}`;
    const before = pool.candidates;
    const copy = [...before];
    if (random() < 0.4) {
      up.delete(id);
      changes$.next({ kind: 'down', id });
    } else {
      up.set(id, candidate(id));
      changes$.next({ kind: 'up', candidate: up.get(id) ?? candidate(id) });
    }
    assert.ok(before.length === copy.length && before.every((one, index) => one === copy[index]));
    assert.equal(
      pool.candidates.map(({ id }) => id),
      [...up.keys()].sort(),
    );
    assert.ok(pool.candidates.every((one) => up.get(one.id) === one));
  }
  changes$.complete();
  assert.equal([pool.candidates, pool.pick()], [[], undefined]);
});

test.run();

function poolOf(
  size: number,
  { strategy, random }: { strategy: (typeof STRATEGY_NAMES)[number]; random: () => number },
) {
  const changes$ = new Subject<PoolChange<TestCandidate>>();
  const policy = { ...DEFAULT_POLICY, strategy };
  const pool = new Pool(changes$, { ...TIMELESS, policy: () => policy, random });
  const all = Array.from({ length: size }, (_, index) => candidate(`instance-${index}`));
  for (const one of all) changes$.next({ kind: 'up', candidate: one });
  return { pool, all, changes$ };
}

/** Ejects the candidate, unless half of the pool is. */
function fail(pool: Pool<TestCandidate>, all: readonly TestCandidate[], id: string): void {
  const failing = all.find((one) => one.id === id);
  for (let call = 0; call < 5 && failing !== undefined; call += 1)
    pool.outliers.ended(pool.outliers.sent(failing), 'failed');
}
