// Subscriptions of many clients in a shared conversation with a legacy backend: one for each resource. feed.spec.ts has a modern one.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { Feed } from '../../../src/actors/subscriptions/feed.ts';
import type { ExchangeRequest } from '../../../src/domain/calls/exchange.ts';
import type { FinalEvent } from '../../../src/domain/calls/exchange-event.ts';
import { backendUnavailable } from '../../../src/domain/errors/backend-errors.ts';
import { asGatewayError } from '../../../src/domain/errors/errors.ts';
import type { Notification } from '../../../src/domain/mcp/client.ts';
import { noticeKey } from '../../../src/domain/mcp/notices-in-tasks.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { ScriptedTransport } from '../../helpers/backends/scripted-transport.ts';
import { suite } from '../../helpers/suite.ts';
import { settled, simulateTime } from '../../helpers/time/simulated-time.ts';
import { passTurns, TurnCounter, untimedScheduler } from '../../helpers/time/turns.ts';

const test = suite('feed of a legacy backend');
const UPDATED = 'notifications/resources/updated';
const TOOLS_CHANGED = 'notifications/tools/list_changed';
const RESOURCES_CHANGED = 'notifications/resources/list_changed';
/** On a busy machine a task may be late, unless the time of a turn is not measured. */
let deps = { clock: systemClock, scheduler: untimedScheduler(1_000) };
let legacy = new ScriptedTransport();
let shared = new Feed(legacy, deps);

simulateTime(test, () => {
  deps = { clock: systemClock, scheduler: untimedScheduler(1_000) };
  legacy = new ScriptedTransport();
  shared = new Feed(legacy, deps);
});

test('updates whose URI is no text are for no client', async () => {
  legacy.onExchange = (exchange) => exchange.result();
  const received: unknown[] = [];
  shared.messages(new Set(['x:1'])).subscribe(({ params }) => received.push(params.uri));
  for (const uri of [{ toString: 1 }, { toString: null, valueOf: null }, ['x:1'], 1, null]) {
    legacy.sendNotification(UPDATED, { uri });
    // An observer that throws ends the process later, from a timer of rxjs.
    assert.is(noticeKey({ kind: 'notification', method: UPDATED, params: { uri } }), UPDATED);
  }
  legacy.sendNotification(UPDATED);
  legacy.sendNotification(UPDATED, { uri: 'x:1' });
  await settled();
  assert.equal(received, ['x:1']);
});

test('a flood of updates reaches hundreds of clients over many turns, each resource in its order', async () => {
  legacy.onExchange = (exchange) => exchange.result();
  shared = new Feed(legacy, { clock: systemClock, scheduler: untimedScheduler(5) });
  const uris = new Set(names('x', 500));
  for (const uri of uris) shared.subscribe(uri);
  const deliveries = new TurnCounter();
  const received: string[][] = [];
  for (let client = 0; client < 100; client += 1) {
    const mine: string[] = [];
    received.push(mine);
    const deliver = ({ method, params: { uri } }: Notification): void => {
      deliveries.note();
      mine.push(typeof uri === 'string' ? uri : method);
    };
    shared.add({ uris, deliver });
  }
  await passTurns(200);
  legacy.sendNotification(TOOLS_CHANGED);
  for (let round = 0; round < 2; round += 1)
    for (const uri of uris) legacy.sendNotification(UPDATED, { uri });
  legacy.sendNotification(RESOURCES_CHANGED);
  legacy.sendNotification(TOOLS_CHANGED);
  await passTurns(2_500 / 5 + 100);
  assert.ok(deliveries.fullest <= 5 * 20, `${deliveries.fullest} deliveries in one turn`);
  const [first = [], ...others] = received;
  assert.equal(first.slice(0, 3), [TOOLS_CHANGED, 'x:0', 'x:1']);
  assert.equal(first.slice(-2), [RESOURCES_CHANGED, TOOLS_CHANGED]);
  assert.is(first.length, uris.size + 3, 'a second update of a resource that waits is dropped');
  for (const each of others) assert.equal(each, first);
});

