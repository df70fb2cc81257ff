// Requests that continue at one instance, by the encrypted state of a call or the cursor of a list, and calls that wait for their client.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import type { JsonObject, JsonValue } from '../../../src/domain/json/json.ts';
import { suite } from '../../helpers/suite.ts';
import { simulateTime } from '../../helpers/time/simulated-time.ts';
import { KEY, modernHarness, outcomeOf, resultOf, SERVER_INFO } from './modern-harness.ts';

const test = suite('modern affinity');

simulateTime(test);

const call = { name: 'ask', arguments: { a: [1, { b: 2 }], c: 3 } };
const inputRequests = { who: { method: 'elicitation/create', params: { message: 'Who?' } } };
const inputResponses = { who: { action: 'accept', content: { name: 'Ada' } } };
const done = { content: [], resultType: 'complete' };

/** A call whose instance requires input; the state for the retry of the client. */
async function firstRound(harness: ReturnType<typeof modernHarness>, state = 'of a'): Promise<string> {
  const wanted = { resultType: 'input_required', inputRequests, requestState: state };
  const result = await harness.call('tools/call', call, wanted, 'a');
  assert.equal({ ...result, requestState: undefined }, { ...wanted, requestState: undefined });
  return String(result.requestState);
}

test('without a state any instance may continue, and nothing is added', async () => {
  const harness = modernHarness();
  const wanted = { resultType: 'input_required', inputRequests };
  assert.equal(await harness.call('tools/call', call, wanted), wanted);
  await harness.send('tools/call', { ...call, inputResponses });
  assert.is(harness.backends.last.options.instanceId, undefined);
  assert.equal(harness.backends.last.params.inputResponses, inputResponses);
});

test('the order of keys in the arguments, `_meta`, and the node do not matter', async () => {
  const harness = modernHarness();
  const requestState = await firstRound(harness);
  const params = { arguments: { c: 3, a: [1, { b: 2 }] }, name: 'ask', requestState };
  for (const node of [harness, modernHarness()]) {
    await node.send('tools/call', params, { meta: { progressToken: 9 } });
    assert.is(node.backends.last.params.requestState, 'of a');
    assert.is(node.backends.last.options.instanceId, 'a');
  }
});

test('a state is refused when anything else is different', async () => {
  const harness = modernHarness();
  const requestState = await firstRound(harness);
  const asked = harness.backends.exchanges.length;
  const { send } = harness;
  const retry = { ...call, requestState };
  const replies = [
    send('tools/call', { ...retry, requestState: `${requestState}-TAMPERED` }),
    send('tools/call', { ...retry, requestState: 'of a' }),
    send('tools/call', { ...retry, requestState: '' }),
    send('tools/call', { ...retry, requestState: 7 }),
    send('tools/call', { ...retry, arguments: { ...call.arguments, c: 4 } }),
    send('tools/call', { ...retry, name: 'other' }),
    send('tools/call', { ...retry, uri: 'a://b' }),
    send('prompts/get', retry),
    send('tools/call', retry, { owner: 'bob' }),
    send('tools/call', retry, { template: 'other' }),
    send('tools/call', retry, { template: undefined }),
    modernHarness(Buffer.alloc(32, 2)).send('tools/call', retry),
  ];
  for (const [index, reply] of (await Promise.all(replies)).entries()) {
    assert.is(outcomeOf(reply), '200 -32602', `${index}`);
    assert.match(JSON.stringify(reply.message), /Invalid or expired requestState/);
  }
  mock.timers.tick(60 * 60_000);
  assert.is(outcomeOf(await send('tools/call', retry)), '200 -32602');
  assert.is(harness.backends.exchanges.length, asked);
});

test('a retry whose instance was removed is refused with the advice to start again', async () => {
  const harness = modernHarness();
  const requestState = await firstRound(harness);
  harness.backends.instances = new Set(['b']);
  const reply = await harness.send('tools/call', { ...call, requestState });
  assert.is(outcomeOf(reply), '200 -32602');
  assert.match(JSON.stringify(reply.message), /gone. Start again/);
});

test('a state that is too large to encrypt is an error, not a broken round', async () => {
  const harness = modernHarness();
  const reply = await harness.send('tools/call', call);
  const wanted = { resultType: 'input_required', requestState: 'x'.repeat(70_000) };
  harness.backends.last.result(wanted);
  assert.is(outcomeOf(reply), '200 -32603');
});

test('a result with the words input_required elsewhere is unchanged', async () => {
  const harness = modernHarness();
  const reported = { ...done, structuredContent: { resultType: 'input_required', requestState: 's' } };
  assert.equal(await harness.call('tools/call', call, reported), reported);
  const odd = { resultType: 'input_required', tools: [], requestState: 's' };
  assert.equal(await harness.call('tools/list', {}, odd), odd);
});

