// How changes of lists are heard from a modern backend, by subscribing to them. Time is simulated.

import { mock } from 'node:test';
import { Observable, type Subscriber } from 'rxjs';
import * as assert from 'uvu/assert';
import { listChanges } from '../../../src/actors/sharing/listen-client.ts';
import { backendUnavailable } from '../../../src/domain/error-catalogue.ts';
import type { ExchangeEvent, ExchangeRequest } from '../../../src/domain/exchange.ts';
import { JsonText } from '../../../src/domain/json.ts';
import { RPC } from '../../../src/domain/jsonrpc.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import type { Peer } from '../../../src/domain/mcp.ts';
import { PEER } from '../../helpers/scripted-transport.ts';
import { simulateTime } from '../../helpers/simulated-time.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('list changes');
simulateTime(test);

const MODERN = {
  era: 'modern',
  capabilities: {
    tools: { listChanged: true },
    resources: { listChanged: true, subscribe: true },
    prompts: {},
  },
} as const;
const ACKNOWLEDGED = said('notifications/subscriptions/acknowledged');
const DAY_MS = 24 * 60 * 60_000;

test('subscribes to what a modern backend announces, and to nothing else', () => {
  const { requests } = listening(MODERN);
  assert.equal(requests, [
    {
      method: 'subscriptions/listen',
      params: { notifications: { toolsListChanged: true, resourcesListChanged: true } },
    },
  ]);
});

test('emits each change, and nothing for the acknowledgement', () => {
  const { latest, heard } = listening(MODERN);
  for (const event of [
    ACKNOWLEDGED,
    said('notifications/tools/list_changed'),
    said('notifications/resources/updated'),
    said('notifications/resources/list_changed'),
  ])
    latest().next(event);
  assert.equal(heard, ['tools', 'resources']);
});

test('subscribes again when it ends, and then all lists count as changed', () => {
  for (const end of [
    (stream: Subscriber<ExchangeEvent>) =>
      stream.error(backendUnavailable('reset', { delivered: 'unknown' })),
    (stream: Subscriber<ExchangeEvent>) => stream.complete(),
    (stream: Subscriber<ExchangeEvent>) => {
      stream.next({ kind: 'result', result: JsonText.ofValue({}) });
      stream.complete();
    },
    (stream: Subscriber<ExchangeEvent>) => {
      stream.next({ kind: 'error', error: { code: RPC.internalError, message: 'busy' } });
      stream.complete();
    },
  ]) {
    const { latest, requests, heard, stop } = listening(MODERN);
    latest().next(ACKNOWLEDGED);
    end(latest());
    assert.equal([requests.length, heard], [1, []]);
    mock.timers.tick(LIMITS.restartFirstMs);
    assert.equal([requests.length, heard], [2, []]);
    latest().next(ACKNOWLEDGED);
    assert.equal(heard, ['tools', 'resources']);
    stop();
  }
});

test('waits longer each time, and is forgiven after a long subscription', () => {
  const { latest, requests, stop } = listening(MODERN);
  for (let round = 0; round < 20; round += 1) {
    latest().complete();
    mock.timers.tick(LIMITS.restartLongestMs);
  }
  assert.is(requests.length, 21);
  latest().complete();
  mock.timers.tick(LIMITS.restartLongestMs - 1);
  assert.is(requests.length, 21);
  mock.timers.tick(1);
  mock.timers.tick(LIMITS.restartForgivenMs);
  latest().complete();
  mock.timers.tick(LIMITS.restartFirstMs);
  assert.is(requests.length, 23);
  stop();
});

test('gives up when the backend does not know how to be listened to', () => {
  const { latest, requests, heard } = listening(MODERN);
  latest().next({ kind: 'error', error: { code: RPC.methodNotFound, message: 'no' } });
  assert.equal(heard, ['completed']);
  mock.timers.tick(DAY_MS);
  assert.is(requests.length, 1);
});

test('ends its subscription without a subscriber, also while it waits', () => {
  const one = listening(MODERN);
  one.stop();
  assert.is(one.latest().closed, true);
  const two = listening(MODERN);
  two.latest().complete();
  two.stop();
  mock.timers.tick(DAY_MS);
  assert.is(two.requests.length, 1);
});

test.run();

function listening(peer: Partial<Peer>) {
  const requests: ExchangeRequest[] = [];
  const streams: Subscriber<ExchangeEvent>[] = [];
  const heard: string[] = [];
  const listen = (request: ExchangeRequest) =>
    new Observable<ExchangeEvent>((subscriber) => {
      requests.push(request);
      streams.push(subscriber);
    });
  const subscription = listChanges({ ...PEER, ...peer }, { listen, now: () => Date.now() }).subscribe({
    next: (list) => heard.push(list),
    error: () => heard.push('error'),
    complete: () => heard.push('completed'),
  });
  const latest = (): Subscriber<ExchangeEvent> => {
    const stream = streams.at(-1);
    if (stream === undefined) throw new Error('nothing was opened');
    return stream;
  };
  return { requests, heard, latest, stop: () => subscription.unsubscribe() };
}

function said(method: string): ExchangeEvent {
  return { kind: 'notification', method, params: {} };
}
