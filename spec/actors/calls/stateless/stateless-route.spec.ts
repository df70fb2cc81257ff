// Which conversation a call without a session takes, which messages it gets there, and its fate when the conversation ends.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { STATELESS_IDLE_MS } from '../../../../src/actors/calls/stateless/stateless-conversations.ts';
import { backendUnavailable } from '../../../../src/domain/errors/backend-errors.ts';
import type { JsonObject } from '../../../../src/domain/json/json.ts';
import { QUESTION_REFUSALS } from '../../../../src/domain/mcp/client.ts';
import { META } from '../../../../src/domain/mcp/mcp.ts';
import {
  answers,
  type BackendOptions,
  errorView,
  fails,
  Harness,
  resultOf,
  type Script,
  silent,
  undelivered,
} from '../../../helpers/backends/harness.ts';
import {
  ASKABLE,
  HTTP,
  MODERN,
  modernCall,
  modernProfile,
  STDIO,
} from '../../../helpers/backends/profiles.ts';
import { suite } from '../../../helpers/suite.ts';
import { pass, settled, simulateTime } from '../../../helpers/time/simulated-time.ts';

const test = suite('stateless route');
const LOGGING = { capabilities: { logging: {} } };
const LEVEL = (level: string) => modernCall({ [META.logLevel]: level });

const TOO_LATE = { code: 'BACKEND_TIMEOUT', delivered: 'no', retryAfterSeconds: 1 };

let harness = new Harness();

simulateTime(test, () => {
  harness = new Harness();
});
test.after.each(async () => {
  const closed = harness.close();
  await settled();
  mock.timers.tick(1);
  await closed;
});

const LIST = { method: 'tools/list', params: {} };
/** A program that lists `shared` tools in its shared process, and `own` in others, where it first asks its client. */
function lister(shared: number, own: number): BackendOptions {
  const script: Script = (exchange) => {
    const isOwn = harness.conversations('a').some(({ exchanges }) => exchanges.includes(exchange));
    if (isOwn) exchange.ask('roots/list');
    const tools = Array.from({ length: isOwn ? own : shared }, (_, n) => ({ name: `tool ${n}` }));
    exchange.result(exchange.request.method === 'tools/list' ? { tools } : {});
  };
  return { fields: STDIO, script, tools: null };
}

async function listed(capabilities: JsonObject = {}, owner = 'ann'): Promise<unknown> {
  const listing = harness.callStateless(LIST, { profile: modernProfile(capabilities), owner });
  await listing.end;
  const [answer] = listing.answers;
  assert.is(listing.answers.length, 1, 'it is asked nothing');
  return answer?.event.kind === 'result' ? Object(answer.event.result.value).tools.length : answer;
}

test('a list has the tools that a program offers to a client with these capabilities', async () => {
  await harness.add('a', lister(13, 17));
  await settled();
  const asking = { elicitation: {}, roots: {} };
  assert.equal([await listed(), await listed(asking), await listed(asking, 'bob')], [13, 17, 17]);
  const [own] = harness.conversations('a');
  assert.equal(own?.exchanges[0]?.replies, [QUESTION_REFUSALS.noCall]);
  assert.equal(
    [harness.conversations('a').length, harness.backend('a').profiles[0]?.capabilities],
    [2, asking],
  );
});

test('a list comes from the shared process once capabilities are known to make no difference', async () => {
  await harness.add('a', lister(13, 13));
  await settled();
  const asking = { elicitation: {} };
  assert.equal([await listed(asking), await listed(asking, 'bob')], [13, 13]);
  assert.is(harness.conversations('a').length, 1);
  assert.equal([await listed({ sampling: {} }), harness.conversations('a').length], [13, 2]);
});

