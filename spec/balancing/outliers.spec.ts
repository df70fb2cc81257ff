// Candidates whose calls fail or stay unanswered although they are up: when they are ejected or avoided, for how long, and what
// readmits them. Time is simulated.

import fc from 'fast-check';
import { Subject } from 'rxjs';
import * as assert from 'uvu/assert';
import type { AttemptRecord, AttemptVerdict } from '../../src/balancing/outliers.ts';
import { DEFAULT_POLICY, type TemplatePolicy } from '../../src/balancing/policy.ts';
import { Pool, type PoolChange } from '../../src/balancing/pool.ts';
import { systemClock } from '../../src/domain/time/clock.ts';
import { suite } from '../helpers/suite.ts';
import { candidate, type TestCandidate } from './candidates.ts';

const test = suite('outliers');

/** A pool with round robin and a clock that only `pass` advances. */
class Bench {
  readonly reported: string[] = [];
  readonly pool: Pool<TestCandidate>;
  readonly changes$ = new Subject<PoolChange<TestCandidate>>();
  readonly #byId = new Map<string, TestCandidate>();
  readonly #alarms = new Set<{ readonly atMs: number; readonly ring: () => void }>();
  policy: TemplatePolicy = DEFAULT_POLICY;
  nowMs = 1_000_000;

  constructor(...ids: string[]) {
    this.pool = new Pool(this.changes$, {
      policy: () => this.policy,
      random: Math.random,
      clock: {
        ...systemClock,
        now: () => this.nowMs,
        alarm: (waitMs, ring) => {
          const alarm = { atMs: this.nowMs + waitMs, ring };
          this.#alarms.add(alarm);
          return () => this.#alarms.delete(alarm);
        },
      },
      onSuspended: ({ id }, { reason }, forMs) =>
        this.reported.push(`${id} is out for ${forMs / 1000} s: ${reason}`),
      onReadmitted: ({ id }) => this.reported.push(`${id} is in`),
      onSilent: ({ id }) => this.reported.push(`${id} does not answer`),
    });
    for (const id of ids) this.up(candidate(id));
  }

  get timers(): number {
    return this.#alarms.size;
  }

  up(arriving: TestCandidate): void {
    this.#byId.set(arriving.id, arriving);
    this.changes$.next({ kind: 'up', candidate: arriving });
  }

  down(id: string): void {
    this.changes$.next({ kind: 'down', id });
  }

  at(id: string): TestCandidate {
    const found = this.#byId.get(id);
    if (found === undefined) throw new Error(`there is no candidate "${id}"`);
    return found;
  }

