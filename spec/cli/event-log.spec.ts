// Which events of the gateway are logged, at which level and with which message.

import { Subject } from 'rxjs';
import * as assert from 'uvu/assert';
import { logEvents } from '../../src/cli/event-log.ts';
import type { GatewayEvent } from '../../src/domain/events.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('event log');

const instance = { atMs: 0, template: 't', instanceId: 'i', serverId: 's' };
const who = { template: 't', instance_id: 'i', server_id: 's' };
const trouble = { isPlanned: false, isProgram: true };

test('writes one line for each start that fails', () => {
  const { events, lines } = open();
  const fail = (reason: string, delayMs: number) => {
    events.next({ type: 'instance.starting', ...instance });
    events.next({ type: 'instance.restarting', ...instance, ...trouble, reason, delayMs });
    events.next({ type: 'instance.unhealthy', ...instance, reason, isPlanned: false });
  };
  const reported = { ...who, reason: 'exited', is_planned: false, is_program: true };
  fail('exited', 500);
  fail('exited', 1_000);
  const warnings = lines.filter(([level]) => level === 'warn');
  assert.equal(warnings, [
    ['warn', 'instance will be restarted', { ...reported, delay_ms: 500 }],
    ['warn', 'instance will be restarted', { ...reported, delay_ms: 1_000 }],
  ]);
});

test('does not warn of a requested restart, and calls a remote server reconnected, not restarted', () => {
  const { events, lines } = open();
  const reason = 'it is restarting';
  for (const isProgram of [true, false]) {
    events.next({ type: 'instance.unhealthy', ...instance, reason, isPlanned: true });
    events.next({ type: 'instance.restarting', ...instance, reason, delayMs: 0, isPlanned: true, isProgram });
    events.next({ type: 'instance.starting', ...instance });
  }
  const refused = { reason: 'connection refused', delayMs: 500, isPlanned: false, isProgram: false };
  events.next({ type: 'instance.restarting', ...instance, ...refused });
  assert.equal(said(lines.filter(([level]) => level !== 'debug')), [
    'info instance is down for a restart',
    'info instance is restarting',
    'info instance is down for a restart',
    'info instance is reconnecting',
    'warn instance will be reconnected',
  ]);
});

test('logs at the stop how many calls it waits for', () => {
  const { events, lines } = open();
  const stop = { type: 'gateway.closing', atMs: 0, graceMs: 25_000 } as const;
  for (const calls of [0, 1, 3]) events.next({ ...stop, calls });
  assert.equal(said(lines), [
    'info the gateway is stopping',
    'info the gateway is stopping: 1 call in flight has 25 s to finish',
    'info the gateway is stopping: 3 calls in flight have 25 s to finish',
  ]);
  assert.equal(lines[2]?.[2], { calls: 3, grace_ms: 25_000 });
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
    'info backend ended the session of a client',
    'info backend session for a client could not be opened',
  ]);
  const [, , fields] = lines[6] ?? [];
  const reported = { transport: 'stdio', reason: 'exited with code 1', is_lost: true };
  assert.equal(fields, { ...who, principal: 'user:1', ...reported });
});

test.run();

type Line = readonly [level: string, message: string, fields: object];

const said = (lines: readonly Line[]) => lines.map(([level, message]) => `${level} ${message}`);

function open() {
  const events = new Subject<GatewayEvent>();
  const lines: Line[] = [];
  const write = (level: string) => (fields: object, message: string) =>
    void lines.push([level, message, fields]);
  logEvents(events, {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    isLevelEnabled: () => true,
  });
  return { events, lines };
}
