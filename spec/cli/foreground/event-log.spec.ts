// Which events of the gateway are logged, at which level and with which message.

import { Subject } from 'rxjs';
import * as assert from 'uvu/assert';
import { logEvents } from '../../../src/cli/foreground/event-log.ts';
import type { GatewayEvent } from '../../../src/domain/events/events.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('event log');

const instance = { atMs: 0, template: 't', instanceId: 'i', serverId: 's' };
const who = { template: 't', instance_id: 'i', server_id: 's' };

test('does not warn of a requested restart', () => {
  const { events, lines } = open();
  for (const isPlanned of [true, false]) {
    const fields = { ...instance, reason: 'exited', isPlanned };
    events.next({ type: 'instance.unhealthy', ...fields });
    events.next({ type: 'instance.restarting', ...fields, delayMs: 500 });
    events.next({ type: 'instance.starting', ...instance });
  }
  assert.equal(said(lines.filter(([level]) => level !== 'debug')), [
    'info instance is down for a restart',
    'info instance is restarting',
    'warn instance is unhealthy',
  ]);
});

test('logs an instance that stays down once, then once an hour, and again when it was healthy in between', () => {
  let nowMs = 0;
  const { events, lines } = open(() => nowMs);
  const down = { ...instance, reason: 'exited', isPlanned: false };
  const fail = () => {
    events.next({ type: 'instance.unhealthy', ...down });
    events.next({ type: 'instance.restarting', ...down, delayMs: 30_000 });
    events.next({ type: 'instance.unhealthy', ...down, serverId: 'other' });
  };
  const warnings = () =>
    lines.splice(0).flatMap(([level, text, { server_id: id }]) => (level === 'warn' ? `${id} ${text}` : []));
  for (; nowMs < 3_600_000; nowMs += 30_000) fail();
  assert.equal(warnings(), ['s instance is unhealthy', 'other instance is unhealthy']);
  fail();
  assert.equal(warnings(), ['s instance is unhealthy', 'other instance is unhealthy']);
  events.next({ type: 'instance.healthy', ...instance, era: 'legacy' });
  fail();
  assert.equal(warnings(), ['s instance is unhealthy']);
});

test('logs at the stop how many calls it waits for', () => {
  const { events, lines } = open();
  events.next({ type: 'gateway.closing', atMs: 0, graceMs: 25_000, calls: 3 });
  assert.equal(lines, [['info', 'the gateway is stopping', { calls: 3, grace_ms: 25_000 }]]);
});

test('logs lost sessions and upstreams, with a warning for a process', () => {
  const { events, lines } = open();
  const owned = { ...instance, principal: 'user:1' };
  const session = { ...owned, session: 'f00' };
  const lost = { reason: 'exited with code 1', isLost: true };
  const ended = { reason: 'it was closed', isLost: false };
  const failed = { code: 'BACKEND_UNAVAILABLE', reason: 'exited with code 1' } as const;
  events.next({ type: 'session.opened', ...session });
  events.next({ type: 'session.moved', ...session, fromInstanceId: 'h', fromServerId: 'h' });
  events.next({ type: 'session.ended', ...session, ...ended });
  events.next({ type: 'session.ended', ...session, ...lost });
  for (const transport of ['stdio', 'http'] as const) {
    events.next({ type: 'upstream.opened', ...owned, transport });
    events.next({ type: 'upstream.ended', ...owned, transport, ...ended });
    events.next({ type: 'upstream.ended', ...owned, transport, ...lost });
    events.next({ type: 'upstream.failed', ...owned, transport, ...failed });
  }
  assert.equal(said(lines), [
    'debug session.opened',
    'info session moved to another instance',
    'debug session.ended',
    'info session ended: no instance can continue it',
    'debug upstream.opened',
    'debug upstream.ended',
    'warn dedicated process of a client exited',
    'warn dedicated process for a client could not be started',
    'debug upstream.opened',
    'debug upstream.ended',
    'debug upstream.ended',
    'info backend session for a client could not be opened',
  ]);
  const [, , fields] = lines[6] ?? [];
  const reported = { transport: 'stdio', reason: 'exited with code 1', is_lost: true };
  assert.equal(fields, { ...who, principal: 'user:1', ...reported });
});

test.run();

type Line = readonly [level: string, message: string, fields: Readonly<Record<string, unknown>>];

const said = (lines: readonly Line[]) => lines.map(([level, message]) => `${level} ${message}`);

function open(now?: () => number) {
  const events = new Subject<GatewayEvent>();
  const lines: Line[] = [];
  const write = (level: string) => (fields: object, message: string) =>
    void lines.push([level, message, { ...fields }]);
  const log = { debug: write('debug'), info: write('info'), warn: write('warn'), isLevelEnabled: () => true };
  logEvents(events, log, now);
  return { events, lines };
}