  pass(ms: number): void {
    const endMs = this.nowMs + ms;
    for (;;) {
      const [next] = [...this.#alarms].filter(({ atMs }) => atMs <= endMs).sort((a, b) => a.atMs - b.atMs);
      if (next === undefined) break;
      this.#alarms.delete(next);
      this.nowMs = next.atMs;
      next.ring();
    }
    this.nowMs = endMs;
  }

  /** One whole call. */
  call(id: string, how: AttemptVerdict): void {
    this.end(this.pool.outliers.sent(this.at(id)), how);
  }

  end(call: AttemptRecord<TestCandidate>, how: AttemptVerdict): void {
    if (how === 'answered') this.pool.outliers.noteMessage(call);
    this.pool.outliers.ended(call, how);
  }

  calls(id: string, how: AttemptVerdict, times: number): void {
    for (let time = 0; time < times; time += 1) this.call(id, how);
  }

  /** The ids of this many picks. */
  picked(times: number): (string | undefined)[] {
    return Array.from({ length: times }, () => this.pool.pick()?.id);
  }

  isOut(id: string): boolean {
    return this.pool.outliers.isSuspended(this.at(id));
  }
}

const REPEATABLE = { isRepeatable: () => true };

test('a candidate is ejected when more than half of at least 10 calls within 10 s have failed', () => {
  const bench = new Bench('a', 'b');
  for (let time = 0; time < 5; time += 1) {
    bench.call('a', 'failed');
    bench.call('a', 'answered');
  }
  assert.is(bench.isOut('a'), false);
  bench.call('a', 'failed');
  assert.equal(bench.reported, ['a is out for 5 s: 6 of 11 calls failed within 10 s']);
});

for (const ejectionFailures of [1, 5, 100]) {
  test(`a template ejects after ${ejectionFailures} failures in a row, from the next call on`, () => {
    const bench = new Bench('a', 'b');
    bench.policy = { ...DEFAULT_POLICY, ejectionFailures: 50 };
    bench.calls('a', 'failed', ejectionFailures === 100 ? 49 : ejectionFailures - 1);
    bench.policy = { ...DEFAULT_POLICY, ejectionFailures };
    if (ejectionFailures === 100) bench.calls('a', 'failed', 50);
    assert.is(bench.isOut('a'), false);
    bench.call('a', 'failed');
    const calls = ejectionFailures === 1 ? '1 call' : `${ejectionFailures} calls`;
    assert.equal(bench.reported, [`a is out for 5 s: ${calls} in a row failed`]);
  });
}

test('more than half of the calls must be at least twice as many as failures in a row', () => {
  const bench = new Bench('a', 'b');
  bench.policy = { ...DEFAULT_POLICY, ejectionFailures: 20 };
  for (let time = 0; time < 13; time += 1) {
    bench.calls('a', 'failed', 2);
    assert.is(bench.isOut('a'), false);
    bench.call('a', 'answered');
  }
  bench.calls('a', 'failed', 2);
  assert.equal(bench.reported, ['a is out for 5 s: 27 of 40 calls failed within 10 s']);
});

for (const [size, most] of [
  [1, 0],
  [2, 1],
  [3, 1],
  [4, 2],
  [5, 2],
] as const) {
  test(`of ${size} candidates at most ${most} are ejected`, () => {
    const ids = ['a', 'b', 'c', 'd', 'e'].slice(0, size);
    const bench = new Bench(...ids);
    for (const id of ids) bench.calls(id, 'failed', 30);
    assert.is(ids.filter((id) => bench.isOut(id)).length, most);
    assert.is(new Set(bench.picked(20)).size, size - most);
  });
}

test('the candidate whose ejection ends first is readmitted when the pool becomes too small', () => {
  const bench = new Bench('a', 'b', 'c', 'd');
  bench.calls('a', 'failed', 5);
  bench.pass(100);
  bench.calls('b', 'failed', 5);
  bench.down('d');
  assert.equal([bench.isOut('a'), bench.isOut('b'), bench.reported.at(-1)], [false, true, 'a is in']);
});

test('after an ejection one trial call decides, a repeatable one if one comes within 1 s', () => {
  const bench = new Bench('a', 'b');
  bench.calls('a', 'failed', 5);
  bench.pass(5_000);
  assert.is(bench.pool.pick()?.id, 'b', 'not repeatable');
  assert.is(
    bench.pool.pick(undefined, { excluded: new Set(['b']), ...REPEATABLE })?.id,
    'a',
    'no other candidate is left',
  );
  assert.is(bench.pool.pick(undefined, REPEATABLE)?.id, 'a');
  const trial = bench.pool.outliers.sent(bench.at('a'));
  bench.pass(1_000);
  for (let time = 0; time < 5; time += 1) assert.is(bench.pool.pick(undefined, REPEATABLE)?.id, 'b');
  bench.end(trial, 'answered');
  assert.equal([bench.reported.at(-1), new Set(bench.picked(4)).size], ['a is in', 2]);
});

test('after 1 s any call may be the trial; again, if it is cancelled, and after 5 s, if no call comes', () => {
  const bench = new Bench('a', 'b');
  const before = Array.from({ length: 5 }, () => bench.pool.outliers.sent(bench.at('a')));
  bench.calls('a', 'failed', 5);
  bench.pass(6_000);
  assert.is(bench.pool.pick()?.id, 'a');
  bench.call('a', 'inconclusive');
  assert.equal(bench.picked(3), ['a', 'b', 'b']);
  bench.pass(5_000);
  assert.equal(bench.picked(2), ['a', 'b']);
  bench.call('a', 'answered');
  for (const call of before) bench.end(call, 'failed');
  assert.is(bench.isOut('a'), false);
});

test('a failed trial doubles the ejection, up to 60 s; each minute without one takes a doubling back', () => {
  const bench = new Bench('a', 'b');
  bench.calls('a', 'failed', 5);
  for (const forMs of [5_000, 10_000, 20_000, 40_000, 60_000, 60_000]) {
    assert.is(bench.pool.outliers.suspensionOf(bench.at('a'))?.untilMs, bench.nowMs + forMs);
    bench.pass(forMs);
    bench.call('a', 'failed');
  }
  bench.pass(60_000);
  bench.call('a', 'answered');
  bench.pass(2 * 60_000);
  bench.calls('a', 'failed', 5);
  assert.is(bench.reported.at(-1), 'a is out for 20 s: 5 calls in a row failed');
  bench.pass(20_000);
  bench.call('a', 'answered');
  bench.pass(10 * 60_000);
  bench.calls('a', 'failed', 5);
  assert.is(bench.reported.at(-1), 'a is out for 5 s: 5 calls in a row failed');
});

test('a candidate whose three newest calls are unanswered for over 3 s is avoided until a message comes', () => {
  const bench = new Bench('a', 'b');
  bench.call('b', 'answered'); // the usual time
  const unanswered = [0, 1, 2].map(() => bench.pool.outliers.sent(bench.at('a')));
  bench.pass(2_900);
  assert.is(bench.isOut('a'), false);
  bench.pass(700);
  assert.equal(bench.reported, [
    'a does not answer',
    'a is out for 5 s: its newest 3 calls or more have been unanswered for over 3 s',
  ]);
  assert.equal(bench.picked(2), ['b', 'b']);
  bench.at('b').activeCalls = bench.at('b').capacity;
  assert.equal([bench.pool.pick()?.id, bench.pool.isFull()], ['a', false]);
  bench.at('b').activeCalls = 0;
  if (unanswered[1] !== undefined) bench.end(unanswered[1], 'answered');
  assert.equal([bench.isOut('a'), bench.reported.at(-1)], [false, 'a is in']);
});

test('a call is not silent, and fails nobody, while it is held back', () => {
  const bench = new Bench('a', 'b');
  const { outliers } = bench.pool;
  bench.call('b', 'answered'); // the usual time
  const held = [0, 1, 2, 3, 4].map(() => outliers.sent(bench.at('a')));
  for (const call of held) outliers.setHeld(call, true);
  bench.pass(60_000);
  assert.equal(bench.reported, []);
  for (const call of held) outliers.setHeld(call, false);
  bench.pass(2_900);
  assert.equal(bench.reported, []);
  bench.pass(700);
  assert.is(
    bench.reported.at(-1),
    'a is out for 5 s: its newest 3 calls or more have been unanswered for over 3 s',
  );
  for (const call of held) bench.end(call, 'answered');
  for (let time = 0; time < 5; time += 1) {
    const call = outliers.sent(bench.at('a'));
    outliers.setHeld(call, true);
    bench.end(call, 'failed');
  }
  assert.is(bench.isOut('a'), false);
});

test('slow answers raise the limit of unanswered calls, and without any answer there is none', () => {
  const bench = new Bench('a', 'b');
  const send = () => [0, 1, 2, 3].map(() => bench.pool.outliers.sent(bench.at('a')));
  const unknown = send();
  bench.pass(60_000);
  assert.is(bench.isOut('a'), false);
  for (const call of unknown) bench.end(call, 'inconclusive');
  const slow = bench.pool.outliers.sent(bench.at('b'));
  bench.pass(2_000);
  bench.end(slow, 'answered');
  send();
  bench.pass(19_000);
  assert.is(bench.isOut('a'), false);
  bench.pass(1_500);
  assert.is(bench.isOut('a'), true);
});

test('an unanswered trial has failed; a later message readmits a candidate that was avoided', () => {
  const bench = new Bench('a', 'b');
  bench.call('b', 'answered');
  for (let time = 0; time < 3; time += 1) bench.pool.outliers.sent(bench.at('a'));
  bench.pass(3_500 + 5_000);
  assert.is(bench.pool.pick(undefined, REPEATABLE)?.id, 'a');
  const trial = bench.pool.outliers.sent(bench.at('a'));
  bench.pass(4_000);
  assert.is(bench.reported.at(-1), 'a is out for 10 s: its trial call is unanswered');
  bench.end(trial, 'answered');
  assert.is(bench.isOut('a'), false);
});

test('an unanswered call is reported once, and no timer is left when all is answered', () => {
  const bench = new Bench('a');
  assert.is(bench.timers, 0);
  const calls = [bench.pool.outliers.sent(bench.at('a'))];
  bench.pass(20_000);
  calls.push(bench.pool.outliers.sent(bench.at('a')));
  bench.pass(20_000);
  assert.equal([bench.reported, bench.timers], [['a does not answer', 'a does not answer'], 1]);
  for (const call of calls) bench.end(call, 'answered');
  assert.is(bench.timers, 0);
  bench.pool.outliers.sent(bench.at('a'));
  bench.changes$.complete();
  assert.is(bench.timers, 0);
});

test('calls that failed while a candidate was down, or were sent then, do not count when it is up again', () => {
  const bench = new Bench('a', 'b');
  bench.down('a');
  bench.calls('a', 'failed', 4);
  const late = bench.pool.outliers.sent(bench.at('a'));
  bench.pass(1);
  bench.up(bench.at('a'));
  bench.end(late, 'failed');
  bench.call('a', 'failed');
  assert.equal([bench.isOut('a'), bench.pool.outliers.activeCalls], [false, 0]);
  bench.calls('a', 'failed', 4);
  assert.is(bench.isOut('a'), true);
});

test('with random failures, an ejected candidate has at most one trial call at a time', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(99), { minLength: 50, maxLength: 400 }), (numbers) => {
      const bench = new Bench('a', 'b', 'c', 'd');
      let trials: AttemptRecord<TestCandidate>[] = [];
      for (const number of numbers) {
        bench.pass(number * 5);
        const wasOut = new Set(['a', 'b', 'c', 'd'].filter((id) => bench.isOut(id)));
        const chosen = bench.pool.pick(undefined, REPEATABLE);
        if (chosen === undefined) throw new Error('there is always one');
        const call = bench.pool.outliers.sent(chosen);
        if (wasOut.has(chosen.id)) {
          assert.is(trials.filter(({ at }) => at.candidate === chosen).length, 0);
          trials.push(call);
        } else bench.end(call, chosen.id < 'c' && number % 3 > 0 ? 'failed' : 'answered');
        if (number % 4 === 0) {
          for (const trial of trials) bench.end(trial, number % 8 === 0 ? 'failed' : 'answered');
          trials = [];
        }
        // A trial that stays unanswered is over, and the next one may come later.
        trials = trials.filter(({ atMs }) => atMs > bench.nowMs - 3_000);
      }
    }),
    { seed: 40, numRuns: 100 },
  );
});

test.run();
