// Subscriptions of modern clients: what they are granted, what they receive, and how they end.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { ANONYMOUS } from '../../../src/domain/accounts/principal.ts';
import type { JsonObject } from '../../../src/domain/json/json.ts';
import { suite } from '../../helpers/suite.ts';
import { simulateTime } from '../../helpers/time/simulated-time.ts';
import { passTurns } from '../../helpers/time/turns.ts';
import { RecordedReply } from '../recorded-reply.ts';
import {
  HANDSHAKE,
  headersFor,
  KEY,
  modernHarness,
  nestedTooDeeply,
  outcomeOf,
  SERVER_INFO,
  VERSION,
} from './modern-harness.ts';

const test = suite('listen');
simulateTime(test);

const notifications = { toolsListChanged: true, resourceSubscriptions: ['a://b'] };
const changed = { kind: 'notification', method: 'notifications/tools/list_changed', params: {} } as const;

test('acknowledges first, then sends changes, each with the id of the subscription', async () => {
  const harness = modernHarness();
  const wanted = { ...notifications, promptsListChanged: true };
  const reply = await harness.send('subscriptions/listen', { notifications: wanted }, { id: 'sub' });
  assert.equal([...(harness.backends.wanted[0]?.lists ?? [])], ['tools']);
  const tag = { [KEY.subscriptionId]: 'sub' };
  harness.backends.changes$.next(changed);
  mock.timers.tick(50);
  const params = { uri: 'a://b', _meta: { own: 1, [KEY.subscriptionId]: 'of the backend' } };
  harness.backends.changes$.next({ kind: 'notification', method: 'notifications/resources/updated', params });
  assert.equal(reply.events.messages, [
    {
      jsonrpc: '2.0',
      method: 'notifications/subscriptions/acknowledged',
      params: { notifications, _meta: tag },
    },
    { jsonrpc: '2.0', method: changed.method, params: { _meta: tag } },
    {
      jsonrpc: '2.0',
      method: 'notifications/resources/updated',
      params: { uri: 'a://b', _meta: { own: 1, ...tag } },
    },
  ]);
  assert.is(reply.events.isEnded, false);
});

test('sends no change that was not requested, whatever the backends send', async () => {
  const harness = modernHarness();
  const reply = await harness.send('subscriptions/listen', { notifications });
  const others = ['prompts/list_changed', 'resources/list_changed', 'message', 'progress', 'vendor'];
  for (const kind of others) {
    harness.backends.changes$.next({ kind: 'notification', method: `notifications/${kind}`, params: {} });
  }
  mock.timers.tick(50);
  const params = { uri: 'a://other' };
  harness.backends.changes$.next({ kind: 'notification', method: 'notifications/resources/updated', params });
  assert.is(reply.events.messages.length, 1);
});

test('sends at most one notice a second for a list that changes all the time, and one for the last change', async () => {
  const harness = modernHarness();
  const reply = await harness.send('subscriptions/listen', { notifications });
  const noticed = () => reply.events.messages.filter(({ method }) => method === changed.method).length;
  for (let atMs = 0; atMs < 10_000; atMs += 10) {
    harness.backends.changes$.next(changed);
    mock.timers.tick(10);
    await passTurns(1);
  }
  const before = noticed();
  assert.ok(before >= 9 && before <= 11, `${before} notices`);
  harness.backends.changes$.next(changed);
  mock.timers.tick(1_050);
  assert.ok(noticed() > before);
});

test('ends at once when no requested change is announced', async () => {
  const harness = modernHarness();
  const reply = await harness.send(
    'subscriptions/listen',
    { notifications: { promptsListChanged: true } },
    { id: 5 },
  );
  const _meta = { [KEY.subscriptionId]: 5, [KEY.serverInfo]: SERVER_INFO };
  assert.equal(reply.events.messages.slice(1), [
    { jsonrpc: '2.0', id: 5, result: { resultType: 'complete', _meta } },
  ]);
  assert.equal([reply.events.isEnded, harness.backends.wanted.length], [true, 0]);
});

