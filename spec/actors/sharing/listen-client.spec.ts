// Changes of lists of a modern backend, received by a subscription. Time is simulated.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { listChanges } from '../../../src/actors/sharing/listen-client.ts';
import { backendUnavailable } from '../../../src/domain/error-catalogue.ts';
import { RPC } from '../../../src/domain/jsonrpc.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { type ScriptedExchange, ScriptedTransport } from '../../helpers/scripted-transport.ts';
import { simulateTime } from '../../helpers/simulated-time.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('list changes');
simulateTime(test);

const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';
const DAY_MS = 24 * 60 * 60_000;

test('emits each change, and nothing for the acknowledgement', () => {
  const { backend, received } = listening();
  for (const method of [
    ACKNOWLEDGED,
    'notifications/tools/list_changed',
    'notifications/resources/updated',
    'notifications/resources/list_changed',
  ])
    backend.last.notify(method);
  assert.equal(received, ['tools', 'resources']);
});

test('subscribes again when the subscription ends, and then all lists count as changed', () => {
  for (const end of [
    (stream: ScriptedExchange) => stream.fail(backendUnavailable('reset', { delivered: 'unknown' })),
    (stream: ScriptedExchange) => stream.complete(),
    (stream: ScriptedExchange) => stream.result(),
    (stream: ScriptedExchange) => stream.refuse(RPC.internalError),
  ]) {
    const { backend, received, stop } = listening();
    backend.last.notify(ACKNOWLEDGED);
    end(backend.last);
    assert.equal([backend.exchanges.length, received], [1, []]);
    mock.timers.tick(LIMITS.restartFirstMs);
    assert.equal([backend.exchanges.length, received], [2, []]);
    backend.last.notify(ACKNOWLEDGED);
    assert.equal(received, ['tools', 'resources']);
    stop();
  }
});

test('waits longer each time, and starts over after a long subscription', () => {
  const { backend, stop } = listening();
  for (let round = 0; round < 20; round += 1) {
    backend.last.complete();
    mock.timers.tick(LIMITS.restartLongestMs);
  }
  assert.is(backend.exchanges.length, 21);
  backend.last.complete();
  mock.timers.tick(LIMITS.restartLongestMs - 1);
  assert.is(backend.exchanges.length, 21);
  mock.timers.tick(1);
  mock.timers.tick(LIMITS.restartForgivenMs);
  backend.last.complete();
  mock.timers.tick(LIMITS.restartFirstMs);
  assert.is(backend.exchanges.length, 23);
  stop();
});

test('gives up when the backend does not know subscriptions/listen', () => {
  const { backend, received } = listening();
  backend.last.refuse(RPC.methodNotFound);
  assert.equal(received, ['completed']);
  mock.timers.tick(DAY_MS);
  assert.is(backend.exchanges.length, 1);
});

test('ends its subscription without a subscriber, also during a back-off', () => {
  const one = listening();
  one.stop();
  assert.is(one.backend.last.isCancelled, true);
  const two = listening();
  two.backend.last.complete();
  two.stop();
  mock.timers.tick(DAY_MS);
  assert.is(two.backend.exchanges.length, 1);
});

test.run();

function listening() {
  const capabilities = {
    tools: { listChanged: true },
    resources: { listChanged: true, subscribe: true },
    prompts: {},
  };
  const backend = new ScriptedTransport({ era: 'modern', capabilities });
  const listen = backend.exchange.bind(backend);
  const received: string[] = [];
  const subscription = listChanges(backend.peer, { listen, now: () => Date.now() }).subscribe({
    next: (list) => received.push(list),
    complete: () => received.push('completed'),
  });
  return { backend, received, stop: () => subscription.unsubscribe() };
}
