// Calls over several instances: failover, and the last event of a call. What else may happen to calls is in call-stress.spec.ts.

import * as assert from 'uvu/assert';
import { CallEvents } from '../../../src/actors/calls/call-events.ts';
import type { GatewayEvent } from '../../../src/domain/events.ts';
import { answers, fails, Harness, told } from '../../helpers/failing-backend.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('call');
let harness = new Harness();

test.before.each(() => {
  harness = new Harness();
});
test.after.each(() => harness.close());

test('is retried max_retries times at most', async () => {
  const ids = ['a', 'b', 'c', 'd', 'e', 'f'];
  for (const id of ids) await harness.add(id, id < 'e' ? fails('no') : answers());
  await harness.call('write').end;
  const found = ids.map((id) => harness.asked(id));
  assert.equal(found, [1, 1, 1, 1, 0, 0]);
  assert.is(harness.told('exchange.retried').length, 3);
});

test('never repeats what was delivered', async () => {
  await harness.add('a', fails('yes'));
  await harness.add('b', answers());
  assert.equal(told(await harness.call('read').end), { code: 'BACKEND_UNAVAILABLE', delivered: 'yes' });
  assert.is(harness.asked('b'), 0);
});

test('has one last event, which is the end of an attempt while one is under way', () => {
  const instance = { template: 't', id: 'a', serverId: 'a' };
  const end = { durationMs: 3, error: undefined };
  const types = (report: (events: CallEvents) => void) => {
    const emitted: unknown[] = [];
    const emit = (event: GatewayEvent) =>
      emitted.push([event.type, 'isLast' in event ? event.isLast : undefined]);
    report(new CallEvents(emit, { template: 't', number: 7, request: { method: 'ping' } }));
    return emitted;
  };
  assert.equal(
    types((events) => {
      const first = { attempt: events.sent(), waitMs: 0 };
      const second = { attempt: events.sent(), waitMs: 0 };
      events.refused('QUEUE_FULL', 1);
      events.finished(instance, second, { ...end, outcome: 'result' }, true);
      events.finished(instance, first, { ...end, outcome: 'failed' }, true);
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