test('a client that leaves gets nothing that waits, and neither does one that comes after the last has left', async () => {
  shared = new Feed(legacy, { clock: systemClock, scheduler: untimedScheduler(1) });
  const received: string[] = [];
  const deliver = ({ params: { uri } }: Notification): void => void received.push(String(uri));
  const uris = new Set(['x:1', 'x:2', 'x:3']);
  const leave = shared.add({ uris, deliver });
  for (const uri of uris) legacy.sendNotification(UPDATED, { uri });
  leave();
  shared.add({ uris, deliver });
  await passTurns(10);
  assert.equal(received, ['x:1']);
});

test('gives its clients what waits when the conversation ends, and then completes', async () => {
  shared = new Feed(legacy, { clock: systemClock, scheduler: untimedScheduler(1) });
  const received: string[] = [];
  const uris = new Set(['x:1', 'x:2', 'x:3']);
  shared.messages(uris).subscribe({
    next: ({ params: { uri } }) => void received.push(String(uri)),
    complete: () => void received.push('complete'),
  });
  for (const uri of uris) legacy.sendNotification(UPDATED, { uri });
  legacy.disconnect();
  await passTurns(10);
  assert.equal(received, [...uris, 'complete']);
});

test('tells of the change of a list before an answer that the backend sent after it', async () => {
  shared = new Feed(legacy, { clock: systemClock, scheduler: untimedScheduler(1) });
  const changed: string[] = [];
  const following = shared.listChanges$.subscribe((list) => changed.push(list));
  shared.add({ uris: new Set(['x:1']), deliver: () => undefined });
  for (let round = 0; round < 3; round += 1) legacy.sendNotification(UPDATED, { uri: 'x:1' });
  legacy.sendNotification(TOOLS_CHANGED);
  assert.equal(changed, ['tools']);
  legacy.disconnect();
  assert.ok(following.closed);
});

test('subscribes once for all clients, and unsubscribes after the last', async () => {
  const first = shared.subscribe('x:1');
  const second = shared.subscribe('x:1');
  await settled();
  legacy.last.result({ n: 1 });
  const third = shared.subscribe('x:1');
  assert.equal(await kinds(first.answer, second.answer, third.answer), ['result', 'result', 'result']);
  first.release();
  first.release();
  second.release();
  await settled();
  assert.equal(asked(), ['subscribe x:1']);
  third.release();
  await settled();
  assert.equal(asked(), ['subscribe x:1', 'unsubscribe x:1']);
  shared.subscribe('x:1');
  await settled();
  assert.is(asked().at(-1), 'unsubscribe x:1');
  legacy.last.result();
  await settled();
  assert.is(asked().at(-1), 'subscribe x:1', 'only after the answer');
});

test('subscribes a client that comes soon after others have left', async () => {
  for (let steps = 0; steps < 30; steps += 1) {
    const uri = `x:${steps}`;
    if (steps % 2 === 0) {
      const first = shared.subscribe(uri);
      await settled();
      legacy.last.result();
      await settled();
      first.release();
      await settled();
    }
    shared.subscribe(uri).release();
    if (steps % 2 === 0) legacy.last.result();
    for (let step = 0; step < steps / 2; step += 1) await undefined;
    const late = shared.subscribe(uri);
    await settled();
    legacy.last.result();
    assert.equal(await kinds(late.answer), ['result'], uri);
    assert.equal(await kinds(shared.subscribe(uri).answer), ['result'], uri);
  }
});

test('reports a refusal to all clients, and does not unsubscribe', async () => {
  const first = shared.subscribe('x:1');
  await settled();
  legacy.last.refuse(-32601);
  const second = shared.subscribe('x:1');
  assert.equal(await kinds(first.answer, second.answer), ['error', 'error']);
  first.release();
  second.release();
  await settled();
  assert.equal(asked(), ['subscribe x:1']);
});

test('asks again for a client that comes after a refusal, also while the refused one listens', async () => {
  const updates: unknown[] = [];
  shared.messages(new Set(['x:1'])).subscribe(({ params }) => updates.push(params.uri));
  await settled();
  legacy.last.refuse(-32002); // the resource is made later
  await settled();
  const late = shared.subscribe('x:1');
  await settled();
  assert.equal(asked(), ['subscribe x:1', 'subscribe x:1']);
  legacy.last.result();
  assert.equal(await kinds(late.answer, shared.subscribe('x:1').answer), ['result', 'result']);
  await settled();
  assert.equal(updates, ['x:1'], 'the first one may have missed updates');
});

