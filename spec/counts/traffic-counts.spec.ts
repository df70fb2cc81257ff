// Counts made from the events alone: calls, and the sessions and processes of clients.

import { Subject } from 'rxjs';
import * as assert from 'uvu/assert';
import { summedClients, TrafficCounts } from '../../src/counts/traffic-counts.ts';
import type { CallOutcome } from '../../src/domain/calls/exchange-event.ts';
import type { GatewayEvent } from '../../src/domain/events/events.ts';
import type { TransportKind } from '../../src/domain/instances/transport-kinds.ts';
import { systemClock } from '../../src/domain/time/clock.ts';
import { suite } from '../helpers/suite.ts';

const PINGED = { call: 1, method: 'ping', principal: 'user:1' };
const test = suite('metrics');
const DEPS = { clock: systemClock, hasTemplate: () => true, hasView: () => true };
let events = new Subject<GatewayEvent>();
let metrics = new TrafficCounts(events, DEPS);

test.before.each(() => {
  events = new Subject();
  metrics = new TrafficCounts(events, DEPS);
});

test('counts refusals, failures and error answers as errors, cancelled calls as none, and ejections', () => {
  begin('a');
  const ejection = { reason: 'its calls failed', forMs: 5_000 };
  for (const id of ['a', 'a', 'unknown'])
    events.next({ type: 'instance.ejected', ...instanceFields(id), ...ejection });
  for (const outcome of ['result', 'result', 'error', 'failed', 'cancelled'] as const) finish('a', outcome);
  for (let time = 0; time < 5; time += 1) refuse();
  const { errorRate, instances } = metrics.summary();
  assert.is(errorRate, 7 / 10);
  const a = { requests: 5, errorRate: 2 / 5, averageResponseTimeMs: 10, ejections: 2 };
  assert.equal(instances, { a });
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

test('reports percentiles within 3 %', () => {
  for (let ms = 1; ms <= 1_000; ms += 1) finish('a', 'result', ms);
  const { p50Ms, p95Ms, p99Ms } = metrics.summary();
  for (const [reported, expected] of [
    [p50Ms, 500],
    [p95Ms, 950],
    [p99Ms, 990],
  ] as const) {
    assert.ok(Math.abs(reported - expected) <= (expected * 3) / 100, `${reported} instead of ${expected}`);
  }
});

test('removes a deregistered instance, also when one of its calls ends later', () => {
  begin('a');
  finish('a', 'result');
  events.next({ type: 'instance.deregistered', ...instanceFields('a') });
  finish('a', 'result'); // a call that was still running
  const { instances, errorRate, averageResponseTimeMs } = metrics.summary();
  assert.equal(instances, {});
  assert.equal([errorRate, averageResponseTimeMs], [0, 10]);
});

const NO_SESSIONS = { open: 0, opened: 0, lost: 0, moved: 0 };

test('counts sessions by template and by instance, wherever they move', () => {
  for (const at of ['a', 'a', 'b']) opened(at);
  moved('a', 'b');
  assert.equal([metrics.clientsAt('a').sessions, metrics.clientsAt('b').sessions], [1, 2]);
  ended('b', false);
  ended('b', true);
  opened('other', 'u');
  assert.equal(metrics.clients().get('t')?.sessions, { open: 1, opened: 3, lost: 1, moved: 1 });
  assert.equal(metrics.clients().get('u')?.sessions, { ...NO_SESSIONS, open: 1, opened: 1 });
  assert.equal(summedClients(metrics.clients().values()).sessions, {
    ...{ open: 2, opened: 4, lost: 1, moved: 1 },
  });
});

test('counts dedicated processes, but not conversations with HTTP backends', () => {
  for (const transport of ['stdio', 'stdio', 'stdio', 'http', 'sse'] as const) upstream(transport);
  upstreamEnded('stdio', true);
  upstreamEnded('http', true);
  assert.equal(metrics.clientsAt('a'), { sessions: 0, ownProcesses: 2 });
  assert.equal(metrics.clients().get('t')?.ownProcesses, { running: 2, started: 3, lost: 1 });
  upstreamEnded('stdio', false);
  assert.equal(metrics.clients().get('t')?.ownProcesses, { running: 1, started: 3, lost: 1 });
});

test('a dedicated process of another node is counted there', () => {
  const fact = { ...clientFact('a'), transport: 'stdio', isElsewhere: true } as const;
  events.next({ type: 'upstream.opened', ...fact });
  events.next({ type: 'upstream.ended', ...fact, reason: 'it ended', isLost: true });
  assert.equal(summedClients(metrics.clients().values()).ownProcesses, { running: 0, started: 0, lost: 0 });
});

test('remembers no instance where nothing is open', () => {
  opened('a');
  upstream('stdio');
  moved('a', 'b');
  assert.is.not(metrics.clientsAt('b'), metrics.clientsAt('nowhere'));
  upstreamEnded('stdio', true);
  ended('b', false);
  for (const id of ['a', 'b']) assert.is(metrics.clientsAt(id), metrics.clientsAt('nowhere'));
});

test.run();

function instanceFields(id: string) {
  return { atMs: 1, template: 't', instanceId: id, serverId: id };
}

function begin(id: string): void {
  events.next({ type: 'instance.starting', ...instanceFields(id) });
}

function refuse(): void {
  const end = { waitMs: 0, durationMs: 0, isLast: true, code: 'NO_HEALTHY_INSTANCE' } as const;
  const refusal = { template: 't', outcome: 'refused', alias: 'exchange.refused', ...end } as const;
  events.next({ type: 'call.finished', atMs: 1, ...PINGED, ...refusal });
}

function finish(id: string, outcome: CallOutcome, durationMs = 10): void {
  const attempt = { attempt: 1, waitMs: 0, isLast: true };
  events.next({
    type: 'call.finished',
    alias: 'exchange.finished',
    ...instanceFields(id),
    ...PINGED,
    ...attempt,
    outcome,
    durationMs,
  });
}

function clientFact(serverId: string, template = 't') {
  return { ...instanceFields(serverId), template, principal: 'user:1' };
}

function opened(serverId: string, template?: string): void {
  events.next({ type: 'session.opened', ...clientFact(serverId, template), session: 'f' });
}

function moved(from: string, to: string): void {
  const fromWhere = { fromInstanceId: from, fromServerId: from };
  events.next({ type: 'session.moved', ...clientFact(to), session: 'f', ...fromWhere });
}

function ended(serverId: string, isLost: boolean): void {
  events.next({ type: 'session.ended', ...clientFact(serverId), session: 'f', reason: 'it ended', isLost });
}

function upstream(transport: TransportKind): void {
  events.next({ type: 'upstream.opened', ...clientFact('a'), transport });
}

function upstreamEnded(transport: TransportKind, isLost: boolean): void {
  events.next({ type: 'upstream.ended', ...clientFact('a'), transport, reason: 'it ended', isLost });
}
