// A gateway whose wall clock is set while calls wait: by ten minutes, by months, and back.

import * as assert from 'uvu/assert';
import type { GatewayEvent } from '../../src/domain/events/events.ts';
import { type Clock, systemClock } from '../../src/domain/time/clock.ts';
import { createGateway } from '../../src/gateway/gateway.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('a wall clock that is set');

const HOUR_MS = 3_600_000;

for (const [how, stepMs] of [
  ['11 minutes ahead', 11 * 60_000],
  ['100 days ahead', 100 * 24 * HOUR_MS],
  ['an hour back', -HOUR_MS],
] as const)
  test(`${how} ends no call and makes no instance unhealthy; times of events and checks follow it`, async () => {
    let setMs = 0;
    const clock: Clock = { ...systemClock, wall: () => Date.now() + setMs };
    await using gateway = await createGateway({ clock });
    const called = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<object>();
    const handler = async ({ method }: { readonly method: string }): Promise<object> => {
      if (method === 'tools/list') return { tools: [{ name: 'wait', inputSchema: { type: 'object' } }] };
      if (method !== 'tools/call') return {};
      called.resolve();
      return answer.promise;
    };
    await gateway.register('t', { handler, id: 'a' }, { waitMs: 5_000 });
    const finished = new Promise<GatewayEvent>((resolve) => gateway.on('call.finished').subscribe(resolve));
    const call = gateway.call('t', 'wait', {}, { timeoutMs: 60_000 });
    await called.promise;
    setMs = stepMs;
    answer.resolve({ content: [] });
    assert.equal((await call).result, { content: [] });
    const { snapshot } = gateway.instance('t', 'a');
    assert.is(snapshot.state, 'healthy');
    const shownMs = Date.parse(snapshot.lastCheck ?? '');
    for (const atMs of [(await finished).atMs, shownMs])
      assert.ok(Math.abs(atMs - clock.wall()) < 60_000, `${atMs} differs from ${clock.wall()}`);
  });

test.run();
