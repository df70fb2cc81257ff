// Calls over several instances: choice, failover, and what the dispatcher adds.

import * as assert from 'uvu/assert';
import { CallEvents } from '../../../src/actors/calls/call-events.ts';
import type { GatewayEvent } from '../../../src/domain/events.ts';
import {
  answers,
  fails,
  Harness,
  type Script,
  settled,
  silent,
  told,
} from '../../helpers/failing-backend.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('call');
let harness = new Harness();

test.before.each(() => {
  harness = new Harness();
});
test.after.each(() => harness.close());

test('is answered by one instance, and reaches no other', async () => {
  await addAll({ a: answers('from a'), b: answers('from b') });
  const call = harness.call('write');
  assert.is(await call.end, 'a');
  assert.equal(
    call.answers.map(({ event, instanceId, serverId }) => [event.kind, instanceId, serverId]),
    [['result', 'a', 'a']],
  );
  assert.is(harness.asked('b'), 0);
});

test('is retried max_retries times at most', async () => {
  await addAll({
    a: fails('no'),
    b: fails('no'),
    c: fails('no'),
    d: fails('no'),
    e: answers(),
    f: answers(),
  });
  await harness.call('write').end;
  assert.equal(['a', 'b', 'c', 'd', 'e', 'f'].map(asked), [1, 1, 1, 1, 0, 0]);
  assert.is(harness.told('exchange.retried').length, 3);
});

test('is not retried with max_retries 0', async () => {
  await harness.close();
  harness = new Harness({ maxRetries: 0 });
  await addAll({ a: fails('no'), b: answers() });
  assert.is(tellCode(await harness.call('write').end), 'BACKEND_UNAVAILABLE');
  assert.is(harness.asked('b'), 0);
});

test('never repeats what was delivered', async () => {
  await addAll({ a: fails('yes'), b: answers() });
  assert.equal(told(await harness.call('read').end), { code: 'BACKEND_UNAVAILABLE', delivered: 'yes' });
  assert.is(harness.asked('b'), 0);
});

test('is not retried after a notification', async () => {
  const breaksOff: Script = (exchange) =>
    queueMicrotask(() => {
      exchange.notify('notifications/progress', { progress: 1 });
      fails('no')(exchange);
    });
  await addAll({ a: breaksOff, b: answers() });
  const call = harness.call('read');
  assert.is(tellCode(await call.end), 'BACKEND_UNAVAILABLE');
  assert.equal([call.answers.length, harness.asked('b')], [1, 0]);
});

test('names the state of the instance that it is bound to', async () => {
  await addAll({ a: answers(), b: answers() });
  harness.ref('b').drain();
  const end = await harness.call('read', { instanceId: 'b' }).end;
  assert.match(end instanceof Error ? end.message : end, '"b" is draining');
  assert.is(tellCode(end), 'BACKEND_UNAVAILABLE');
});

test('repeats no more uncertain calls than the budget allows, and answers each caller', async () => {
  await addAll({ a: fails('unknown'), b: answers() });
  const calls = Array.from({ length: 100 }, () => harness.call('read'));
  const ends = await Promise.all(calls.map(({ end }) => end));
  // Repeats take no turn, so that a and b are chosen alternately. 20 % of the 99 calls by then and 10 may go on.
  assert.is(ends.filter((end) => end === 'b').length, 50 + 29);
  assert.is(ends.filter((end) => tellCode(end) === 'BACKEND_UNAVAILABLE').length, 21);
  assert.is(harness.told('exchange.retried').length, 29);
});

test('goes through instances that all fail inside the subscription, and can still be cancelled', async () => {
  await addAll({ a: fails('no'), b: fails('no'), c: silent });
  const call = harness.call('write');
  assert.is(harness.ref('c').inFlight, 1);
  call.subscription.unsubscribe();
  assert.is(harness.ref('c').inFlight, 0);
  assert.is(harness.backend('c').last.isCancelled, true);
});

test('distinguishes no registered instance from none that can be called', async () => {
  const expected = { code: 'NO_HEALTHY_INSTANCE', delivered: 'no', retryAfterSeconds: 2 };
  assert.equal(told(await harness.call('write').end), expected);
  await harness.add('a', answers());
  await harness.add('b', answers());
  harness.ref('a').drain();
  harness.ref('b').drain();
  assert.equal(told(await harness.call('write').end), expected);
  assert.equal(refusals(), ['NO_HEALTHY_INSTANCE', 'NO_HEALTHY_INSTANCE']);
});

test('refuses every call once the gateway closes', async () => {
  await harness.add('a', answers());
  harness.isAccepting = false;
  assert.equal(told(await harness.call('write').end), {
    code: 'SHUTTING_DOWN',
    delivered: 'no',
    retryAfterSeconds: 5,
  });
  assert.is(harness.asked('a'), 0);
});

test('leaves no instance out when half of them fail each call', async () => {
  await harness.add('a', fails('no'));
  await harness.add('b', answers());
  await harness.add('c', fails('no'));
  await harness.add('d', answers());
  const ends = await Promise.all(Array.from({ length: 100 }, () => harness.call('write').end));
  assert.equal([...new Set(ends)].sort(), ['b', 'd']);
  await settled();
  assert.equal(inFlight(), [0, 0, 0, 0]);
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

async function addAll(scripts: Readonly<Record<string, Script>>): Promise<void> {
  for (const [id, script] of Object.entries(scripts)) await harness.add(id, script);
}

function asked(id: string): number {
  return harness.asked(id);
}

function tellCode(end: string | Error): string {
  return end instanceof Error && 'code' in end ? String(end.code) : String(end);
}

function inFlight(): number[] {
  return harness.fleet.refs('t').map((ref) => ref.inFlight);
}

function refusals(): string[] {
  return harness.told('exchange.refused').map(({ code }) => code);
}