// --- the backend is of the legacy era and asks in the middle of the call -----------------------------------------

const capabilities = { elicitation: {}, roots: {} };

/** The answer to the retry of a call that does not wait here. */
const NOT_HERE = {
  code: -32602,
  message: 'No call waits for these answers: it has continued or ended, or its node has stopped.',
  data: { reason: 'call_lost' },
};

/** Answers to both questions of an asking call. */
const ANSWERS = { 'request-1': { action: 'accept' }, 'request-2': { roots: [] } };
const retryWith = (requestState: JsonValue | undefined, inputResponses: JsonValue = ANSWERS) => ({
  ...call,
  requestState: requestState ?? '',
  inputResponses,
});

/** A call that waits for its client; what the client got. */
async function askedRound(harness: ReturnType<typeof modernHarness>): Promise<JsonObject> {
  const reply = await harness.send('tools/call', call, { capabilities });
  harness.backends.last.ask('elicitation/create', { message: 'Who?' });
  harness.backends.last.ask('roots/list');
  mock.timers.tick(60);
  return resultOf(reply);
}

test('a call whose backend asks its client waits, and continues with the retry', async () => {
  const harness = modernHarness();
  const { requestState, ...rest } = await askedRound(harness);
  const { last } = harness.backends;
  assert.equal(rest, {
    resultType: 'input_required',
    inputRequests: {
      'request-1': { method: 'elicitation/create', params: { message: 'Who?' } },
      'request-2': { method: 'roots/list', params: {} },
    },
    _meta: { [KEY.serverInfo]: SERVER_INFO },
  });
  const answers = { 'request-1': { action: 'decline' }, 'request-2': { roots: [] }, extra: {} };
  const retry = retryWith(requestState, answers);
  const reply = await harness.send('tools/call', retry, { id: 2, capabilities });
  assert.equal(last.replies, [{ result: { action: 'decline' } }, { result: { roots: [] } }]);
  last.result({ content: [] });
  assert.equal([reply.message.id, resultOf(reply).resultType], [2, 'complete']);
  assert.is(harness.backends.exchanges.length, 1);
  assert.is(harness.askingCalls.size, 0);
});

test('progress after a retry carries the token of the retry', async () => {
  const harness = modernHarness();
  const { requestState } = await askedRound(harness);
  const retry = retryWith(requestState);
  const reply = await harness.send('tools/call', retry, { capabilities, meta: { progressToken: 'new' } });
  harness.backends.last.notify('notifications/progress', { progressToken: 'old', progress: 1 });
  harness.backends.last.notify('notifications/progress', { progress: 2 });
  harness.backends.last.result({ content: [] });
  const reported = reply.events.messages.slice(0, 2).map(({ params }) => params);
  assert.equal(reported, [
    { progressToken: 'new', progress: 1 },
    { progressToken: 'new', progress: 2 },
  ]);
});

test('a question without an answer is asked again', async () => {
  const harness = modernHarness();
  const { requestState } = await askedRound(harness);
  const answers = {
    'request-1': { action: 'accept' },
    'request-2': { method: 'roots/list', result: { roots: [] } },
  };
  const retry = retryWith(requestState, answers);
  const reply = await harness.send('tools/call', retry, { capabilities });
  mock.timers.tick(60);
  const again = resultOf(reply);
  assert.equal(Object.keys(again.inputRequests ?? {}), ['request-2']);
  assert.is.not(again.requestState, requestState);
  harness.askingCalls.close();
});

test('a retry at another node is refused with the reason, and the waiting call continues', async () => {
  const harness = modernHarness();
  const { requestState } = await askedRound(harness);
  const retry = retryWith(requestState);
  const other = modernHarness();
  const elsewhere = await other.send('tools/call', retry, { capabilities });
  assert.equal([outcomeOf(elsewhere), elsewhere.message.error], ['200 -32602', NOT_HERE]);
  assert.is(other.backends.exchanges.length, 0);
  const { last } = harness.backends;
  assert.is(last.isOpen, true);
  const reply = await harness.send('tools/call', retry, { capabilities });
  reply.lose();
  assert.is(last.isCancelled, true, 'when its client leaves during the retry');
});

