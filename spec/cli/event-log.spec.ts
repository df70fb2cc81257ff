import { Subject } from 'rxjs';
import * as assert from 'uvu/assert';
import { logEvents } from '../../src/cli/event-log.ts';
import type { GatewayEvent } from '../../src/domain/events.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('event log');

const instance = { atMs: 0, template: 't', instanceId: 'i', serverId: 's' };
const who = { template: 't', instance_id: 'i', server_id: 's' };

test('writes what an operator wants to know, and the rest for debugging', () => {
  const { events, lines } = open();
  events.next({ type: 'instance.unhealthy', ...instance, reason: 'exited' });
  events.next({ type: 'probe.finished', ...instance, passed: true, durationMs: 1 });
  assert.equal(lines, [
    ['warn', 'instance is unhealthy', { ...who, reason: 'exited' }],
    ['debug', 'probe.finished', { ...who, passed: true, duration_ms: 1 }],
  ]);
});

test('writes one line for each start that fails', () => {
  const { events, lines } = open();
  const fail = (reason: string, delayMs: number) => {
    events.next({ type: 'instance.starting', ...instance });
    events.next({ type: 'instance.restarting', ...instance, reason, delayMs });
    events.next({ type: 'instance.unhealthy', ...instance, reason });
  };
  fail('exited', 500);
  fail('exited', 1_000);
  assert.equal(
    lines.filter(([level]) => level === 'warn'),
    [
      ['warn', 'instance will be restarted', { ...who, reason: 'exited', delay_ms: 500 }],
      ['warn', 'instance will be restarted', { ...who, reason: 'exited', delay_ms: 1_000 }],
    ],
  );
});

test('writes that an instance is unhealthy for another reason than its last restart', () => {
  const { events, lines } = open();
  events.next({ type: 'instance.restarting', ...instance, reason: 'exited', delayMs: 1 });
  events.next({ type: 'instance.healthy', ...instance, era: 'legacy' });
  events.next({ type: 'instance.unhealthy', ...instance, reason: 'exited' });
  assert.equal(lines.at(-1), ['warn', 'instance is unhealthy', { ...who, reason: 'exited' }]);
});

test.run();

function open() {
  const events = new Subject<GatewayEvent>();
  const lines: (readonly [string, string, object])[] = [];
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
