import * as assert from 'uvu/assert';
import {
  cancelledEvent,
  finishedEvent,
  refusedEvent,
  retriedEvent,
  startedEvent,
} from '../../../src/actors/calls/call-events.ts';
import { queueFull } from '../../../src/domain/error-catalogue.ts';
import type { GatewayEvent } from '../../../src/domain/events.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('call: facts');
const INSTANCE = { template: 't', id: 'a', serverId: 'a-1' };
const PING = { method: 'ping', caller: 'user:1', requestId: 'r-1' };
const AT = { template: 't', instanceId: 'a', serverId: 'a-1' };
const RECORD = { call: 7, attempts: 0 };
const PINGED = { call: 7, method: 'ping', tool: undefined, principal: 'user:1', requestId: 'r-1' };

test('are about a template until an instance is asked', () => {
  const refused = refusedEvent('t', RECORD, PING, 'QUEUE_FULL', 12);
  const cancelled = cancelledEvent('t', RECORD, PING, 13);
  assert.equal([startedEvent('t', RECORD, PING), refused, cancelled].map(timeless), [
    { type: 'exchange.started', template: 't', ...PINGED },
    { type: 'exchange.refused', template: 't', ...PINGED, waitMs: 12, code: 'QUEUE_FULL' },
    { type: 'exchange.cancelled', template: 't', ...PINGED, waitMs: 13 },
  ]);
});

test('are about nobody where nobody said who calls', () => {
  assert.equal(timeless(startedEvent('t', RECORD, { method: 'ping' })), {
    ...{ type: 'exchange.started', template: 't', ...PINGED, principal: 'anonymous', requestId: undefined },
  });
});

test('name the instance that failed a call which goes on', () => {
  assert.equal(timeless(retriedEvent(INSTANCE, { call: 7, attempt: 2 }, PING, 'BACKEND_TIMEOUT')), {
    type: 'exchange.retried',
    ...AT,
    ...PINGED,
    attempt: 2,
    code: 'BACKEND_TIMEOUT',
  });
});

test('tell the end at an instance, with a code only when it failed', () => {
  const answered = { outcome: 'result', durationMs: 3, error: undefined } as const;
  const attempted = { call: 7, attempt: 1, waitMs: 2 };
  const finished = {
    ...{ type: 'exchange.finished', ...AT, ...PINGED },
    ...attempted,
    durationMs: 3,
  };
  assert.equal(timeless(finishedEvent(INSTANCE, attempted, PING, answered, true)), {
    ...finished,
    isLast: true,
    outcome: 'result',
    code: undefined,
  });
  const failed = { outcome: 'failed', durationMs: 3, error: queueFull('t') } as const;
  assert.equal(timeless(finishedEvent(INSTANCE, attempted, PING, failed, false)), {
    ...finished,
    isLast: false,
    outcome: 'failed',
    code: 'QUEUE_FULL',
  });
});

test('name the tool of a call, cut where it is too long, and no argument', () => {
  const toolIn = (name: unknown): unknown => {
    const params = { name, arguments: { secret: 's' } } as never;
    return timeless(startedEvent('t', RECORD, { method: 'tools/call', params }));
  };
  const started = { type: 'exchange.started', template: 't', call: 7, method: 'tools/call' };
  const rest = { principal: 'anonymous', requestId: undefined };
  assert.equal(toolIn('echo'), { ...started, ...rest, tool: 'echo' });
  assert.equal(toolIn('e'.repeat(1_000_000)), { ...started, ...rest, tool: 'e'.repeat(256) });
  assert.equal(toolIn(5), { ...started, ...rest, tool: undefined });
});

test.run();

/** Without its time, which is now. */
function timeless({ atMs, ...fact }: GatewayEvent): unknown {
  assert.ok(Math.abs(Date.now() - atMs) < 60_000);
  return fact;
}
