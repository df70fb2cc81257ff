// What clients have open, from the events alone.

import { Subject } from 'rxjs';
import * as assert from 'uvu/assert';
import { ClientMetrics, sumOf } from '../../src/actors/client-metrics.ts';
import type { GatewayEvent } from '../../src/domain/events.ts';
import type { TransportKind } from '../../src/domain/instance.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('client metrics');
let events = new Subject<GatewayEvent>();
let metrics = new ClientMetrics(events);

test.before.each(() => {
  events = new Subject();
  metrics = new ClientMetrics(events);
});

const NO_SESSIONS = { open: 0, opened: 0, ended: 0, lost: 0, moved: 0 };
const NO_PROCESSES = { running: 0, started: 0, lost: 0 };

test('is empty before anybody came', () => {
  assert.equal([...metrics.counts()], []);
  assert.equal(metrics.at('a'), { sessions: 0, ownProcesses: 0, processes: [] });
  assert.equal(sumOf(metrics.counts().values()), { sessions: NO_SESSIONS, ownProcesses: NO_PROCESSES });
});

test('counts sessions by template and by instance, wherever they go', () => {
  for (const at of ['a', 'a', 'b']) opened(at);
  moved('a', 'b');
  assert.equal([metrics.at('a').sessions, metrics.at('b').sessions], [1, 2]);
  ended('b', false);
  ended('b', true);
  opened('other', 'u');
  assert.equal(metrics.counts().get('t')?.sessions, { open: 1, opened: 3, ended: 2, lost: 1, moved: 1 });
  assert.equal(metrics.counts().get('u')?.sessions, { ...NO_SESSIONS, open: 1, opened: 1 });
  assert.equal(sumOf(metrics.counts().values()).sessions, {
    ...{ open: 2, opened: 4, ended: 2, lost: 1, moved: 1 },
  });
});

test('counts processes, and no sessions of HTTP backends', () => {
  for (const transport of ['stdio', 'stdio', 'stdio', 'http', 'sse'] as const) upstream(transport);
  upstreamEnded('stdio', true);
  upstreamEnded('http', true);
  assert.equal(metrics.at('a'), { sessions: 0, ownProcesses: 2, processes: [] });
  assert.equal(metrics.counts().get('t')?.ownProcesses, { running: 2, started: 3, lost: 1 });
  upstreamEnded('stdio', false);
  assert.equal(metrics.counts().get('t')?.ownProcesses, { running: 1, started: 3, lost: 1 });
});

test('knows whose a process is, as long as it runs', () => {
  for (const [pid, principal] of [
    [1, 'user:1'],
    [2, 'key:2'],
    [3, 'user:1'],
  ] as const) {
    events.next({ type: 'upstream.opened', ...fact('a'), principal, transport: 'stdio', pid });
  }
  const end = { transport: 'stdio', reason: 'it ended', isLost: true } as const;
  events.next({ type: 'upstream.ended', ...fact('a'), ...end, pid: 1 });
  const left = [
    { pid: 2, principal: 'key:2' },
    { pid: 3, principal: 'user:1' },
  ];
  assert.equal(metrics.at('a'), { sessions: 0, ownProcesses: 2, processes: left });
  assert.equal(metrics.at('b').processes, []);
});

test('remembers no instance where nothing is open', () => {
  opened('a');
  upstream('stdio');
  moved('a', 'b');
  assert.is(metrics.size, 2);
  upstreamEnded('stdio', true);
  ended('b', false);
  assert.is(metrics.size, 0);
});

test.run();

function fact(serverId: string, template = 't') {
  return { atMs: 0, template, instanceId: serverId, serverId, principal: 'user:1' };
}

function opened(serverId: string, template?: string): void {
  events.next({ type: 'session.opened', ...fact(serverId, template), session: 'f' });
}

function moved(from: string, to: string): void {
  const fromWhere = { fromInstanceId: from, fromServerId: from };
  events.next({ type: 'session.moved', ...fact(to), session: 'f', ...fromWhere });
}

function ended(serverId: string, isLost: boolean): void {
  events.next({ type: 'session.ended', ...fact(serverId), session: 'f', reason: 'it ended', isLost });
}

function upstream(transport: TransportKind): void {
  events.next({ type: 'upstream.opened', ...fact('a'), transport });
}

function upstreamEnded(transport: TransportKind, isLost: boolean): void {
  events.next({ type: 'upstream.ended', ...fact('a'), transport, reason: 'it ended', isLost });
}
