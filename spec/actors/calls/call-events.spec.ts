import * as assert from 'uvu/assert';
import { CallEvents, type ReportedCall } from '../../../src/actors/calls/call-events.ts';
import { queueFull } from '../../../src/domain/error-catalogue.ts';
import type { GatewayEvent } from '../../../src/domain/events.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('call: events');
const INSTANCE = { template: 't', id: 'a', serverId: 'a-1' };
const PING = { method: 'ping', caller: 'user:1', requestId: 'r-1' };
const AT = { template: 't', instanceId: 'a', serverId: 'a-1' };
const PINGED = { call: 7, method: 'ping', tool: undefined, principal: 'user:1', requestId: 'r-1' };
const ANSWERED = { outcome: 'result', durationMs: 3, error: undefined } as const;
const FAILED = { outcome: 'failed', durationMs: 3, error: queueFull('t') } as const;

test('are about a template until an instance is asked', () => {
  assert.equal(
    eventsOf((events) => {
      events.started();
      events.refused('QUEUE_FULL', 12);
    }),
    [
      { type: 'exchange.started', template: 't', ...PINGED },
      { type: 'exchange.refused', template: 't', ...PINGED, waitMs: 12, code: 'QUEUE_FULL' },
    ],
  );
  assert.equal(
    eventsOf((events) => events.cancelled(13)),
    [{ type: 'exchange.cancelled', template: 't', ...PINGED, waitMs: 13 }],
  );
});

test('name the anonymous principal where the request has no caller', () => {
  assert.equal(
    eventsOf((events) => events.started(), { method: 'ping' }),
    [{ type: 'exchange.started', template: 't', ...PINGED, principal: 'anonymous', requestId: undefined }],
  );
});

test('name the instance that failed a call which goes on', () => {
  assert.equal(
    eventsOf((events) => events.retried(INSTANCE, 2, 'BACKEND_TIMEOUT')),
    [{ type: 'exchange.retried', ...AT, ...PINGED, attempt: 2, code: 'BACKEND_TIMEOUT' }],
  );
});

test('show the end at an instance, with a code only when it failed', () => {
  const finished = { type: 'exchange.finished', ...AT, ...PINGED, waitMs: 2, durationMs: 3 };
  assert.equal(
    eventsOf((events) => {
      events.finished(INSTANCE, { attempt: events.sent(), waitMs: 2 }, FAILED, false);
      events.finished(INSTANCE, { attempt: events.sent(), waitMs: 2 }, ANSWERED, true);
    }),
    [
      { ...finished, attempt: 1, isLast: false, outcome: 'failed', code: 'QUEUE_FULL' },
      { ...finished, attempt: 2, isLast: true, outcome: 'result', code: undefined },
    ],
  );
});

test('have one last event, which is the end of an attempt while one is under way', () => {
  const types = (report: (events: CallEvents) => void) =>
    eventsOf(report).map(({ type, isLast }) => [type, isLast]);
  assert.equal(
    types((events) => {
      const first = { attempt: events.sent(), waitMs: 0 };
      const second = { attempt: events.sent(), waitMs: 0 };
      events.refused('QUEUE_FULL', 1);
      events.finished(INSTANCE, second, ANSWERED, true);
      events.finished(INSTANCE, first, FAILED, true);
      events.cancelled(1);
    }),
    [
      ['exchange.finished', true],
      ['exchange.finished', false],
    ],
  );
  assert.equal(
    types((events) => {
      events.refused('QUEUE_FULL', 1);
      events.cancelled(1);
    }),
    [['exchange.refused', undefined]],
  );
});

test.run();

/** What is emitted of the call 7, without its time, which is now. */
function eventsOf(report: (events: CallEvents) => void, request: ReportedCall['request'] = PING) {
  const emitted: Record<string, unknown>[] = [];
  const emit = ({ atMs, ...event }: GatewayEvent): void => {
    assert.ok(Math.abs(Date.now() - atMs) < 60_000);
    emitted.push(event);
  };
  report(new CallEvents(emit, { template: 't', number: 7, request }));
  return emitted;
}
