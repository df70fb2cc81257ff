// The processes of a program that clients with equal `extensions` and `experimental` share: who shares which one, with and without
// sessions, what reaches its clients, and which one ends when there are too many.

import * as assert from 'uvu/assert';
import { EXTENSION_IDLE_MS } from '../../../src/actors/instances/dedicated-conversation.ts';
import { grantPrincipalId } from '../../../src/domain/accounts/principal.ts';
import type { JsonObject } from '../../../src/domain/json/json.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import {
  ask,
  type BackendOptions,
  codeOf,
  Harness,
  listenTo,
  resultOf,
  silent,
} from '../../helpers/backends/harness.ts';
import {
  FULL,
  FULL_MODERN,
  HTTP,
  modernCall,
  modernProfile,
  PLAIN,
  STDIO,
} from '../../helpers/backends/profiles.ts';
import { suite } from '../../helpers/suite.ts';
import { pass, settled, simulateTime } from '../../helpers/time/simulated-time.ts';

const test = suite('extension processes');
let harness = new Harness();
simulateTime(test, () => {
  harness = new Harness();
});
test.after.each(async () => {
  const closed = harness.close();
  await pass(1);
  await closed;
});

const PROGRAM: BackendOptions = { fields: STDIO };
const UI = { extensions: { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html'] } } };
const setOf = (n: number): JsonObject => ({ extensions: { [`com.example/${n}`]: {} } });
const session = (capabilities: JsonObject, owner = 'ann') =>
  harness.openSession({ ...PLAIN, capabilities }, owner);
const stateless = (capabilities: JsonObject, owner = 'ann') =>
  harness.callStateless(modernCall(), { owner, profile: modernProfile(capabilities) });
/** The calls that each process of the instance received: first the one of clients without extensions. */
const calls = () =>
  [harness.backend('a'), ...harness.conversations('a')].map(
    ({ asked }) => asked.filter((method) => method === 'tools/call').length,
  );
const ended = () => harness.conversations('a').map(({ isClosed }) => isClosed);

test('clients with equal extensions share one process, whichever owner, name, revision and era they have', async () => {
  await harness.add('a', PROGRAM);
  const reordered = { experimental: { b: 1, a: 2 }, ...UI };
  const [apps, others] = [await session(UI), await session({ ...UI, experimental: { a: 2, b: 1 } })];
  for (const client of [apps, await session(UI, 'bob'), await session({ ...UI, tasks: {} }, 'cy'), others])
    await ask(client, 'write').end;
  await stateless(UI, 'dee').end;
  await stateless(reordered, 'dee').end;
  await ask(await session({}), 'write').end;
  await stateless({ extensions: {}, experimental: {} }).end;
  assert.equal(calls(), [2, 4, 2]);
  const [opened] = harness.backend('a').profiles;
  assert.equal(opened, { protocolVersion: '2025-11-25', capabilities: UI, clientInfo: {} });
  assert.equal([apps.isShared, harness.statelessConversations.owners], [true, []]);
});

test('a client that can be asked, or has a log level, has a process of its own with all its declarations', async () => {
  await harness.add('a', { ...PROGRAM, handshake: FULL });
  const asking = { sampling: {}, ...UI };
  await ask(await session(asking), 'write').end;
  await stateless(asking, 'bob').end;
  const quiet = await session(UI);
  await ask(quiet, 'write').end;
  const setLevel = ask(quiet, { method: 'logging/setLevel', params: { level: 'info' } });
  await resultOf(setLevel);
  await ask(quiet, 'write').end;
  assert.equal(calls(), [0, 1, 1, 1, 1]);
  const declared = harness.backend('a').profiles.map(({ capabilities }) => capabilities);
  assert.equal(declared, [asking, asking, UI, UI]);
  assert.equal(harness.conversations('a')[3]?.asked, ['logging/setLevel', 'tools/call']);
});

for (const policy of ['shared', 'isolated'] as const) {
  test(`extensions change nothing where the template is ${policy}`, async () => {
    harness.setPolicy({ processSharing: policy });
    await harness.add('a', PROGRAM);
    for (const owner of ['ann', 'bob']) await ask(await session(UI, owner), 'write').end;
    assert.equal(calls(), policy === 'shared' ? [2] : [0, 1, 1]);
  });
}

test('over HTTP each client has its own session, with its extensions', async () => {
  await harness.add('a', { fields: HTTP });
  for (const owner of ['ann', 'bob']) await ask(await session(UI, owner), 'write').end;
  assert.equal(calls(), [0, 1, 1]);
});

test('a session gets the lists of its process, its list changes, and the updates that it subscribed to', async () => {
  await harness.add('a', { ...PROGRAM, handshake: FULL });
  const clients = [await session(UI), await session(UI, 'bob')];
  const received = clients.map((client) => listenTo(client).messages);
  const [own] = harness.conversations('a');
  const subscribing = ask(clients[0] as never, { method: 'resources/subscribe', params: { uri: 'x:1' } });
  await resultOf(subscribing);
  own?.sendNotification('notifications/tools/list_changed');
  own?.sendNotification('notifications/resources/updated', { uri: 'x:1' });
  own?.sendNotification('notifications/message', { level: 'info', data: 'of another client' });
  harness.backend('a').sendNotification('notifications/resources/updated', { uri: 'x:1' });
  await pass(2_000);
  const methods = received.map((messages) => messages.map(({ method }) => method));
  const [changed, updated] = ['notifications/tools/list_changed', 'notifications/resources/updated'];
  assert.equal(methods, [[changed, updated], [changed]]);
  for (const client of clients) await ask(client, { method: 'tools/list' }).end;
  assert.equal(own?.asked, ['resources/subscribe', 'tools/list', 'tools/list']);
});

test('legacy clients share a process in the legacy era where a program speaks both, and that of all where it is modern', async () => {
  await harness.add('a', { ...PROGRAM, handshake: FULL_MODERN, own: { era: 'legacy' } });
  for (const owner of ['ann', 'bob']) await ask(await session(UI, owner), 'write').end;
  await stateless(UI).end;
  assert.equal(calls(), [1, 2]);
  await harness.fleet.remove('t', 'a', 0);
  await harness.add('a', { ...PROGRAM, handshake: FULL_MODERN });
  for (const owner of ['ann', 'bob']) await ask(await session(UI, owner), 'write').end;
  assert.equal([calls(), ended()], [[2, 0], [true]]);
});

test('the process whose last call is longest ago ends for a ninth set, and a session opens another for its next request', async () => {
  await harness.add('a', PROGRAM);
  const sessions = [];
  for (let n = 0; n < LIMITS.extensionProcesses; n += 1) {
    sessions.push(await session(setOf(n), `owner ${n}`));
    await pass(10);
  }
  const [first, second] = sessions as [never, never];
  const streams = sessions.map(listenTo);
  await ask(first, 'read').end;
  await session(setOf(8), 'a ninth');
  await pass(10_000);
  const all = Array.from({ length: 9 }, (_, n) => n === 1);
  assert.equal(ended(), all, 'no stream of a session opens its process again');
  assert.is(await ask(second, 'read').end, 'a');
  assert.equal([ended().length, ended()[2]], [10, true]);
  assert.is(
    streams.every(({ subscription }) => !subscription.closed),
    true,
  );
  assert.equal(harness.conversations('a').at(-1)?.asked, ['tools/call']);
});

test('a process with a call in flight does not end for another one', async () => {
  await harness.add('a', { ...PROGRAM, script: silent });
  const busy = Array.from({ length: LIMITS.extensionProcesses }, (_, n) => stateless(setOf(n), `owner ${n}`));
  await settled();
  assert.is(codeOf(await stateless(UI).end), 'QUEUE_FULL');
  busy[3]?.subscription.unsubscribe();
  await settled();
  stateless(UI);
  await settled();
  assert.equal(ended(), [false, false, false, true, false, false, false, false, false]);
});

for (const [who, idOf] of [
  ['caller', () => 'mallory'],
  ['user with ever other clients', (n: number) => grantPrincipalId(`${n}`, 'mallory')],
] as const)
  test(`a ${who} that declares ever other extensions ends the processes that it needed itself`, async () => {
    await harness.add('a', PROGRAM);
    for (let n = 0; n < 4; n += 1) await stateless(setOf(n), `owner ${n}`).end;
    for (let n = 4; n < 12; n += 1) {
      await pass(10);
      await stateless(setOf(n), idOf(n)).end;
    }
    assert.equal(
      ended(),
      Array.from({ length: 12 }, (_, n) => n >= 4 && n < 8),
    );
  });

test('a process ends when no session and no call has used it for ten minutes', async () => {
  await harness.add('a', PROGRAM);
  const client = await session(UI);
  await stateless(setOf(1)).end;
  await pass(EXTENSION_IDLE_MS);
  assert.equal(ended(), [false, true]);
  await client.close();
  await pass(2 * EXTENSION_IDLE_MS);
  assert.equal(ended(), [true, true]);
});

test('the end of an owner, and of a session, leave the process to its other clients', async () => {
  await harness.add('a', PROGRAM);
  const [ann, bob] = [await session(UI), await session(UI, 'bob')];
  await stateless(UI).end;
  await harness.statelessConversations.endOf('ann');
  await ann.close();
  await ask(bob, 'write').end;
  assert.equal([calls(), ended()], [[0, 2], [false]]);
});

test.run();