test('task requests go to a dedicated conversation, or are refused where processes are shared', async () => {
  await harness.add('a', { fields: STDIO });
  const task = { method: 'tasks/list', params: {} };
  const asked = () => [harness.backend('a'), ...harness.conversations('a')].map((one) => one.asked.at(-1));
  await harness.callStateless(task).end;
  assert.equal(asked(), ['tools/list', 'tasks/list']);
  await harness.statelessConversations.endOf('ann');
  harness.setPolicy({ processSharing: 'shared' });
  const refused = harness.callStateless(task);
  assert.equal([await refused.end, await resultOf(refused)], ['a', -32601]);
  assert.equal([asked(), harness.statelessConversations.owners.length], [['tools/list', 'tasks/list'], 0]);
});

test('a dedicated process that may still ask about a cancelled call is not used again', async () => {
  await harness.add('a', { fields: STDIO, script: silent });
  const first = harness.callStateless(modernCall(), { profile: ASKABLE });
  await settled();
  first.subscription.unsubscribe();
  harness.callStateless(modernCall(), { profile: ASKABLE });
  await settled();
  assert.equal(toolCalls('a'), [0, 1, 1]);
  assert.equal(
    [harness.conversations('a')[0]?.isClosed, harness.statelessConversations.owners.length],
    [true, 1],
  );
});

test('calls are picked and counted synchronously when a conversation is already open', async () => {
  harness.setPolicy({ strategy: 'least_connections' });
  for (const id of ['a', 'b', 'c', 'd']) {
    await harness.add(id, { fields: HTTP, script: silent });
    harness.callStateless(modernCall(), { instanceId: id });
  }
  await settled();
  for (let n = 0; n < 396; n += 1) harness.callStateless(modernCall());
  const found = harness.fleet.templates.group('t').refs.map(({ activeCalls }) => activeCalls);
  assert.equal(found, [100, 100, 100, 100]);
});

for (const [fields, handshake] of [
  [HTTP, {}],
  [STDIO, {}],
  [HTTP, MODERN],
] as const) {
  test(`a call that names a drained ${handshake.era ?? 'legacy'} instance over ${fields.transport} still reaches it`, async () => {
    await harness.add('a', { fields, handshake });
    harness.ref('a').drain();
    assert.is(await harness.callStateless(modernCall(), { instanceId: 'a' }).end, 'a');
    const found = errorView(await harness.callStateless(modernCall()).end);
    assert.equal(found, undelivered('NO_HEALTHY_INSTANCE', 2));
  });
}

test('a call tries another instance when no conversation can be opened, or it did not arrive', async () => {
  await harness.add('a', { fields: HTTP });
  await harness.add('b', { fields: HTTP, script: fails('no') });
  await harness.add('c', { fields: HTTP });
  harness.backend('a').thrownByOpenConversation = new Error('no conversation');
  for (let n = 0; n < 3; n += 1) assert.is(await harness.callStateless(modernCall()).end, 'c');
  assert.ok(harness.eventsOf('call.retried').length > 0);
});

test('a conversation that had ended unnoticed is reopened also for a call that was silent before', async () => {
  harness.setPolicy({ callTimeoutMs: 6_000 });
  await harness.add('a', { fields: HTTP, script: answers('a') });
  assert.is(await harness.callStateless(modernCall()).end, 'a');
  harness.rewrite('a', silent);
  const call = harness.callStateless({ method: 'resources/list' });
  await settled();
  await pass(2_000); // a hedge would begin, if there were another instance
  harness.rewrite('a', answers('a'));
  harness.conversations('a')[0]?.last.fail(backendUnavailable('not connected', { delivered: 'no' }));
  assert.is(await call.end, 'a');
  assert.is(harness.conversations('a').length, 2);
});

for (const maxRetries of [0, 2])
  test(`a conversation that had ended unnoticed is reopened once, with ${maxRetries} retries left`, async () => {
    harness.setPolicy({ maxRetries });
    let isLost = false;
    await harness.add('a', {
      fields: HTTP,
      script: (exchange) => (isLost ? fails('no')(exchange) : answers()(exchange)),
    });
    await harness.callStateless(modernCall()).end;
    isLost = true;
    assert.equal(
      errorView(await harness.callStateless(modernCall()).end),
      undelivered('BACKEND_UNAVAILABLE'),
    );
    assert.equal(toolCalls('a'), [0, 2, 1]);
  });

