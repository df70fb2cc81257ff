import * as assert from 'uvu/assert';
import {
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
const PING = { method: 'ping', caller: 'user:1' };
const AT = { template: 't', instanceId: 'a', serverId: 'a-1' };

test('are about a template until an instance is asked', () => {
  assert.equal([startedEvent('t', PING), refusedEvent('t', PING, 'QUEUE_FULL')].map(timeless), [
    { type: 'exchange.started', template: 't', method: 'ping', principal: 'user:1' },
    { type: 'exchange.refused', template: 't', method: 'ping', principal: 'user:1', code: 'QUEUE_FULL' },
  ]);
});

test('are about nobody where nobody said who calls', () => {
  assert.equal(timeless(startedEvent('t', { method: 'ping' })), {
    ...{ type: 'exchange.started', template: 't', method: 'ping', principal: 'anonymous' },
  });
});

test('name the instance that failed a call which goes on', () => {
  assert.equal(timeless(retriedEvent(INSTANCE, PING, 'BACKEND_TIMEOUT')), {
    type: 'exchange.retried',
    ...AT,
    method: 'ping',
    principal: 'user:1',
    code: 'BACKEND_TIMEOUT',
  });
});

test('tell the end at an instance, with a code only when it failed', () => {
  const answered = { outcome: 'result', durationMs: 3, error: undefined } as const;
  const finished = { type: 'exchange.finished', ...AT, method: 'ping', principal: 'user:1', durationMs: 3 };
  assert.equal(timeless(finishedEvent(INSTANCE, PING, answered)), { ...finished, outcome: 'result' });
  const failed = { outcome: 'failed', durationMs: 3, error: queueFull('t') } as const;
  assert.equal(timeless(finishedEvent(INSTANCE, PING, failed)), {
    ...finished,
    outcome: 'failed',
    code: 'QUEUE_FULL',
  });
});

test.run();

/** Without its time, which is now. */
function timeless({ atMs, ...fact }: GatewayEvent): unknown {
  assert.ok(Math.abs(Date.now() - atMs) < 60_000);
  return fact;
}
