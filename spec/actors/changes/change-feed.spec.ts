// The changes that clients receive, from instances of every kind, and that backends get no requests without subscribers.

import { mock } from 'node:test';
import { Subject, type Subscription } from 'rxjs';
import * as assert from 'uvu/assert';
import { ChangeFeed } from '../../../src/actors/changes/change-feed.ts';
import type { InstanceDefinition } from '../../../src/domain/instances/instance.ts';
import type { Handshake, ListChange } from '../../../src/domain/mcp/mcp.ts';
import { Harness } from '../../helpers/backends/harness.ts';
import { ASKABLE, HTTP, MODERN, modernCall, modernProfile, STDIO } from '../../helpers/backends/profiles.ts';
import type { ScriptedTransport } from '../../helpers/backends/scripted-transport.ts';
import { suite } from '../../helpers/suite.ts';
import { pass, settled, simulatedClock, simulateTime } from '../../helpers/time/simulated-time.ts';
import { passTurns, untimedScheduler } from '../../helpers/time/turns.ts';

const test = suite('change feed');
const UPDATED = 'notifications/resources/updated';
const UPDATES = { capabilities: { resources: { subscribe: true } } };

let harness = new Harness();
let listChanged$ = new Subject<ListChange>();
let feed: ChangeFeed;

simulateTime(test, () => {
  harness = new Harness();
  listChanged$ = new Subject();
  const { statelessConversations, fleet } = harness;
  const scheduler = untimedScheduler(Number.POSITIVE_INFINITY);
  feed = new ChangeFeed({
    fleet: {
      templates: fleet.templates,
      added$: fleet.added$,
      listChanged$,
    },
    statelessConversations,
    scheduler,
    random: () => 0.5,
    clock: simulatedClock,
  });
});
test.after.each(() => harness.close());

test('emits changes of lists, and opens no conversation for that', async () => {
  const instance = await add('a', HTTP, MODERN);
  const client = new Client({});
  for (const list of ['tools', 'resources', 'resourceTemplates'] as const)
    for (const template of ['other', 't']) listChanged$.next({ template, list });
  const resources = 'notifications/resources/list_changed';
  assert.equal(client.received, ['notifications/tools/list_changed', resources, resources]);
  await settled();
  assert.equal([harness.conversations('a').length, listens(instance).length], [0, 0]);
});

test('all streams share one subscription to the changes of all templates', async () => {
  const subscribed = mock.method(listChanged$, 'subscribe');
  const followers = ['t', 'other', 't'].map((template) => {
    const received: string[] = [];
    const changes$ = feed.changes(template, { id: 'ann' }, modernProfile(), { resources: new Set() });
    const subscription = changes$.subscribe(({ method }) => received.push(method));
    return { received, subscription };
  });
  assert.is(subscribed.mock.callCount(), 0);
  followers[0]?.subscription.unsubscribe();
  listChanged$.next({ template: 't', list: 'tools' });
  assert.equal(
    followers.map(({ received }) => received.length),
    [0, 0, 1],
  );
  listChanged$.complete();
  assert.ok(followers.every(({ subscription }) => subscription.closed));
});

test('many clients follow an instance over several turns of the event loop', async () => {
  const { statelessConversations, fleet } = harness;
  feed = new ChangeFeed({
    fleet,
    statelessConversations,
    scheduler: untimedScheduler(5),
    random: () => 0.5,
    clock: simulatedClock,
  });
  const program = await add('a', STDIO, UPDATES);
  const clients = Array.from({ length: 40 }, (_, n) => new Client({ uris: [`x:${n}`] }));
  const counts = [subscribed(program).length];
  for (let turn = 0; turn < 40; turn += 1) {
    await passTurns(1);
    counts.push(subscribed(program).length);
  }
  const rises = counts.slice(1).map((count, turn) => count - (counts[turn] ?? 0));
  assert.equal([counts.at(-1), Math.max(...rises) <= 5], [40, true], `${counts}`);
  for (const client of clients) client.leave();
});

test('subscribes once per resource at a shared program, and unsubscribes after the last client', async () => {
  const program = await add('a', STDIO, UPDATES);
  const ann = new Client({ uris: ['x:1', 'x:2'] });
  const bob = new Client({ uris: ['x:2'], owner: 'bob' });
  await settled();
  assert.equal(subscribed(program), ['subscribe x:1', 'subscribe x:2']);
  program.sendNotification(UPDATED, { uri: 'x:1' });
  program.sendNotification(UPDATED, { uri: 'x:2' });
  program.sendNotification(UPDATED, { uri: 'x:3' });
  assert.equal([ann.received, bob.received], [[`${UPDATED} x:1`, `${UPDATED} x:2`], [`${UPDATED} x:2`]]);
  ann.leave();
  await settled();
  bob.leave();
  await settled();
  assert.equal(subscribed(program).slice(2), ['unsubscribe x:1', 'unsubscribe x:2']);
});