test('a dedicated process ends with its instance, even after the shared process was lost', async () => {
  await harness.add('a', { fields: STDIO, script: silent });
  const call = harness.callStateless(modernCall(), { profile: ASKABLE });
  await settled();
  const [own] = harness.conversations('a');
  harness.backend('a').disconnect();
  await settled();
  const removed = harness.fleet.remove('t', 'a', 0);
  await settled();
  mock.timers.tick(1);
  await removed;
  assert.equal(errorView(await call.end), { code: 'BACKEND_UNAVAILABLE', delivered: 'unknown' });
  assert.equal([own?.isClosed, harness.statelessConversations.owners.length], [true, 0]);
});

test('the log level is set before the first call that asks for one, and when a call asks for more', async () => {
  await harness.add('a', { fields: STDIO, handshake: LOGGING });
  await harness.callStateless(LEVEL('warning')).end;
  await harness.callStateless(LEVEL('error')).end;
  await harness.callStateless(LEVEL('debug')).end;
  await harness.callStateless(LEVEL('debug')).end;
  assert.equal(received(0), [
    'logging/setLevel warning',
    'tools/call',
    'tools/call',
    'logging/setLevel debug',
    'tools/call',
    'tools/call',
  ]);
});

/** Answers nothing else. */
const setsLevel: Script = (exchange) => exchange.request.method === 'logging/setLevel' && exchange.result();

test('a client gets the log messages that it opted in to, and no others', async () => {
  await harness.add('a', { fields: HTTP, script: setsLevel, handshake: LOGGING });
  const [deaf, picky] = [harness.callStateless(modernCall()), harness.callStateless(LEVEL('error'))];
  await settled();
  for (const exchange of harness.conversations('a')[0]?.open ?? []) {
    exchange.notify('notifications/message', { level: 'info' });
    exchange.notify('notifications/message', { level: 'error' });
    exchange.notify('notifications/progress', {});
    exchange.result();
  }
  assert.equal([await deaf.end, await picky.end], ['a', 'a']);
  assert.equal([deaf.answers.length, picky.answers.length], [2, 3]);
});

test('a call of an owner whose conversations were ended goes to no other instance', async () => {
  harness.setPolicy({ callTimeoutMs: 6_000 });
  await harness.add('a', { fields: HTTP, script: silent });
  const listing = () => harness.callStateless({ method: 'resources/list' });
  const [alone] = [listing()];
  await settled();
  await harness.add('b', { fields: HTTP });
  await harness.statelessConversations.endOf('ann');
  assert.equal(errorView(await alone.end), { code: 'BACKEND_UNAVAILABLE', delivered: 'unknown' });
  assert.equal(harness.conversations('b').length, 0);

  const frozen = harness.freeze('a');
  const opening = harness.callStateless({ method: 'resources/list' }, { instanceId: 'a' });
  await settled();
  await harness.statelessConversations.endOf('ann');
  frozen.thaw();
  assert.equal(Object(errorView(await opening.end)).code, 'BACKEND_UNAVAILABLE');
  assert.is(
    await harness.callStateless(modernCall(), { instanceId: 'b' }).end,
    'b',
    'a later call is not affected',
  );
});

test('a conversation ends after a minute without use', async () => {
  await harness.add('a', { fields: HTTP });
  await harness.callStateless(modernCall()).end;
  mock.timers.tick(STATELESS_IDLE_MS - 1);
  await harness.callStateless(modernCall()).end;
  mock.timers.tick(STATELESS_IDLE_MS - 1);
  assert.is(harness.statelessConversations.owners.length, 1);
  await pass(1);
  const found = [
    harness.statelessConversations.owners.length,
    harness.conversations('a').map(({ closings }) => closings),
  ];
  assert.equal(found, [0, [1]]);
});

