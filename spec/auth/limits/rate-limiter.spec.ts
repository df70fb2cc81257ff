// The number of requests that a caller may make in an hour, counted on this node or shared with other nodes.

import { mock } from 'node:test';
import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { RateLimiter, type SharedCounter } from '../../../src/auth/limits/rate-limiter.ts';
import type { Principal } from '../../../src/domain/accounts/principal.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { suite } from '../../helpers/suite.ts';
import { START_MS } from '../auth-harness.ts';

const test = suite('the rate limiter');

const hourMs = 3_600_000;
const startMs = 1_900_000_000_000;
const principal = (id: string, hourlyLimit?: number): Principal => ({
  id,
  kind: 'user',
  name: id,
  scopes: new Set(),
  ...(hourlyLimit === undefined ? {} : { hourlyLimit }),
});

const CLOCKS = { ...systemClock, now: () => Date.now() };

test.before.each(() => mock.timers.enable({ apis: ['Date', 'setTimeout'], now: startMs }));
test.after.each(() => mock.timers.reset());

test('consumes several requests at once, or none over the limit; peek consumes none', () => {
  const limiter = new RateLimiter(CLOCKS);
  const ada = principal('ada', 5);
  const resetAtSeconds = (startMs + hourMs) / 1000;
  assert.equal(limiter.peek(ada), { limit: 5, remaining: 5, resetAtSeconds });
  assert.equal(limiter.take('ada', 5, 3), { limit: 5, remaining: 2, resetAtSeconds });
  assert.equal(limiter.peek(ada), { limit: 5, remaining: 2, resetAtSeconds });
  const left = { limit: 5, remaining: 2, resetAtSeconds };
  assert.equal(limiter.take('ada', 5, 3), { ...left, retryAfterSeconds: 3_600 });
  assert.equal(limiter.peek(ada), left);
  assert.equal(limiter.take('ada', 5, 2), { ...left, remaining: 0 });
  assert.is(limiter.peek(principal('admin')), undefined);
});

test('consumes and refuses in one step of the shared counter, and locally while that is unavailable', async () => {
  const asked: string[] = [];
  let isAway = false;
  const shared: SharedCounter = {
    add: async (key, added, limit) => {
      asked.push(`${key} ${added} of ${limit}`);
      return isAway ? undefined : { count: 2 + added, endsInMs: 500 };
    },
    close: () => undefined,
  };
  const limiter = new RateLimiter(CLOCKS, shared);
  const { remaining, retryAfterSeconds } = await limiter.take('ada', 5, 4);
  assert.equal([remaining, retryAfterSeconds, asked], [3, 1, ['ada 4 of 5']]);
  assert.is(limiter.peek(principal('ada', 5)), undefined);
  const remainders: number[] = [];
  for (isAway of [false, true, true, false]) remainders.push((await limiter.take('ada', 5)).remaining);
  assert.equal(remainders, [2, 4, 3, 2]);
});

test('the nodes share the limit in chunks while the shared counter is unavailable, and only then', async () => {
  let isAway = false;
  const chunks: string[] = [];
  const window = (count: number) => ({ count, endsInMs: 500 });
  const add = async () => (isAway ? undefined : window(1));
  const limiter = new RateLimiter(CLOCKS, { add, close: () => undefined });
  limiter.shareIn({
    add: async (key, added, limit) => {
      chunks.push(`${key} ${added} of ${limit}`);
      return window(6);
    },
    peek: () => window(6),
  });
  const remainders: number[] = [];
  for (isAway of [false, true, true, false]) remainders.push((await limiter.take('ada', 9, 2)).remaining);
  assert.equal(remainders, [8, 3, 3, 8]);
  assert.equal(chunks, ['ada 2 of 9', 'ada 2 of 9']);
});

test('bounds free messages of a principal without requests left, by its own count or by the shared one', async () => {
  const free = (limiter: RateLimiter, who: Principal) => {
    let taken = 0;
    while (taken < 1_000 && limiter.takeFree(who)) taken += 1;
    return taken;
  };
  let count = 1;
  const shared: SharedCounter = { add: async () => ({ count, endsInMs: 5_000 }), close: () => undefined };
  const ada = principal('ada', 5);
  for (const limiter of [new RateLimiter(CLOCKS), new RateLimiter(CLOCKS, shared)]) {
    count = 4;
    await limiter.take('ada', 5, 4);
    assert.is(free(limiter, ada), 1_000);
    count = 8;
    await limiter.take('ada', 5, 4); // refused: one is left
    assert.is(free(limiter, ada), 1_000);
    count = 5;
    await limiter.take('ada', 5);
    assert.is(free(limiter, ada), 60);
    assert.equal([free(limiter, principal('ben', 5)), free(limiter, principal('admin'))], [1_000, 1_000]);
    mock.timers.tick(1_000);
    assert.is(free(limiter, ada), 60);
    mock.timers.tick(hourMs);
    assert.is(free(limiter, ada), 1_000);
  }
});

test('allows at most the limit in a window, and reports its state, for any order of requests', () => {
  const step = fc.record({ who: fc.nat(3), laterMs: fc.nat(1_000_000) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const limiter = new RateLimiter(CLOCKS);
      const windows = new Map<number, { endsAtMs: number; count: number }>();
      for (const { who, laterMs } of steps) {
        mock.timers.tick(laterMs);
        const limit = 5 + who;
        const before = windows.get(who);
        const isOpen = before !== undefined && before.endsAtMs > Date.now();
        const window = isOpen ? before : { endsAtMs: Date.now() + hourMs, count: 0 };
        window.count += 1;
        windows.set(who, window);
        const answer = limiter.take(`who${who}`, limit);
        assert.equal(answer, {
          limit,
          remaining: Math.max(0, limit - window.count),
          resetAtSeconds: Math.ceil(window.endsAtMs / 1000),
          ...(window.count > limit
            ? { retryAfterSeconds: Math.max(1, Math.ceil((window.endsAtMs - Date.now()) / 1000)) }
            : {}),
        });
      }
    }),
    { numRuns: 50 },
  );
});

test('a step of the wall clock neither ends nor extends a window, and moves only the time that is shown', () => {
  for (const stepMs of [11 * 60_000, -24 * hourMs, 100 * 24 * hourMs]) {
    const clock = { wallMs: START_MS, monotonicMs: 1_000.25 };
    const pass = (ms: number) => {
      clock.wallMs += ms;
      clock.monotonicMs += ms;
    };
    const limiter = new RateLimiter({
      ...systemClock,
      wall: () => clock.wallMs,
      now: () => clock.monotonicMs,
    });
    const ada = principal('ada', 2);
    limiter.take('ada', 2, 2);
    pass(hourMs / 2);
    clock.wallMs += stepMs;
    const resetAtSeconds = Math.ceil((clock.wallMs + hourMs / 2) / 1000);
    const refused = { limit: 2, remaining: 0, resetAtSeconds, retryAfterSeconds: 1_800 };
    assert.equal(limiter.take('ada', 2), refused);
    assert.equal(limiter.peek(ada), refused);
    const free = Array.from({ length: 61 }, () => limiter.takeFree(ada));
    assert.equal([free.indexOf(false), free.lastIndexOf(true)], [60, 59]);
    pass(hourMs / 2);
    assert.is(Object(limiter.take('ada', 2)).remaining, 1);
  }
});

test.run();
