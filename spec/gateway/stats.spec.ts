// The statistics of a gateway: they add up to what its callers saw, and health is counted from the same snapshots.

import { setImmediate as turn } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { createGateway, type Gateway } from '../../src/gateway/gateway.ts';
import { HeldTool, rpcError, serving } from '../helpers/backends/function-backend.ts';
import { codeOf } from '../helpers/outcome.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('gateway: statistics');
const WAIT = { waitMs: 5_000 };
let gateway: Gateway;

test.before.each(async () => {
  gateway = await createGateway();
});
test.after.each(() => gateway.close({ graceMs: 0 }));

// The zeros before the first request are in http/routes/gateway/statistics.spec.ts.
test('at first there is no time of a probe, and the limit is 10,000 sessions', () => {
  const { clients, probes, uptimeSeconds } = gateway.stats();
  assert.equal([probes.lastAtMs, clients.maxSessions], [null, 10_000]);
  assert.ok(uptimeSeconds >= 0 && uptimeSeconds < 5);
});

test('results, error answers, refusals and timeouts add up', async () => {
  const held = new HeldTool();
  const handler = serving({
    works: () => ({}),
    breaks: () => {
      throw rpcError(-32603, 'broken');
    },
    held: held.body,
  });
  await gateway.register('t', { id: 'a', handler }, WAIT);
  await gateway.register('t', { id: 'b', handler }, WAIT);
  await gateway.register('t', { id: 'idle', handler }, WAIT);
  gateway.drain('t', 'idle');
  for (let time = 0; time < 6; time += 1) await gateway.call('t', 'works');
  for (let time = 0; time < 2; time += 1) await codeOf(gateway.call('t', 'breaks'));
  await codeOf(gateway.call('t', 'unknown'));
  await codeOf(gateway.call('x', 'works'));
  await codeOf(gateway.call('t', 'held', {}, { timeoutMs: 1 }));
  await codeOf(gateway.call('t', 'held', {}, { timeoutMs: 1 }));
  const { totalRequests, errorRate, activeConnections, instances } = gateway.stats();
  assert.equal([totalRequests, activeConnections], [12, 0]);
  assert.is(errorRate, 6 / 12); // 2 error answers, 2 refused, 2 too slow
  assert.equal(Object.keys(instances).sort(), ['a', 'b']);
  for (const one of Object.values(instances)) assert.equal([one.requests, one.errorRate], [5, 2 / 5]);
});

test('counts calls in flight, also on instances that are leaving', async () => {
  const held = new HeldTool();
  const handler = serving({ held: held.body });
  await gateway.register('t', { id: 'a', handler }, WAIT);
  const calls = Array.from({ length: 5 }, () => gateway.call('t', 'held'));
  await turn();
  assert.equal([gateway.stats().activeConnections, gateway.instance('t', 'a').snapshot.inFlight], [5, 5]);
  await gateway.register('t', { id: 'a', handler }, WAIT);
  calls.push(gateway.call('t', 'held'));
  await turn();
  assert.equal([gateway.stats().activeConnections, gateway.instance('t', 'a').snapshot.inFlight], [6, 1]);
  held.answerAll();
  await Promise.all(calls);
  assert.is(gateway.stats().activeConnections, 0);
});

test.run();