test('a call leaves an HTTP instance that opens nothing after half of its time, if there is another', async () => {
  harness.setPolicy({ callTimeoutMs: 4_000 });
  for (const id of ['a', 'b']) await harness.add(id, { fields: HTTP });
  const { thaw } = harness.freeze('a');
  const calls = [harness.callStateless(modernCall()), harness.callStateless(modernCall())];
  await settled();
  mock.timers.tick(2_000);
  assert.equal(await Promise.all(calls.map(({ end }) => end)), ['b', 'b']);
  thaw();
  await settled();
  assert.equal(toolCalls('a'), [0, 0]);
  assert.equal(toolCalls('b'), [0, 2]);
  await pass(2 * STATELESS_IDLE_MS);
  assert.is(harness.statelessConversations.owners.length, 0, 'no conversation is left');
  for (const id of ['a', 'b']) harness.freeze(id);
  const late = harness.callStateless(modernCall(), { owner: 'bob' });
  for (const waitMs of [2_000, 1_999]) {
    await pass(waitMs);
  }
  assert.is(late.subscription.closed, false);
  mock.timers.tick(1);
  assert.equal(errorView(await late.end), TOO_LATE);
});

test('a call leaves an instance that is drained meanwhile, and the conversation opened there ends', async () => {
  await harness.add('a', { fields: HTTP });
  const { thaw } = harness.freeze('a');
  const call = harness.callStateless(modernCall());
  await settled();
  await harness.add('b', { fields: HTTP });
  harness.ref('a').drain();
  thaw();
  assert.is(await call.end, 'b');
  await pass(2 * STATELESS_IDLE_MS);
  assert.is(harness.statelessConversations.owners.length, 0);
});

test('a repeatable request is hedged at an instance with an open conversation when the first one is silent', async () => {
  harness.setPolicy({ callTimeoutMs: 6_000 });
  await harness.add('a', { fields: HTTP, script: silent });
  await harness.add('b', { fields: HTTP });
  const list = () => harness.callStateless({ method: 'resources/list' });
  await harness.callStateless(modernCall(), { instanceId: 'b' }).end;
  const first = list();
  await settled();
  mock.timers.tick(2_000);
  assert.is(await first.end, 'b');
  assert.is(harness.conversations('a')[0]?.last.isCancelled, true);
  await harness.statelessConversations.endOf('ann');
  const second = [list(), list()];
  await pass(2_000);
  mock.timers.tick(2_000);
  assert.equal(await Promise.all(second.map(({ end }) => end)), ['b', 'b'], 'it was opened meanwhile');
  assert.is(await list().end, 'b');
  await pass(2 * STATELESS_IDLE_MS);
  const alone = list();
  await pass(2_000);
  assert.is(alone.subscription.closed, false, 'the other instance opens a conversation first');
  await pass(2_000);
  assert.is(await alone.end, 'b');
  await pass(2 * STATELESS_IDLE_MS);
  assert.is(harness.statelessConversations.owners.length, 0);
});

test('a call waits its whole time for a program, or for the instance that it names', async () => {
  harness.setPolicy({ callTimeoutMs: 4_000 });
  for (const id of ['a', 'b']) await harness.add(id, { fields: STDIO });
  for (const id of ['a', 'b']) harness.freeze(id);
  await harness.add('c', { fields: HTTP });
  harness.freeze('c');
  const calls = [
    harness.callStateless(modernCall(), { profile: ASKABLE, instanceId: 'c' }),
    harness.callStateless(modernCall(), { profile: ASKABLE, instanceId: 'a' }),
  ];
  await pass(3_999);
  const found = calls.map(({ subscription }) => subscription.closed);
  assert.equal(found, [false, false]);
  mock.timers.tick(1);
  for (const { end } of calls) assert.equal(errorView(await end), TOO_LATE);
});

test.run();

/** Calls of tools that reached an instance in its own conversation, and in each of the others. */
function toolCalls(id: string): number[] {
  return [harness.backend(id), ...harness.conversations(id)].map(
    ({ asked }) => asked.filter((method) => method === 'tools/call').length,
  );
}

function received(index: number): string[] {
  return (harness.conversations('a')[index]?.exchanges ?? []).map(({ request: { method, params } }) =>
    method === 'logging/setLevel' ? `${method} ${params?.level}` : method,
  );
}