test('repeats a failed request after 5 s, while a client wants the resource', async () => {
  const part = shared.subscribe('x:1');
  await settled();
  legacy.last.fail(backendUnavailable('it broke', { delivered: 'unknown' }));
  assert.is(await failure(part.answer), 'BACKEND_UNAVAILABLE unknown');
  mock.timers.tick(4_999);
  assert.is(asked().length, 1);
  mock.timers.tick(1);
  await settled();
  assert.is(asked().length, 2);
  part.release();
  legacy.last.fail(backendUnavailable('it broke', { delivered: 'unknown' }));
  await settled();
  mock.timers.tick(60_000);
  await settled();
  assert.is(asked().length, 2);
});

test('keeps the subscription of a client that came between a failure and the repeat', async () => {
  const failed = shared.subscribe('x:1');
  await settled();
  legacy.last.fail(backendUnavailable('it broke', { delivered: 'unknown' }));
  await settled();
  failed.release();
  const first = shared.subscribe('x:1');
  await settled();
  legacy.last.result();
  await settled();
  mock.timers.tick(5_000);
  const second = shared.subscribe('x:1');
  first.release();
  await settled();
  assert.equal(asked(), ['subscribe x:1', 'subscribe x:1']);
  second.release();
  await settled();
  assert.is(asked().at(-1), 'unsubscribe x:1');
});

test('cancels a request that has no answer after 30 s', async () => {
  const part = shared.subscribe('x:1');
  await settled();
  mock.timers.tick(30_000);
  assert.is(await failure(part.answer), 'BACKEND_TIMEOUT unknown');
  assert.is(legacy.last.isCancelled, true);
});

test('ends with the conversation, which gets no further request', async () => {
  let requests = 0;
  const { handshake, messages$, closed$ } = legacy;
  const exchange = (request: ExchangeRequest) => {
    requests += 1;
    return legacy.exchange(request);
  };
  shared = new Feed({ handshake, messages$, closed$, exchange }, deps);
  const retried = shared.subscribe('x:1');
  await settled();
  legacy.last.fail(backendUnavailable('it broke', { delivered: 'unknown' }));
  const part = shared.subscribe('x:2');
  await settled();
  legacy.disconnect();
  for (const { answer } of [retried, part, shared.subscribe('x:2')])
    assert.match(await failure(answer), 'BACKEND_UNAVAILABLE');
  mock.timers.tick(60_000);
  part.release();
  await settled();
  assert.is(requests, 2);
});

test('streams that end before their resources are asked for cost the backend nothing', async () => {
  for (let streams = 0; streams < 5; streams += 1) {
    const listening = shared.messages(new Set(names(`x${streams}`, 1_000))).subscribe();
    await settled();
    listening.unsubscribe();
    await settled();
  }
  assert.ok(asked().length <= 64, `${asked().length} requests`);
  legacy.onExchange = (exchange) => exchange.result();
  for (const exchange of legacy.open) exchange.result();
  await passTurns(10);
  assert.ok(asked().length <= 2 * 64, `${asked().length} requests with those that unsubscribe`);
});

test('asks for many resources at most 64 at a time, over several turns of the event loop', async () => {
  shared = new Feed(legacy, { clock: systemClock, scheduler: untimedScheduler(5) });
  const listening = shared.messages(new Set(names('x', 200))).subscribe();
  await passTurns(200);
  assert.is(asked().length, 64);
  const requests = new TurnCounter();
  legacy.onExchange = (exchange) => {
    requests.note();
    setImmediate(() => exchange.result());
  };
  for (const exchange of legacy.open) exchange.result();
  await passTurns(400);
  listening.unsubscribe();
  await passTurns(800);
  const subscribed = asked().filter((request) => request.startsWith('subscribe'));
  assert.equal([subscribed.length, asked().length - subscribed.length], [200, 200]);
  assert.ok(requests.fullest <= 5, `${requests.fullest} requests in one turn`);
});

test('refuses more than 10,000 resources', async () => {
  shared = new Feed(legacy, { clock: systemClock, scheduler: untimedScheduler(Number.POSITIVE_INFINITY) });
  legacy.onExchange = (exchange) => exchange.result();
  const [first] = Array.from({ length: 10_000 }, (_, n) => shared.subscribe(`x:${n}`));
  assert.is(await failure(shared.subscribe('x:more').answer), 'BACKEND_UNAVAILABLE no');
  assert.is(asked().length, 10_000);
  first?.release();
  await settled();
  shared.subscribe('x:more');
  await settled();
  assert.is(asked().at(-1), 'subscribe x:more', 'there is room again');
});

