// One subscription at a modern backend, however many clients there are and whatever each of them wants.

import { mock } from 'node:test';
import type { Subscription } from 'rxjs';
import * as assert from 'uvu/assert';
import { type ListeningHost, SharedListening } from '../../../src/actors/sharing/shared-listening.ts';
import { backendUnavailable } from '../../../src/domain/error-catalogue.ts';
import { type ScriptedExchange, ScriptedTransport } from '../../helpers/scripted-transport.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('shared listening');
const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';
const UPDATED = 'notifications/resources/updated';

let shared = new SharedListening();
let backend = new ScriptedTransport();
let host: ListeningHost = { listen: (request) => backend.exchange(request) };

test.before.each(() => {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'] });
  shared = new SharedListening();
  backend = new ScriptedTransport();
  host = { listen: (request) => backend.exchange(request) };
});
test.after.each(() => mock.timers.reset());

test('drops unwanted resources with the next subscription', () => {
  const first = want('x:1');
  acknowledge();
  const second = want('x:2');
  acknowledge();
  first.leave();
  assert.is(backend.exchanges.length, 2);
  want('x:3');
  acknowledge();
  assert.equal(wanted().at(-1), ['x:2', 'x:3']);
  second.leave();
});

test('ends with the last client, acknowledged or not', () => {
  for (const isAcknowledged of [true, false]) {
    const clients = [want('x:1'), want('x:1')];
    if (isAcknowledged) acknowledge();
    for (const { leave } of clients) leave();
    assert.equal([backend.open.length, shared.size], [0, 0]);
  }
});

test('takes a subscription for acknowledged that nothing was said of', () => {
  want('x:1');
  want('x:2');
  assert.is(backend.exchanges.length, 1);
  mock.timers.tick(5_000);
  assert.is(backend.exchanges.length, 2);
});

test('subscribes again when the backend ends it, later each time, and soon again after a success', () => {
  const { heard } = want('x:1');
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

test('gives each client its part when too much is wanted, and the rest when there is room', () => {
  const [many, more] = [want(...names('many', 9_999)), want(...names('more', 4))];
  acknowledge(backend.exchanges[0]);
  const second = () => Object(wanted().at(-1));
  assert.equal(
    [second().length, second().filter((uri: string) => uri.startsWith('more')).length],
    [10_000, 4],
  );
  acknowledge();
  const late = want('late:1');
  acknowledge();
  assert.ok(second().includes('late:1'));
  many.leave();
  assert.is(backend.exchanges.length, 3, 'the others are asked for already');
  more.leave();
  late.leave();
  assert.equal([backend.open.length, shared.size], [0, 0]);
});

test('asks for what had no room as soon as there is some', () => {
  const [many, other] = [want(...names('many', 10_000)), want('many:0', ...names('other', 9_999))];
  acknowledge();
  acknowledge();
  const before = Object(wanted().at(-1));
  assert.equal([before.length, before.includes('other:9998')], [10_000, false]);
  many.leave();
  assert.equal(wanted().at(-1), ['many:0', ...names('other', 9_999)]);
  other.leave();
});

test.run();

function want(...uris: string[]): { readonly heard: unknown[]; readonly leave: () => void } {
  const heard: unknown[] = [];
  const subscription: Subscription = shared
    .updates(host, new Set(uris))
    .subscribe(({ params }) => heard.push(params));
  return { heard, leave: () => subscription.unsubscribe() };
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
