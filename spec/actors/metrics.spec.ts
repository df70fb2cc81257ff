// What is counted, from the events alone.

import { Subject } from 'rxjs';
import * as assert from 'uvu/assert';
import { Metrics } from '../../src/actors/metrics.ts';
import type { ExchangeOutcome, GatewayEvent } from '../../src/domain/events.ts';
import { suite } from '../helpers/suite.ts';

const PINGED = { call: 1, method: 'ping', principal: 'user:1' };
const test = suite('metrics');
let events = new Subject<GatewayEvent>();
let metrics = new Metrics(events);

test.before.each(() => {
  events = new Subject();
  metrics = new Metrics(events);
});

test('counts refusals, failures and error answers as errors, and cancelled calls as none', () => {
  begin('a');
  for (const outcome of ['result', 'result', 'error', 'failed', 'cancelled'] as const) finish('a', outcome);
  for (let time = 0; time < 5; time += 1) refuse();
  const { errorRate, instances } = metrics.summary();
  assert.is(errorRate, 7 / 10);
  assert.equal(instances.a, { requests: 5, errorRate: 2 / 5, averageResponseTimeMs: 10, ejections: 0 });
});

test('counts how often an instance was ejected', () => {
  begin('a');
  for (const id of ['a', 'a', 'unknown'])
    events.next({ type: 'instance.ejected', ...fact(id), reason: 'its calls failed', forMs: 5_000 });
  finish('a', 'failed');
  assert.is(metrics.summary().instances.a?.ejections, 2);
});

test('averages the time to answers only', () => {
  begin('a');
  finish('a', 'result', 10);
  finish('a', 'error', 30);
  finish('a', 'failed', 5_000);
  finish('a', 'cancelled', 5_000);
  const { averageResponseTimeMs, instances } = metrics.summary();
  assert.is(averageResponseTimeMs, 20);
  assert.is(instances.a?.averageResponseTimeMs, 20);
});

test('reports percentiles within 1 %', () => {
  for (let ms = 1; ms <= 1_000; ms += 1) finish('a', 'result', ms);
  const { p50Ms, p95Ms, p99Ms } = metrics.summary();
  for (const [told, expected] of [
    [p50Ms, 500],
    [p95Ms, 950],
    [p99Ms, 990],
  ] as const) {
    assert.ok(Math.abs(told - expected) <= expected / 100, `${told} instead of ${expected}`);
  }
});

test('takes times that are no time at all, or longer than an hour', () => {
  for (const ms of [0, 0.0001, 10 * 3_600_000]) finish('a', 'result', ms);
  const { p50Ms, p99Ms } = metrics.summary();
  assert.ok(p50Ms > 0 && p50Ms < 0.01);
  assert.ok(Math.abs(p99Ms - 3_600_000) < 36_000);
});

test('forgets an instance that was deregistered, for good', () => {
  begin('a');
  finish('a', 'result');
  events.next({ type: 'instance.deregistered', ...fact('a') });
  finish('a', 'result'); // it ran on behind
  const { instances, errorRate, averageResponseTimeMs } = metrics.summary();
  assert.equal(instances, {});
  assert.equal([errorRate, averageResponseTimeMs], [0, 10]);
});

test.run();

function fact(id: string) {
  return { atMs: 1, template: 't', instanceId: id, serverId: id };
}

function begin(id: string): void {
  events.next({ type: 'instance.starting', ...fact(id) });
}

function refuse(): void {
  events.next({
    type: 'exchange.refused',
    atMs: 1,
    template: 't',
    ...PINGED,
    waitMs: 0,
    code: 'NO_HEALTHY_INSTANCE',
  });
}

function finish(id: string, outcome: ExchangeOutcome, durationMs = 10): void {
  events.next({
    type: 'exchange.finished',
    ...fact(id),
    ...PINGED,
    ...{ attempt: 1, waitMs: 0, isLast: true },
    outcome,
    durationMs,
  });
}