test('subscribes over HTTP in a conversation per owner, shared by the clients of that owner', async () => {
  const instance = await add('a', HTTP, UPDATES);
  const clients = [
    new Client({ uris: ['x:1'] }),
    new Client({ uris: ['x:1'] }),
    new Client({ uris: ['x:1'], owner: 'bob' }),
  ];
  await settled();
  const [ofAnn, ofBob] = instance.conversations;
  assert.equal([instance.conversations.length, subscribed(instance)], [2, []]);
  ofAnn?.sendNotification(UPDATED, { uri: 'x:1' });
  const found = clients.map(({ received }) => received.length);
  assert.equal(found, [1, 1, 0]);
  for (const client of clients) client.leave();
  await settled();
  for (const conversation of [ofAnn, ofBob]) {
    assert.equal(conversation === undefined ? [] : subscribed(conversation), [
      'subscribe x:1',
      'unsubscribe x:1',
    ]);
  }
  await pass(60_000);
  assert.is(harness.statelessConversations.owners.length, 0);
});

test('reopens a conversation that ended, or could not be opened', async () => {
  const instance = await add('a', HTTP, UPDATES);
  instance.thrownByOpenConversation = new Error('no conversation');
  const client = new Client({ uris: ['x:1'] });
  await settled();
  instance.thrownByOpenConversation = undefined;
  await pass(500);
  instance.conversations[0]?.disconnect();
  await pass(1_000);
  client.received.splice(0); // what it may have missed
  instance.conversations[1]?.sendNotification(UPDATED, { uri: 'x:1' });
  assert.equal([instance.conversations.length, client.received.length], [2, 1]);
});

test('reopens ever more rarely a conversation that ends soon each time, until one lasts', async () => {
  const instance = await add('a', HTTP, UPDATES);
  const client = new Client({ uris: ['x:1'] });
  await settled();
  const endsAt: number[] = [];
  for (let passedMs = 0; passedMs < 60_000; passedMs += 500) {
    const last = instance.conversations.at(-1);
    if (last?.isClosed === false) {
      last.disconnect();
      endsAt.push(passedMs);
    }
    await pass(500);
  }
  assert.ok(endsAt.length < 10, `${endsAt}`);
  for (let waits = 0; waits < 2; waits += 1) await pass(30_000); // the last one lasts
  const opened = instance.conversations.length;
  instance.conversations.at(-1)?.disconnect();
  await pass(500);
  assert.is(instance.conversations.length, opened + 1);
  client.leave();
});

test('has one subscription at a modern instance for all clients', async () => {
  const instance = await add('a', HTTP, { ...MODERN, ...UPDATES });
  const clients = [new Client({ uris: ['x:1'] }), new Client({ uris: ['x:1'], owner: 'bob' })];
  await settled();
  const [listen] = listens(instance);
  listen?.notify(UPDATED, { uri: 'x:1' });
  const found = [listens(instance).length, ...clients.map(({ received }) => received)];
  assert.equal(found, [1, [`${UPDATED} x:1`], [`${UPDATED} x:1`]]);
  assert.is(harness.ref('a').activeCalls, 0);
  for (const client of clients) client.leave();
  await settled();
  assert.is(listen?.isCancelled, true);
});

test('sends no subscription to an instance that does not announce resource updates', async () => {
  const quiet = await add('a', STDIO, { capabilities: { resources: {} } });
  const modern = await add('b', HTTP, MODERN);
  const bare = await add('c', HTTP, { era: 'bare' });
  const client = new Client({ uris: ['x:1'] });
  await settled();
  assert.equal([...subscribed(quiet), ...listens(modern), ...subscribed(bare)], []);
  client.leave();
});

test('emits changes from the dedicated process of an owner to that owner only', async () => {
  const program = await add('a', STDIO, UPDATES);
  const ann = new Client({ uris: ['x:1'] });
  const bob = new Client({ uris: ['x:1'], owner: 'bob' });
  assert.is(await harness.callStateless(modernCall(), { profile: ASKABLE }).end, 'a');
  const [own] = program.conversations;
  assert.equal(own?.asked, ['resources/subscribe', 'tools/call']);
  own?.sendNotification('notifications/tools/list_changed');
  own?.sendNotification(UPDATED, { uri: 'x:1' });
  assert.equal([ann.received, bob.received], [['notifications/tools/list_changed', `${UPDATED} x:1`], []]);
  ann.leave();
  await settled();
  assert.is(own?.asked.at(-1), 'resources/unsubscribe');
  bob.leave();
});