test('ends with an answer when the gateway closes, or the backends do', async () => {
  for (const end of ['endpoint', 'backends']) {
    const harness = modernHarness();
    const replies = [
      await harness.send('subscriptions/listen', { notifications }, { id: 0 }),
      await harness.send('subscriptions/listen', { notifications }, { id: 0, owner: 'bob' }),
    ];
    if (end === 'endpoint') harness.endpoint.close();
    else harness.backends.changes$.complete();
    for (const { events } of replies) {
      assert.equal([events.isEnded, events.messages.at(-1)?.id], [true, 0]);
    }
    assert.is(harness.backends.changes$.observed, false);
  }
});

test('ends with an answer when its backends fail, also at once, and counts no more', async () => {
  for (const isAtOnce of [false, true]) {
    const harness = modernHarness();
    const failure = new Error('a fault of the backends');
    const { changes } = harness.backends;
    harness.backends.changes = (...wanted) => {
      if (isAtOnce) throw failure;
      return changes.apply(harness.backends, wanted);
    };
    const listen = () => harness.send('subscriptions/listen', { notifications }, { id: 0, owner: 'ann' });
    const { events } = await listen();
    if (!isAtOnce) harness.backends.changes$.error(failure);
    assert.equal([events.isEnded, events.messages.at(-1)?.id, harness.faults], [true, 0, [failure]]);
    for (let number = 0; number < 2_500; number += 1) await listen();
    assert.equal(outcomeOf(await listen()), '200', 'its share is free');
  }
});

test('a client whose stream cannot be opened leaves nothing of its share', async () => {
  const harness = modernHarness();
  const method = 'subscriptions/listen';
  const uris = Array.from({ length: 1_000 }, (_, index) => `a://${index}/${'x'.repeat(1_000)}`);
  const params = {
    notifications: { resourceSubscriptions: uris },
    _meta: { [KEY.version]: VERSION, [KEY.capabilities]: {} },
  };
  const body = { jsonrpc: '2.0', id: 1, method, params };
  class LostReply extends RecordedReply {
    override stream(): never {
      throw new Error('the client is gone');
    }
  }
  const outcomes = new Set<string>();
  for (let number = 0; number < 5; number += 1) {
    const reply = new LostReply();
    await harness.handle({ method: 'POST', body, headers: headersFor(method) }, reply);
    outcomes.add(outcomeOf(reply));
  }
  assert.equal([...outcomes], ['500 -32603'], 'never 429');
});

test('ends the stream of a client that does not read', async () => {
  const harness = modernHarness();
  const reply = await harness.send('subscriptions/listen', { notifications });
  reply.events.unsentBytes = 2 ** 20 + 1;
  harness.backends.changes$.next(changed);
  mock.timers.tick(50);
  assert.equal([reply.events.isEnded, harness.backends.changes$.observed], [true, false]);
});

test('sends each resource once of the updates that wait, and beyond 256 only resources that were subscribed to', async () => {
  const harness = modernHarness();
  const uris = ['a://b', 'a://c', 'a://b/sub'];
  const wanted = { notifications: { resourceSubscriptions: uris } };
  const reply = await harness.send('subscriptions/listen', wanted);
  const update = (uri: string) =>
    harness.backends.changes$.next({
      kind: 'notification',
      method: 'notifications/resources/updated',
      params: { uri },
    });
  for (let at = 0; at < 5_000; at += 1) update('a://c');
  for (let at = 0; at < 5_000; at += 1) update(`a://b/${at}`);
  update('a://b/sub/more');
  await passTurns(100);
  const found = reply.events.messages.slice(1).map(({ params }) => Object(params).uri);
  assert.ok(found.length <= 300, `${found.length} messages`);
  assert.equal(
    uris.map((uri) => found.includes(uri)),
    [true, true, true],
    'of two resources that have the part, the inner one',
  );
});

test('drops a message that cannot be serialized, reports it, and continues', async () => {
  const harness = modernHarness();
  const reply = await harness.send('subscriptions/listen', { notifications });
  const params = { uri: 'a://b', more: nestedTooDeeply() };
  harness.backends.changes$.next({ kind: 'notification', method: 'notifications/resources/updated', params });
  harness.backends.changes$.next(changed);
  mock.timers.tick(50);
  const found = reply.events.messages.slice(1).map(({ method }) => method);
  assert.equal(found, [changed.method]);
  const seen = harness.faults.map((fault) => fault instanceof RangeError);
  assert.equal(seen, [true]);
});

