// `calls_per_minute` of a view where several nodes count together: one count of each caller, view and tool, whichever node gets a call.

import * as assert from 'uvu/assert';
import { RateLimiter } from '../../../src/auth/limits/rate-limiter.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { createGateway, type Gateway } from '../../../src/gateway/gateway.ts';
import { serving } from '../../helpers/backends/function-backend.ts';
import { suite } from '../../helpers/suite.ts';
import { passTurns } from '../../helpers/time/turns.ts';

const test = suite('limits of a view on several nodes', { timeoutMs: 30_000 });
const counts = new Map<string, number>();
const shared = {
  add: async (key: string, count: number, limit: number, windowSeconds?: number) => {
    assert.is(windowSeconds, 60);
    const sum = (counts.get(key) ?? 0) + count;
    if (sum <= limit) counts.set(key, sum);
    return { count: sum, endsInMs: 60_000 };
  },
  close: () => {},
};
const VIEW = { id: 'desk', from: [{ template: 't' }], limits: { echo: { calls_per_minute: 2 } } };
let nodes: readonly Gateway[] = [];

test.before(async () => {
  const callLimiter = new RateLimiter(systemClock, shared, 60);
  nodes = [await createGateway({ callLimiter }), await createGateway({ callLimiter })];
  for (const node of nodes) {
    const handler = serving({ echo: () => ({ content: [] }), other: () => ({ content: [] }) });
    await node.register('t', { id: 'one', handler }, { waitMs: 5_000 });
    await node.views.put(VIEW);
  }
});
test.after(() => Promise.all(nodes.map((node) => node.close({ graceMs: 0 }))));

const call = (index: number, tool: string) =>
  nodes[index]?.call('desk', tool).then(
    () => 'called',
    ({ code, facts }) => `${code} ${facts.retryAfterSeconds}`,
  );

test('a caller has its calls once, and a refused one is not sent', async () => {
  assert.equal([await call(0, 'echo'), await call(1, 'echo')], ['called', 'called']);
  assert.equal([await call(0, 'echo'), await call(1, 'echo')], Array(2).fill('RATE_LIMIT_EXCEEDED 60'));
  assert.equal([await call(0, 'other'), await call(1, 'other')], ['called', 'called']);
  assert.equal([...counts], [['desk/echo/anonymous', 2]]);
});

test('a call that is cancelled while its tool is looked up is not counted, and its refusal is no unhandled error', async () => {
  const unhandled: unknown[] = [];
  const note = (error: unknown) => void unhandled.push(error);
  process.on('unhandledRejection', note);
  let taken = 0;
  const take = async () => {
    taken += 1;
    return { retryAfterSeconds: 5 };
  };
  const gateway = await createGateway({ callLimiter: { take } });
  try {
    await gateway.register('t', { id: 'one', handler: serving({ echo: () => ({ content: [] }) }) });
    await gateway.views.put(VIEW);
    const over = new AbortController();
    const cancelled = gateway.call('desk', 'echo', {}, { signal: over.signal }).catch(() => 'cancelled');
    over.abort();
    assert.is(await cancelled, 'cancelled');
    await passTurns(20);
    assert.equal([taken, unhandled], [0, []]);
  } finally {
    process.off('unhandledRejection', note);
    await gateway.close({ graceMs: 0 });
  }
});

test.run();
