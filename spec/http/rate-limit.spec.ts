import * as assert from 'uvu/assert';
import { createRateLimiter } from '../../src/auth/rate-limiter.ts';
import type { Principal } from '../../src/domain/account.ts';
import { GatewayError } from '../../src/domain/errors.ts';
import { consumeRateLimit } from '../../src/http/rate-limit.ts';
import type { RequestState } from '../../src/http/request.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('charging a caller');
const nowMs = 1_900_000_000_000;
const ada: Principal = { id: 'ada', kind: 'user', name: 'ada', scopes: new Set(), hourlyLimit: 5 };
const stateOf = (principal?: Principal): RequestState => ({
  requestId: 'r1',
  ...(principal === undefined ? {} : { principal }),
});

test('counts several at once, without a promise, and leaves the window for the headers', () => {
  const limiter = createRateLimiter({ now: () => nowMs });
  const state = stateOf(ada);
  assert.is(consumeRateLimit(state, limiter, 3), undefined);
  assert.is(state.rateLimit?.remaining, 2);
  assert.throws(
    () => consumeRateLimit(state, limiter, 3),
    (thrown: unknown) => thrown instanceof GatewayError && thrown.code === 'RATE_LIMIT_EXCEEDED',
  );
  assert.equal([state.rateLimit?.remaining, state.rateLimit?.retryAfterSeconds], [2, 3_600]);
});

test('waits where others count', async () => {
  const shared = {
    add: async (_key: string, count: number) => ({ count: count + 4, endsInMs: 1_000 }),
    close: () => {},
  };
  const limiter = createRateLimiter({ shared, now: () => nowMs });
  const state = stateOf(ada);
  await consumeRateLimit(state, limiter, 1);
  assert.is(state.rateLimit?.remaining, 0);
  const refused = await Promise.resolve(consumeRateLimit(state, limiter, 2)).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  assert.ok(refused instanceof GatewayError && refused.facts.retryAfterSeconds === 1);
});

test('counts nothing for nothing, for those without a limit, and for nobody', () => {
  const limiter = {
    take: () => {
      throw new Error('asked');
    },
  };
  const { hourlyLimit: _, ...root } = ada;
  for (const [principal, count] of [
    [ada, 0],
    [root, 7],
    [undefined, 1],
  ] as const) {
    const state = stateOf(principal);
    assert.is(consumeRateLimit(state, limiter, count), undefined);
    assert.not('rateLimit' in state);
  }
});

test.run();