test('a call that is refused until its user has visited a URL continues at the same instance', async () => {
  const harness = modernHarness();
  const url = { elicitation: { url: {} } };
  const reply = await harness.send('tools/call', call, { capabilities: url });
  const visit = { mode: 'url', elicitationId: 'e', url: 'https://x/y', message: 'Log in' };
  harness.backends.last.refuse({ code: -32042, message: 'no', data: { elicitations: [visit, { url: 7 }] } });
  const { requestState, inputRequests, resultType } = resultOf(reply);
  assert.is(resultType, 'input_required');
  assert.equal(inputRequests, {
    'visit-1': {
      method: 'elicitation/create',
      params: { mode: 'url', message: 'Log in', url: 'https://x/y' },
    },
  });
  await harness.send('tools/call', { ...call, requestState: requestState ?? '' }, { capabilities: url });
  const { params, options } = harness.backends.last;
  assert.equal(['requestState' in params, options.instanceId], [false, 'a']);
  const unable = await harness.send('tools/call', call, { capabilities: { elicitation: {} } });
  harness.backends.last.refuse({ code: -32042, message: 'no', data: { elicitations: [visit] } });
  assert.is(outcomeOf(unable), '400 -32021');
});

test('a question without a declared capability is an error, and the call is cancelled', async () => {
  const harness = modernHarness();
  const reply = await harness.send('tools/call', call, { capabilities: { roots: {} } });
  const { last } = harness.backends;
  last.ask('elicitation/create', { mode: 'url' });
  last.ask('roots/list');
  mock.timers.tick(60);
  assert.is(outcomeOf(reply), '400 -32021');
  assert.equal(reply.message.error, {
    code: -32021,
    message: 'The server needs capabilities that the client did not declare: elicitation',
    data: { requiredCapabilities: { elicitation: { url: {} } } },
  });
  assert.equal([last.isOpen, last.replies.length, harness.askingCalls.size], [false, 2, 0]);
});

const page = { tools: [{ name: 'x' }], resultType: 'complete', ttlMs: 5, cacheScope: 'public' };

test('the next page comes from the instance that gave the cursor', async () => {
  for (const cursor of ['page-2', '', 'grüße']) {
    const harness = modernHarness();
    const { nextCursor, ...rest } = await harness.call(
      'tools/list',
      {},
      { ...page, nextCursor: cursor },
      'b',
    );
    assert.equal(rest, page);
    assert.match(String(nextCursor), /^sd2\./);
    await harness.send('tools/list', { cursor: nextCursor ?? '' });
    const found = [harness.backends.last.params.cursor, harness.backends.last.options.instanceId];
    assert.equal(found, [cursor, 'b']);
  }
});

test('a list without a cursor is unchanged', async () => {
  const harness = modernHarness();
  const tools = [{ name: 'nextCursor' }, { name: 'x', nextCursor: 'inside' }];
  for (const result of [page, { ...page, tools }, { ...page, nextCursor: null }]) {
    assert.equal(await harness.call('tools/list', {}, result), result);
  }
});

test('a cursor is refused for another list, owner or path, and when it was changed', async () => {
  const harness = modernHarness();
  const { nextCursor } = await harness.call('tools/list', {}, { ...page, nextCursor: 'c' });
  const cursor = String(nextCursor);
  const replies = [
    harness.send('tools/list', { cursor: '' }),
    harness.send('tools/list', { cursor: 'c' }),
    harness.send('tools/list', { cursor: 7 }),
    harness.send('tools/list', { cursor: `${cursor}A` }),
    harness.send('prompts/list', { cursor }),
    harness.send('tools/list', { cursor }, { owner: 'bob' }),
    harness.send('tools/list', { cursor }, { template: 'u' }),
  ];
  for (const reply of await Promise.all(replies)) assert.is(outcomeOf(reply), '200 -32602');
  mock.timers.tick(24 * 60 * 60_000);
  await harness.send('tools/list', { cursor });
  assert.is(harness.backends.exchanges.length, 2);
});

test('the same cursor of an instance is the same for a client, and for no other client, path or list', async () => {
  const cursorOf = async (harness = modernHarness(), nextCursor = 'c', method = 'tools/list', whose = {}) =>
    (await harness.call(method, {}, { ...page, nextCursor }, 'a', whose)).nextCursor;
  const harness = modernHarness();
  const first = await cursorOf(harness);
  assert.is(await cursorOf(harness), first);
  const others = [
    await cursorOf(harness, 'd'),
    await cursorOf(harness, 'c', 'prompts/list'),
    await cursorOf(harness, 'c', 'tools/list', { owner: 'bob' }),
    await cursorOf(harness, 'c', 'tools/list', { template: 'u' }),
  ];
  assert.is(new Set([first, ...others]).size, 5);
});

test('a cursor that is too long to encrypt ends the list', async () => {
  const harness = modernHarness();
  for (const length of [70_000, 8 * 1024]) {
    const result = await harness.call('tools/list', {}, { ...page, nextCursor: 'x'.repeat(length) });
    assert.equal(result, page);
  }
  assert.is(outcomeOf(await harness.send('tools/list', { cursor: 'x'.repeat(8 * 1024 + 1) })), '200 -32602');
});

test.run();
