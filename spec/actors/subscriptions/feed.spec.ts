// Subscriptions of many clients in a shared conversation: one at a modern backend, one for each resource at a legacy one.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { Feed } from '../../../src/actors/subscriptions/feed.ts';
import type { ExchangeRequest } from '../../../src/domain/calls/exchange.ts';
import type { FinalEvent } from '../../../src/domain/calls/exchange-event.ts';
import { backendUnavailable } from '../../../src/domain/errors/backend-errors.ts';
import { asGatewayError } from '../../../src/domain/errors/errors.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import type { Notification } from '../../../src/domain/mcp/client.ts';
import { RPC } from '../../../src/domain/mcp/jsonrpc.ts';
import { noticeKey } from '../../../src/domain/mcp/notices-in-tasks.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { type ScriptedExchange, ScriptedTransport } from '../../helpers/backends/scripted-transport.ts';
import { suite } from '../../helpers/suite.ts';
import { settled, simulateTime } from '../../helpers/time/simulated-time.ts';
import { passTurns, TurnCounter, untimedScheduler } from '../../helpers/time/turns.ts';

const test = suite('feed');
const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';
const UPDATED = 'notifications/resources/updated';
const TOOLS_CHANGED = 'notifications/tools/list_changed';
const RESOURCES_CHANGED = 'notifications/resources/list_changed';
const MODERN = {
  era: 'modern',
  capabilities: { tools: { listChanged: true }, resources: { listChanged: true }, prompts: {} },
} as const;

/** On a busy machine a task may be late, unless the time of a turn is not measured. */
let deps = { clock: systemClock, scheduler: untimedScheduler(1_000) };
let backend = new ScriptedTransport(MODERN);
let feed = new Feed(backend, deps);
let legacy = new ScriptedTransport();
let shared = new Feed(legacy, deps);

simulateTime(test, () => {
  deps = { clock: systemClock, scheduler: untimedScheduler(1_000) };
  backend = new ScriptedTransport(MODERN);
  feed = new Feed(backend, deps);
  legacy = new ScriptedTransport();
  shared = new Feed(legacy, deps);
});

