// One call among several instances: who is asked, who is asked next when one fails, and what the caller is told then.
// Deadlines, the wait queue, tools and cancelling are in the other call-*.spec.ts.

import * as assert from 'uvu/assert';
import {
  answers,
  fails,
  Harness,
  type Script,
  settled,
  silent,
  told,
  toolCall,
} from '../../helpers/failing-backend.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('call: failover');
let harness = new Harness();

test.before.each(() => {
  harness = new Harness();
});
test.after.each(() => harness.close());

test('is answered by one instance, and the others hear nothing of it', async () => {
  await addAll({ a: answers('from a'), b: answers('from b') });
  const call = harness.call('write');
  assert.is(await call.end, 'a');
  assert.equal(
    call.answers.map(({ event, instanceId, serverId }) => [event.kind, instanceId, serverId]),
    [['result', 'a', 'a']],
  );
  assert.is(harness.asked('b'), 0);
});

test('goes on to the next instance when it was certainly not delivered', async () => {
  await addAll({ a: fails('no'), b: answers() });
  assert.is(await harness.call('write').end, 'b');
  assert.equal(
    harness.told('exchange.retried').map(({ instanceId, code }) => [instanceId, code]),
    [['a', 'BACKEND_UNAVAILABLE']],
  );
});

test('never asks the same instance twice', async () => {
  await addAll({ a: fails('no'), b: fails('no') });
  assert.equal(told(await harness.call('write').end), {
    code: 'BACKEND_UNAVAILABLE',
    delivered: 'no',
    retryAfterSeconds: 1,
  });
  assert.equal([harness.asked('a'), harness.asked('b')], [1, 1]);
});

test('goes on max_retries times at most', async () => {
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

test('does not go on with max_retries 0', async () => {
  await harness.close();
  harness = new Harness({ maxRetries: 0 });
  await addAll({ a: fails('no'), b: answers() });
  assert.is(tellCode(await harness.call('write').end), 'BACKEND_UNAVAILABLE');
  assert.is(harness.asked('b'), 0);
});

test('tells the last of several errors', async () => {
  await addAll({ a: fails('no', 'the first'), b: fails('no', 'the second') });
  const end = await harness.call('write').end;
  assert.match(end instanceof Error ? end.message : end, 'the second');
});

for (const [what, request] of [
  ['a read-only tool', toolCall('read')],
  ['an idempotent tool', toolCall('again')],
  ['a list', { method: 'resources/list' }],
  ['a read', { method: 'resources/read', params: { uri: 'a:b' } }],
  ['a prompt', { method: 'prompts/get', params: { name: 'p' } }],
  ['a completion', { method: 'completion/complete' }],
] as const) {
  test(`repeats ${what} when nobody knows whether it was delivered`, async () => {
    await addAll({ a: fails('unknown'), b: answers() });
    assert.is(await harness.call(request).end, 'b');
  });
}

for (const [what, request] of [
  ['a tool without annotations', toolCall('write')],
  ['a tool call without a name', { method: 'tools/call' }],
  ['a method nobody knows', { method: 'constructor' }],
] as const) {
  test(`does not repeat ${what} when nobody knows whether it was delivered`, async () => {
    await addAll({ a: fails('unknown'), b: answers() });
    assert.equal(told(await harness.call(request).end), {
      code: 'BACKEND_UNAVAILABLE',
      delivered: 'unknown',
    });
    assert.is(harness.backend('b').asked.includes(request.method), false);
  });
}

test('never repeats what was delivered', async () => {
  await addAll({ a: fails('yes'), b: answers() });
  assert.equal(told(await harness.call('read').end), { code: 'BACKEND_UNAVAILABLE', delivered: 'yes' });
  assert.is(harness.asked('b'), 0);
});

test('takes an error answer for an answer', async () => {
  await addAll({ a: (exchange) => queueMicrotask(() => exchange.refuse(-32603)), b: answers() });
  const call = harness.call('read');
  assert.is(await call.end, 'a');
  assert.is(call.answers[0]?.event.kind, 'error');
});

test('does not go on once a notification came', async () => {
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

test('asks only the instance it is pinned to', async () => {
  await addAll({ a: answers(), b: answers(), c: answers() });
  for (let time = 0; time < 5; time += 1) {
    assert.is(await harness.call('write', { instanceId: 'b' }).end, 'b');
  }
  assert.equal(['a', 'b', 'c'].map(asked), [0, 5, 0]);
});

test('does not go on when it is pinned', async () => {
  await addAll({ a: answers(), b: fails('no') });
  assert.equal(told(await harness.call('read', { instanceId: 'b' }).end), {
    code: 'BACKEND_UNAVAILABLE',
    delivered: 'no',
    retryAfterSeconds: 1,
  });
  assert.is(harness.asked('a'), 0);
});

test('says in which state the instance is that it is pinned to', async () => {
  await addAll({ a: answers(), b: answers() });
  harness.ref('b').drain();
  const end = await harness.call('read', { instanceId: 'b' }).end;
  assert.match(end instanceof Error ? end.message : end, '"b" is draining');
  assert.is(tellCode(end), 'BACKEND_UNAVAILABLE');
});

test('repeats no more uncertain calls than the budget allows, and still tells each caller', async () => {
  await addAll({ a: fails('unknown'), b: answers() });
  const calls = Array.from({ length: 100 }, () => harness.call('read'));
  const ends = await Promise.all(calls.map(({ end }) => end));
  // Repeats take no turn, so that a and b are chosen alternately. 20 % of the 99 calls by then and 10 may go on.
  assert.is(ends.filter((end) => end === 'b').length, 50 + 29);
  assert.is(ends.filter((end) => tellCode(end) === 'BACKEND_UNAVAILABLE').length, 21);
  assert.is(harness.told('exchange.retried').length, 29);
});

test('takes nothing from the budget when there is nobody who could repeat the call', async () => {
  await addAll({ a: fails('unknown') });
  for (let time = 0; time < 50; time += 1) await harness.call('read').end;
  await harness.add('b', answers());
  const ends = await Promise.all(Array.from({ length: 20 }, () => harness.call('read').end));
  assert.is(ends.filter((end) => end === 'b').length, 20);
});

test('goes through instances that all fail inside the subscription, and can still be cancelled', async () => {
  await addAll({ a: fails('no'), b: fails('no'), c: silent });
  const call = harness.call('write');
  assert.is(harness.ref('c').inFlight, 1);
  call.subscription.unsubscribe();
  assert.is(harness.ref('c').inFlight, 0);
  assert.is(harness.backend('c').last.isCancelled, true);
});

test('tells a failure on one instance once, as the end of the exchange there', async () => {
  await addAll({ a: fails('no') });
  await harness.call('write').end;
  assert.equal(
    harness.events.map(({ type }) => type).filter((type) => type.startsWith('exchange.')),
    ['exchange.started', 'exchange.finished'],
  );
});

test('is told from start to end in order', async () => {
  await addAll({ a: fails('no'), b: answers() });
  await harness.call('write').end;
  await settled();
  assert.equal(
    harness.events
      .filter(({ type }) => type.startsWith('exchange.'))
      .map((event) => [
        event.type,
        'instanceId' in event ? event.instanceId : '',
        'call' in event ? event.call : 0,
        'attempt' in event ? event.attempt : 0,
        'isLast' in event && event.isLast,
      ]),
    [
      ['exchange.started', '', 1, 0, false],
      ['exchange.retried', 'a', 1, 1, false],
      ['exchange.finished', 'a', 1, 1, false],
      ['exchange.finished', 'b', 1, 2, true],
    ],
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