test('subscribes again after a restart, and stays open when the instance is removed', async () => {
  const first = await add('a', STDIO, UPDATES);
  const client = new Client({ uris: ['x:1'] });
  await settled();
  harness.ref('a').restart();
  await settled();
  const second = harness.backend('a');
  assert.is.not(second, first);
  assert.equal(subscribed(second), ['subscribe x:1']);
  client.received.splice(0); // what it may have missed
  second.sendNotification(UPDATED, { uri: 'x:1' });
  assert.is(client.received.length, 1);
  await harness.fleet.remove('t', 'a', 0);
  assert.is(client.isOver, false);
});

test('opens no conversation with an instance that was removed', async () => {
  await add('a', HTTP, UPDATES);
  new Client({ uris: ['x:1'] });
  await settled();
  await harness.fleet.remove('t', 'a', 0);
  await pass(120_000);
  const opened = harness.eventsOf('upstream.opened').length;
  assert.equal([opened, harness.eventsOf('upstream.failed').length], [1, 0]);
});

test('one owner has a quarter of the resources of a shared program, and others get theirs', async () => {
  const program = await add('a', STDIO, UPDATES);
  program.onExchange = (exchange) => exchange.result();
  const streams = Array.from({ length: 11 }, (_, n) => new Client({ uris: names(`a${n}`, 1_000) }));
  await settled();
  const bob = new Client({ uris: ['b:1'], owner: 'bob' });
  await settled();
  assert.equal([subscribed(program).length, subscribed(program).at(-1)], [2_501, 'subscribe b:1']);
  for (const client of [...streams, bob]) client.leave();
  await settled();
  assert.is(subscribed(program).length, 2 * 2_501);
});

test('owners take turns at a shared program that does not answer', async () => {
  const program = await add('a', STDIO, UPDATES);
  program.onExchange = () => undefined;
  for (let n = 0; n < 12; n += 1) {
    const cut = new Client({ uris: names(`cut${n}`, 1_000) });
    await settled();
    cut.leave();
  }
  new Client({ uris: names('a', 1_000) });
  await settled();
  const counts = [subscribed(program).length];
  new Client({ uris: [...names('b', 20), 'a:999'], owner: 'bob' });
  new Client({ uris: ['a:998'], owner: 'cy' });
  await settled();
  counts.push(subscribed(program).filter((line) => line.startsWith('subscribe b')).length);
  assert.equal([...counts, subscribed(program).at(-1)], [16, 16, 'subscribe a:998']);
});

test('owners have equal parts of the resources of a modern instance', async () => {
  const instance = await add('a', HTTP, { ...MODERN, ...UPDATES });
  const streams = Array.from({ length: 12 }, (_, n) => new Client({ uris: names(`a${n}`, 1_000) }));
  streams.push(new Client({ uris: names('b', 1_000), owner: 'bob' }));
  await pass(10_000); // each counts as acknowledged after 5 s
  const notifications = Object(listens(instance).at(-1)?.request.params?.notifications);
  const uris: string[] = notifications.resourceSubscriptions;
  assert.equal([uris.length, uris.filter((uri) => uri.startsWith('b')).length], [10_000, 1_000]);
  for (const client of streams) client.leave();
});

test('completes when the gateway closes, and leaves nothing behind', async () => {
  const instance = await add('a', HTTP, { ...MODERN, ...UPDATES });
  const client = new Client({ uris: ['x:1'] });
  await settled();
  listChanged$.complete();
  await settled();
  assert.equal([client.isOver, listens(instance)[0]?.isCancelled], [true, true]);
});

test.run();

/** One client, its notifications, and whether its subscription ended. */
class Client {
  readonly received: string[] = [];
  isOver = false;
  readonly #subscription: Subscription;

  constructor({ uris = [], owner = 'ann' }: { uris?: string[]; owner?: string }) {
    const wanted = { resources: new Set(uris) };
    this.#subscription = feed.changes('t', { id: owner }, modernProfile(), wanted).subscribe({
      next: ({ method, params }) =>
        this.received.push(params.uri === undefined ? method : `${method} ${params.uri}`),
      complete: () => {
        this.isOver = true;
      },
    });
  }
  leave(): void {
    this.#subscription.unsubscribe();
  }
}

async function add(id: string, fields: Partial<InstanceDefinition>, handshake: Partial<Handshake>) {
  await harness.add(id, { fields, handshake });
  return harness.backend(id);
}

function names(scheme: string, count: number): string[] {
  return Array.from({ length: count }, (_, n) => `${scheme}:${n}`);
}

function subscribed({ exchanges }: ScriptedTransport): string[] {
  return exchanges
    .map(({ request: { method, params } }) => `${method} ${params?.uri}`)
    .filter((line) => /^resources\/(?:un)?subscribe/.test(line))
    .map((line) => line.slice('resources/'.length));
}

function listens({ exchanges }: ScriptedTransport) {
  return exchanges.filter(({ request }) => request.method === 'subscriptions/listen');
}