test('drops unwanted resources with the next subscription', async () => {
  const first = await want('x:1');
  acknowledge();
  const second = await want('x:2');
  acknowledge();
  first.leave();
  await turn();
  assert.is(backend.exchanges.length, 2);
  const third = await want('x:3');
  acknowledge();
  assert.equal(wanted().at(-1), ['x:2', 'x:3']);
  await want();
  for (const { leave } of [second, third]) leave();
  await turn();
  assert.equal([backend.exchanges.length, wanted().at(-1)], [4, undefined], 'none is wanted any more');
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

test('ends its subscription with the last client, acknowledged or not', async () => {
  for (const isAcknowledged of [true, false]) {
    const clients = [await want('x:1'), await want('x:1')];
    if (isAcknowledged) acknowledge();
    for (const { leave } of clients) leave();
    assert.is(backend.open.length, 0);
  }
});

test('treats a subscription as acknowledged after 5 s without an acknowledgement', async () => {
  await want('x:1');
  await want('x:2');
  assert.is(backend.exchanges.length, 1);
  mock.timers.tick(5_000);
  assert.is(backend.exchanges.length, 2);
});

test('emits each change of a list, and nothing for the acknowledgement', async () => {
  const { received } = await want();
  for (const method of [ACKNOWLEDGED, TOOLS_CHANGED, RESOURCES_CHANGED, UPDATED]) backend.last.notify(method);
  backend.sendNotification(TOOLS_CHANGED);
  assert.equal(received, [TOOLS_CHANGED, RESOURCES_CHANGED, TOOLS_CHANGED]);
});

test('subscribes again when the backend ends it, and then all lists count as changed', async () => {
  for (const end of [
    () => backend.last.fail(backendUnavailable('reset', { delivered: 'unknown' })),
    () => backend.last.complete(),
    () => backend.last.result(),
    () => backend.last.refuse(RPC.internalError),
  ]) {
    const { received, leave } = await want('x:1');
    acknowledge();
    const before = backend.exchanges.length;
    end();
    mock.timers.tick(LIMITS.restartFirstMs - 1);
    assert.is(backend.exchanges.length, before);
    mock.timers.tick(1);
    assert.equal([backend.exchanges.length, received], [before + 1, []]);
    acknowledge();
    backend.last.notify(UPDATED, { uri: 'x:1' });
    await want('x:1', 'x:2');
    acknowledge();
    assert.equal(received, [TOOLS_CHANGED, RESOURCES_CHANGED, UPDATED]);
    leave();
    feed = new Feed(backend, deps);
  }
});

test('waits longer each time, and starts over after a long subscription', async () => {
  await want('x:1');
  for (let round = 0; round < 20; round += 1) {
    acknowledge();
    backend.last.complete();
    mock.timers.tick(LIMITS.restartLongestMs);
  }
  assert.is(backend.exchanges.length, 21);
  backend.last.complete();
  mock.timers.tick(LIMITS.restartLongestMs - 1);
  assert.is(backend.exchanges.length, 21);
  mock.timers.tick(1);
  acknowledge();
  mock.timers.tick(30_000);
  backend.last.complete();
  mock.timers.tick(LIMITS.restartFirstMs);
  assert.is(backend.exchanges.length, 23);
});

test('resources count as subscribed to again once the backend says so, not after 5 s', async () => {
  backend.onExchange = (exchange) => {
    const { resourceSubscriptions } = Object(exchange.request.params?.notifications);
    if (resourceSubscriptions === undefined) acknowledge(exchange);
  };
  const resumed = mock.fn();
  feed.add({ uris: new Set(['x:1']), deliver: () => undefined, resumed });
  await turn();
  for (let round = 0; round < 5; round += 1) {
    mock.timers.tick(5_000);
    backend.last.refuse(RPC.invalidParams);
    mock.timers.tick(LIMITS.restartLongestMs);
  }
  assert.is(resumed.mock.callCount(), 0);
  for (const count of [1, 1]) {
    backend.last.notify(UPDATED, { uri: 'x:1' });
    assert.is(resumed.mock.callCount(), count);
  }
  await want('x:2');
  const [current, next] = backend.exchanges.slice(-2);
  const late = feed.untilSettledOrLate;
  mock.timers.tick(LIMITS.backgroundMs);
  await late;
  current?.notify(UPDATED, { uri: 'x:1' });
  assert.is(resumed.mock.callCount(), 1, 'the one before does not know the new resource');
  acknowledge(next);
  assert.is(resumed.mock.callCount(), 2);
});

test('a refused resource keeps no client from the changes of lists', async () => {
  backend.onExchange = (exchange) => {
    const { resourceSubscriptions } = Object(exchange.request.params?.notifications);
    if (resourceSubscriptions === undefined) acknowledge(exchange);
    else exchange.refuse(RPC.invalidParams);
  };
  const { received } = await want();
  await want('x:1');
  backend.open[0]?.complete();
  for (let round = 0; round < 3; round += 1) mock.timers.tick(LIMITS.restartLongestMs);
  backend.open[0]?.notify(TOOLS_CHANGED);
  assert.equal(received, [TOOLS_CHANGED, RESOURCES_CHANGED, TOOLS_CHANGED]);
});

test('gives up when the backend does not know subscriptions/listen', async () => {
  await want('x:1');
  backend.last.refuse(RPC.methodNotFound);
  await want('x:2');
  mock.timers.tick(24 * 60 * 60_000);
  assert.is(backend.exchanges.length, 1);
});

test('ends its subscription with the last client, also during a back-off', async () => {
  const { leave } = await want('x:1');
  backend.last.complete();
  leave();
  mock.timers.tick(60_000);
  assert.is(backend.exchanges.length, 1);
});

test('above 10,000 resources gives each client its share, and the rest when there is room', async () => {
  const [many, more] = [await want(...names('many', 9_999)), await want(...names('more', 4))];
  acknowledge(backend.exchanges[0]);
  const second = () => Object(wanted().at(-1));
  const found = [second().length, second().filter((uri: string) => uri.startsWith('more')).length];
  assert.equal(found, [10_000, 4]);
  acknowledge();
  const late = await want('late:1');
  acknowledge();
  assert.ok(second().includes('late:1'));
  many.leave();
  await turn();
  assert.is(backend.exchanges.length, 3, 'the others are asked for already');
  more.leave();
  late.leave();
  assert.is(backend.open.length, 0);
});

test('subscribes to resources above the limit as soon as there is room', async () => {
  const [many, other] = [
    await want(...names('many', 10_000)),
    await want('many:0', ...names('other', 9_999)),
  ];
  acknowledge();
  acknowledge();
  const before = Object(wanted().at(-1));
  assert.equal([before.length, before.includes('other:9998')], [10_000, false]);
  many.leave();
  await turn();
  assert.equal(wanted().at(-1), ['many:0', ...names('other', 9_999)]);
  other.leave();
});

test('looks at the other clients only when one changes what is wanted', async () => {
  let looks = 0;
  class Watched extends Set<string> {
    override values() {
      looks += 1;
      return super.values();
    }
    override [Symbol.iterator]() {
      return this.values();
    }
  }
  feed.add({ uris: new Watched(['x:0']), deliver: () => undefined });
  await turn();
  acknowledge();
  const before = looks;
  assert.ok(before > 0);
  for (const uris of [['x:0'], []]) {
    const client = await want(...uris);
    feed.refresh(new Set(uris));
    await turn();
    client.leave();
    await turn();
  }
  assert.is(looks, before, 'thousands may come and go');
  const other = await want('x:1');
  acknowledge();
  assert.equal(wanted().at(-1), ['x:0', 'x:1']);
  other.leave();
  await turn();
  assert.ok(looks >= before + 2);
});

test('makes one subscription of simultaneous changes, and keeps the old one until the new one is acknowledged', async () => {
  const { received } = await want('x:0');
  const [first] = backend.exchanges;
  acknowledge();
  await Promise.all([want('x:1'), want('x:2')]);
  assert.is(backend.exchanges.length, 2);
  first?.notify(UPDATED, { uri: 'x:0' });
  assert.equal([first?.isOpen, received.length], [true, 1]);
  acknowledge();
  assert.is(first?.isCancelled, true);
});

test('acknowledged resolves when the backend acknowledges or refuses all changes, or is too slow', async () => {
  for (const end of [acknowledge, () => backend.last.refuse(-32000), () => mock.timers.tick(2_000)]) {
    const client = await want('x:1');
    await want('x:2');
    let hasEnded = false;
    const ended = feed.untilSettledOrLate?.then(() => {
      hasEnded = true;
    });
    if (end === acknowledge) acknowledge(); // only of the first change
    await turn();
    assert.is(hasEnded, false);
    end();
    await ended;
    client.leave();
    feed = new Feed(backend, deps);
    mock.timers.tick(10_000);
  }
});

test('sends nothing in a conversation that has ended', async () => {
  const { received, isOver } = await want('x:1');
  backend.disconnect();
  mock.timers.tick(60_000);
  assert.equal([backend.exchanges.length, received, isOver()], [1, [], true]);
});

test('legacy: subscribes once for all clients, and unsubscribes after the last', async () => {
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

test('legacy: subscribes a client that comes soon after others have left', async () => {
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

test('legacy: reports a refusal to all clients, and does not unsubscribe', async () => {
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

test('legacy: repeats a failed request after 5 s, while a client wants the resource', async () => {
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

test('legacy: keeps the subscription of a client that came between a failure and the repeat', async () => {
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

test('legacy: cancels a request that has no answer after 30 s', async () => {
  const part = shared.subscribe('x:1');
  await settled();
  mock.timers.tick(30_000);
  assert.is(await failure(part.answer), 'BACKEND_TIMEOUT unknown');
  assert.is(legacy.last.isCancelled, true);
});

test('legacy: ends with the conversation, which gets no further request', async () => {
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

test('legacy: streams that end before their resources are asked for cost the backend nothing', async () => {
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

test('legacy: asks for many resources at most 64 at a time, over several turns of the event loop', async () => {
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

test('legacy: refuses more than 10,000 resources', async () => {
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

test('legacy: subscribes to what was refused for want of room once there is some', async () => {
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

test('legacy: looks again at most at 10,000 that were refused for want of room', async () => {
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

test('legacy: what an owner has left counts as its own until the backend has answered', async () => {
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

async function want(...uris: string[]) {
  const received: unknown[] = [];
  const subscription = feed.messages(new Set(uris)).subscribe(({ method }) => received.push(method));
  await turn();
  return { received, leave: () => subscription.unsubscribe(), isOver: () => subscription.closed };
}

/** Lets microtasks run. */
async function turn(): Promise<void> {
  await Promise.resolve();
}

function names(scheme: string, count: number): string[] {
  return Array.from({ length: count }, (_, n) => `${scheme}:${n}`);
}

function acknowledge(exchange: ScriptedExchange = backend.last): void {
  exchange.notify(ACKNOWLEDGED);
}

function wanted(): unknown[] {
  return backend.exchanges.map(({ request }) => Object(request.params?.notifications).resourceSubscriptions);
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
