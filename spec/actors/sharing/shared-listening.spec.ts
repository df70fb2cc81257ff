// One subscription at a modern backend, however many clients there are and whatever each of them wants.

import { mock } from 'node:test';
import { NEVER, type Subscription } from 'rxjs';
import * as assert from 'uvu/assert';
import { type ListeningHost, SharedListening } from '../../../src/actors/sharing/shared-listening.ts';
import { backendUnavailable } from '../../../src/domain/error-catalogue.ts';
import type { Peer } from '../../../src/domain/mcp.ts';
import { PEER, type ScriptedExchange, ScriptedTransport } from '../../helpers/scripted-transport.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('shared listening');
const MODERN: Peer = { ...PEER, era: 'modern' };
const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';
const UPDATED = 'notifications/resources/updated';

let shared = new SharedListening();
let backend = new ScriptedTransport();
let host = hostOf(backend);

test.before.each(() => {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'] });
  shared = new SharedListening();
  backend = new ScriptedTransport();
  host = hostOf(backend);
});
test.after.each(() => mock.timers.reset());

test('drops unwanted resources with the next subscription', async () => {
  const first = await want('x:1');
  acknowledge();
  const second = await want('x:2');
  acknowledge();
  first.leave();
  await turn();
  assert.is(backend.exchanges.length, 2);
  await want('x:3');
  acknowledge();
  assert.equal(wanted().at(-1), ['x:2', 'x:3']);
  second.leave();
});

test('ends with the last client, acknowledged or not', async () => {
  for (const isAcknowledged of [true, false]) {
    const clients = [await want('x:1'), await want('x:1')];
    if (isAcknowledged) acknowledge();
    for (const { leave } of clients) leave();
    assert.is(backend.open.length, 0);
  }
});

test('takes a subscription for acknowledged that nothing was said of', async () => {
  await want('x:1');
  await want('x:2');
  assert.is(backend.exchanges.length, 1);
  mock.timers.tick(5_000);
  assert.is(backend.exchanges.length, 2);
});

test('subscribes again when the backend ends it, later each time, and soon again after a success', async () => {
  const { heard } = await want('x:1');
  acknowledge();
  backend.last.result();
  mock.timers.tick(499);
  assert.is(backend.exchanges.length, 1);
  mock.timers.tick(1);
  backend.last.fail(backendUnavailable('it broke', { delivered: 'no' }));
  mock.timers.tick(999);
  assert.is(backend.exchanges.length, 2);
  mock.timers.tick(1);
  acknowledge();
  backend.last.refuse(-32603);
  mock.timers.tick(500);
  backend.last.notify(UPDATED, { uri: 'x:1' });
  assert.equal([backend.exchanges.length, heard.length], [4, 1]);
});

test('gives each client its part when too much is wanted, and the rest when there is room', async () => {
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

test('asks for what had no room as soon as there is some', async () => {
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

test('makes one subscription of simultaneous changes, and keeps the old one until the new one is acknowledged', async () => {
  const { heard } = await want('x:0');
  const [first] = backend.exchanges;
  acknowledge();
  await Promise.all([want('x:1'), want('x:2')]);
  assert.is(backend.exchanges.length, 2);
  first?.notify(UPDATED, { uri: 'x:0' });
  assert.equal([first?.isOpen, heard.length], [true, 1]);
  acknowledge();
  assert.is(first?.isCancelled, true);
});

test('resolves when the backend has acknowledged all changes, or does not', async () => {
  const feed = shared.feed(host, MODERN);
  for (const end of [acknowledge, () => backend.last.refuse(-32000), () => mock.timers.tick(2_000)]) {
    const client = await want('x:1');
    await want('x:2');
    let hasEnded = false;
    const ended = feed.acknowledged?.then(() => {
      hasEnded = true;
    });
    if (end === acknowledge) acknowledge(); // only of the first change
    await turn();
    assert.is(hasEnded, false);
    end();
    await ended;
    client.leave();
    shared = new SharedListening();
    mock.timers.tick(10_000);
  }
});

test('asks the next session of an instance for nothing that the previous one had', async () => {
  await want('x:1');
  host.peer = { ...MODERN };
  backend.last.fail(backendUnavailable('it broke', { delivered: 'no' }));
  mock.timers.tick(60_000);
  assert.is(backend.exchanges.length, 1);
});

test.run();

async function want(...uris: string[]): Promise<{ readonly heard: unknown[]; readonly leave: () => void }> {
  const heard: unknown[] = [];
  const subscription: Subscription = shared
    .updates(host, MODERN, new Set(uris))
    .subscribe(({ params }) => heard.push(params));
  await turn();
  return { heard, leave: () => subscription.unsubscribe() };
}

function hostOf(transport: ScriptedTransport): ListeningHost & { peer: Peer | undefined } {
  return { listen: (request) => transport.exchange(request), messages$: NEVER, peer: MODERN };
}

/** Microtasks are done. */
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
