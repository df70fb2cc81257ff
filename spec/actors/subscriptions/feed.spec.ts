// Subscriptions of many clients in a shared conversation with a modern backend: one for all. legacy-feed.spec.ts has a legacy one.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { Feed } from '../../../src/actors/subscriptions/feed.ts';
import { backendUnavailable } from '../../../src/domain/errors/backend-errors.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { RPC } from '../../../src/domain/mcp/jsonrpc.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { type ScriptedExchange, ScriptedTransport } from '../../helpers/backends/scripted-transport.ts';
import { suite } from '../../helpers/suite.ts';
import { simulateTime } from '../../helpers/time/simulated-time.ts';
import { untimedScheduler } from '../../helpers/time/turns.ts';

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

simulateTime(test, () => {
  deps = { clock: systemClock, scheduler: untimedScheduler(1_000) };
  backend = new ScriptedTransport(MODERN);
  feed = new Feed(backend, deps);
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
  const missed = mock.fn();
  feed.add({ uris: new Set(['x:1']), deliver: () => undefined, missed });
  await turn();
  for (let round = 0; round < 5; round += 1) {
    mock.timers.tick(5_000);
    backend.last.refuse(RPC.invalidParams);
    mock.timers.tick(LIMITS.restartLongestMs);
  }
  assert.is(missed.mock.callCount(), 0);
  for (const count of [1, 1]) {
    backend.last.notify(UPDATED, { uri: 'x:1' });
    assert.is(missed.mock.callCount(), count);
  }
  await want('x:2');
  const [current, next] = backend.exchanges.slice(-2);
  const late = feed.untilSettled(LIMITS.backgroundMs);
  mock.timers.tick(LIMITS.backgroundMs);
  await late;
  current?.notify(UPDATED, { uri: 'x:1' });
  assert.is(missed.mock.callCount(), 1, 'the one before does not know the new resource');
  acknowledge(next);
  assert.is(missed.mock.callCount(), 2);
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
    const ended = feed.untilSettled(LIMITS.backgroundMs)?.then(() => {
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