test('refuses an invalid filter, streams above the share of an owner, except without authentication, and above 10,000', async () => {
  const harness = modernHarness();
  const listen = (owner: string) => harness.send('subscriptions/listen', { notifications }, { owner });
  assert.is(outcomeOf(await harness.send('subscriptions/listen', {})), '200 -32602');
  const first = await listen('ann');
  for (let number = 1; number < 2_500; number += 1) await listen('ann');
  const refused = await listen('ann');
  const found = [outcomeOf(refused), Object(refused.message.error).data?.error_code];
  assert.equal(found, ['429 429', 'QUEUE_FULL']);
  assert.is((await listen('bob')).events.isEnded, false);
  first.lose();
  assert.is((await listen('ann')).events.isEnded, false);
  for (let number = 2_501; number < 10_000; number += 1)
    assert.is((await listen(ANONYMOUS.id)).events.isEnded, false);
  assert.is(outcomeOf(await listen('bob')), '429 429');
});

test('counts large profiles and many URIs in bytes until the stream ends', async () => {
  const uris = Array.from({ length: 1_000 }, (_, index) => `a://${index}/${'x'.repeat(1_000)}`);
  const many = { resourceSubscriptions: uris };
  const harness = modernHarness();
  const listen = (filter: JsonObject) => harness.send('subscriptions/listen', { notifications: filter });
  const open = [await listen(many), await listen(many), await listen(many)];
  assert.is(outcomeOf(await listen(many)), '429 429');
  assert.is(harness.backends.wanted.length, open.length);
  assert.is((await listen(notifications)).events.isEnded, false);
  for (const reply of open) reply.lose();
  assert.is(harness.declarations.total, 0);
});

const all = {
  tools: { listChanged: true },
  prompts: { listChanged: true },
  resources: { listChanged: true, subscribe: true },
};
const everything = {
  toolsListChanged: true,
  promptsListChanged: true,
  resourcesListChanged: true,
  resourceSubscriptions: ['a://b'],
};

test('grants what the client requests and the capabilities announce', async () => {
  const table: readonly [wanted: JsonObject, capabilities: JsonObject, shown: JsonObject][] = [
    [{}, all, {}],
    [{ toolsListChanged: false, resourceSubscriptions: [] }, all, {}],
    [{ vendor: true, toolsListChanged: true }, all, { toolsListChanged: true }],
    [everything, all, everything],
    [everything, {}, {}],
    [
      everything,
      { tools: {}, prompts: { listChanged: false }, resources: { subscribe: true } },
      { resourceSubscriptions: ['a://b'] },
    ],
    [everything, { resources: { listChanged: true } }, { resourcesListChanged: true }],
  ];
  for (const [notifications, capabilities, shown] of table) {
    const harness = modernHarness();
    harness.backends.known = [{ ...HANDSHAKE, capabilities }];
    const { events } = await harness.send('subscriptions/listen', { notifications });
    assert.equal(Object(events.messages[0]?.params).notifications, shown);
  }
});

test('asks the backends for the granted changes, and for templates of resources with resources', async () => {
  const { backends, send } = modernHarness();
  backends.known = [{ ...HANDSHAKE, capabilities: all }];
  await send('subscriptions/listen', { notifications: everything });
  assert.equal(
    backends.wanted.map(({ lists, resources }) => ({ lists: [...lists], resources: [...resources] })),
    [{ lists: ['tools', 'prompts', 'resources', 'resourceTemplates'], resources: ['a://b'] }],
  );
});

test('refuses each invalid filter with -32602', async () => {
  const bad: readonly JsonObject[] = [
    {},
    { notifications: null },
    { notifications: [] },
    { notifications: { toolsListChanged: 'yes' } },
    { notifications: { resourceSubscriptions: 'a://b' } },
    { notifications: { resourceSubscriptions: ['a://b', 7] } },
    { notifications: { resourceSubscriptions: Array(1_001).fill('a://b') } },
    { notifications: { resourceSubscriptions: ['a://b', 'x'.repeat(8 * 1024 + 1)] } },
  ];
  const { send } = modernHarness();
  for (const params of bad)
    assert.is(outcomeOf(await send('subscriptions/listen', params)), '200 -32602', JSON.stringify(params));
});

test.run();