test('subscribes to what was refused for want of room once there is some', async () => {
  shared = new Feed(legacy, { clock: systemClock, scheduler: untimedScheduler(Number.POSITIVE_INFINITY) });
  legacy.onExchange = (exchange) => exchange.result();
  const parts = names('x', 2_500).map((uri) => shared.subscribe(uri, 'ann'));
  shared.subscribe('y:2', 'bob');
  const refused = names('y', 4).map((uri) => shared.subscribe(uri, 'ann'));
  const updates: unknown[] = [];
  const uris = new Set(names('y', 4));
  shared.add({ uris, deliver: ({ params }) => updates.push(params.uri) });
  for (const { answer } of refused) assert.is(await failure(answer), 'QUEUE_FULL no');
  refused[0]?.release();
  mock.timers.tick(5_000);
  await settled();
  assert.equal([asked().length, updates], [2_501, []], 'there is no room yet');
  for (const { release } of parts.slice(0, 2)) release();
  await settled();
  mock.timers.tick(5_000);
  await settled();
  assert.equal(asked().slice(2_503), ['subscribe y:1']);
  assert.equal(updates.sort(), ['y:1', 'y:2'], 'bob had the other one: updates may have been missed of both');
  refused[1]?.release();
  await settled();
  mock.timers.tick(5_000);
  await settled();
  assert.equal(asked().slice(2_504), ['unsubscribe y:1', 'subscribe y:3']);
});

test('looks again at most at 10,000 that were refused for want of room', async () => {
  shared = new Feed(legacy, { clock: systemClock, scheduler: untimedScheduler(Number.POSITIVE_INFINITY) });
  legacy.onExchange = (exchange) => exchange.result();
  const parts = names('x', 2_500).map((uri) => shared.subscribe(uri, 'ann'));
  const refused = names('y', 10_001).map((uri) => shared.subscribe(uri, 'ann'));
  for (const { release } of [...parts, ...refused.slice(0, 10_000)]) release();
  await settled();
  const before = asked().length;
  mock.timers.tick(5_000);
  await settled();
  assert.equal(asked().slice(before), [], 'the last one was not kept');
});

test('what an owner has left counts as its own until the backend has answered', async () => {
  shared = new Feed(legacy, { clock: systemClock, scheduler: untimedScheduler(Number.POSITIVE_INFINITY) });
  legacy.onExchange = (exchange) => exchange.result();
  const parts = names('x', 2_500).map((uri) => shared.subscribe(uri, 'ann'));
  await settled();
  assert.is(await failure(shared.subscribe('y:1', 'ann').answer), 'QUEUE_FULL no');
  assert.equal(await kinds(shared.subscribe('x:1', 'ann').answer, shared.subscribe('y:1', 'bob').answer), [
    'result',
    'result',
  ]);
  legacy.onExchange = () => undefined;
  for (const { release } of parts) release();
  await settled();
  assert.is(await failure(shared.subscribe('y:2', 'ann').answer), 'QUEUE_FULL no');
  shared.subscribe('x:2499', 'ann');
  shared.subscribe('x:2498', 'bob');
  legacy.onExchange = (exchange) => exchange.result();
  for (const exchange of legacy.open) exchange.result();
  await settled();
  assert.equal(await kinds(shared.subscribe('y:2', 'ann').answer), ['result']);
  const left = asked().filter((request) => request.startsWith('unsubscribe'));
  assert.equal([left.length, left.includes('unsubscribe x:2498')], [2_497, false]);
});

test.run();

function names(scheme: string, count: number): string[] {
  return Array.from({ length: count }, (_, n) => `${scheme}:${n}`);
}

/** What the legacy backend was asked. */
function asked(): string[] {
  return legacy.exchanges.map(
    ({ request: { method, params } }) => `${method.replace('resources/', '')} ${params?.uri}`,
  );
}

async function kinds(...promises: Promise<FinalEvent>[]): Promise<string[]> {
  return (await Promise.all(promises)).map(({ kind }) => kind);
}

async function failure(promise: Promise<FinalEvent>): Promise<string> {
  await settled();
  return promise.then(
    () => 'answered',
    (thrown: unknown) => {
      const { code, delivered } = asGatewayError(thrown);
      return `${code} ${delivered}`;
    },
  );
}
