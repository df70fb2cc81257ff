// The transport of an instance that is used with the account of each user: which answer each user gets, before and after connecting.

import { mock } from 'node:test';
import { Subject } from 'rxjs';
import * as assert from 'uvu/assert';
import { ConnectionRequired } from '../../src/domain/calls/connection-required.ts';
import type { ExchangeRequest } from '../../src/domain/calls/exchange.ts';
import type { ExchangeEvent } from '../../src/domain/calls/exchange-event.ts';
import { connectionRequired } from '../../src/domain/errors/backend-errors.ts';
import { GatewayError } from '../../src/domain/errors/errors.ts';
import { JsonText } from '../../src/domain/json/json.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import { openUserTransport } from '../../src/transports/user-transport.ts';
import { HANDSHAKE, MODERN_HANDSHAKE, ScriptedTransport } from '../helpers/backends/scripted-transport.ts';
import { suite } from '../helpers/suite.ts';
import { simulatedClock, simulateTime } from '../helpers/time/simulated-time.ts';
import { passTurns } from '../helpers/time/turns.ts';

const test = suite('user transport');
simulateTime(test);
const ADA = 'grant:g1@ada';
const BOB = 'user:bob';
const CALL = { method: 'tools/call', params: { name: 'whoami', arguments: {} } };
const LIST = { method: 'tools/list' };
const ACCEPTED = { ...CALL.params, inputResponses: { 'visit-1': { action: 'accept' } } };
const capabilities = { tools: {} };

/** The users of this set have connections; each gets a legacy server, unless `handshake` says otherwise. */
async function opened(connected: Set<string> = new Set(), handshake = { ...HANDSHAKE, capabilities }) {
  const servers = new Map<string, ScriptedTransport>();
  const openings: string[] = [];
  const notices: unknown[] = [];
  const changed$ = new Subject<string>();
  const waiting: (() => void)[] = [];
  const transport = await openUserTransport({
    definition: { template: 'notes', id: 'one', transport: 'http' },
    open: async (userId) => {
      openings.push(userId);
      if (!connected.has(userId))
        throw connectionRequired({ template: 'notes', instanceId: 'one', who: 'user', why: 'none' });
      const server = new ScriptedTransport(handshake);
      server.onExchange = (exchange) =>
        exchange.result({ tools: [{ name: `tool of ${userId}` }], for: userId, cacheScope: 'public' });
      servers.set(userId, server);
      return server;
    },
    probe: async () => undefined,
    changed$,
    connecting: {
      linkFor: async (userId) => ({
        url: `https://gateway.example/connections/${userId}`,
        elicitationId: `e-${userId}`,
      }),
      whenConnected: (_, withinMs) =>
        new Promise((resolve) => {
          waiting.push(resolve);
          simulatedClock.alarm(withinMs, resolve);
        }),
    },
    onNotice: (userId, { method }) => notices.push([userId, method]),
    clock: simulatedClock,
  });
  const ask = (request: ExchangeRequest, caller?: string) => {
    const events: ExchangeEvent[] = [];
    const failures: unknown[] = [];
    transport
      .exchange({ ...request, ...(caller === undefined ? {} : { callerId: caller }) })
      .subscribe({ next: (event) => events.push(event), error: (thrown) => failures.push(thrown) });
    return { events, failures };
  };
  const answer = async (request: ExchangeRequest, caller?: string) => {
    const { events, failures } = ask(request, caller);
    await passTurns(20);
    assert.equal(failures, []);
    return answerIn(events.at(-1));
  };
  return { changed$, transport, connected, servers, openings, notices, waiting, ask, answer };
}

function answerIn(event: ExchangeEvent | undefined) {
  if (event?.kind === 'result') return Object(event.result.value);
  return Object(event?.kind === 'error' ? event.error : event);
}

test('each user has a transport, and lists are those of one user', async () => {
  const { answer, servers, openings } = await opened(new Set(['ada', 'bob']));
  const [ada, bob] = [await answer(LIST, ADA), await answer(LIST, BOB)];
  assert.equal([ada.for, ada.cacheScope], ['ada', 'private']);
  assert.equal([bob.for, bob.cacheScope], ['bob', 'private']);
  assert.is((await answer(CALL, 'grant:g2@ada')).for, 'ada');
  assert.equal(openings, ['ada', 'bob']);
  assert.equal(servers.get('ada')?.asked, ['tools/list', 'tools/call']);
  assert.equal(servers.get('bob')?.asked, ['tools/list']);
});

test('holds a request back while the transport of its user is opened', async () => {
  const { answer, servers } = await opened(new Set(['ada']));
  const seen: unknown[] = [];
  const held = (isHeld: boolean) => seen.push([isHeld, servers.get('ada')?.asked.length]);
  await answer({ ...CALL, held }, ADA);
  await answer({ ...CALL, held }, BOB);
  assert.equal(seen, [
    [true, 0],
    [false, 0],
    [true, 1],
    [false, 1],
  ]);
});

for (const [written, shown] of [
  [
    '{"tools":[{"name":"a","n":1.0}],"ttlMs":5}',
    '{"tools":[{"name":"a","n":1.0}],"ttlMs":5,"cacheScope":"private"}',
  ],
  [
    '{"cache\\u0053cope":"public","ttlMs":1e99,"cacheScope":"public"}',
    '{"ttlMs":600000,"cacheScope":"private"}',
  ],
  [' { } ', ' { "cacheScope":"private"}'],
  ['[]', '[]'],
] as const) {
  test(`the list ${written} of a user keeps its other bytes`, async () => {
    const { ask, answer, servers } = await opened(new Set(['ada']));
    await answer(LIST, ADA);
    const server = servers.get('ada');
    assert.ok(server);
    server.onExchange = (exchange) => exchange.end({ kind: 'result', result: JsonText.ofText(written) });
    const { events } = ask(LIST, ADA);
    await passTurns(20);
    const [event] = events;
    assert.is(event?.kind === 'result' && event.result.text, shown);
  });
}

test('a server may have a tool with the name `connect` of its own, whatever the size of its answers', async () => {
  const { answer, servers } = await opened(new Set(['ada']));
  const connect = { method: 'tools/call', params: { name: 'connect' } };
  await answer(connect, ADA);
  const server = servers.get('ada');
  assert.ok(server);
  const textOf = async (value: object) => {
    server.onExchange = (exchange) => exchange.result(value);
    return (await answer(connect, ADA)).content[0].text;
  };
  const long = 'x'.repeat(LIMITS.parsedMessageBytes);
  for (const text of ['short', long])
    assert.is(await textOf({ content: [{ type: 'text', text, isError: true }] }), text);
  for (const text of ['no such tool', long])
    assert.match(await textOf({ content: [{ type: 'text', text }], isError: true }), 'connected');
});

test('a user without a connection sees one tool, and every call leads to the address', async () => {
  const { answer, connected } = await opened();
  const { tools, cacheScope, ttlMs } = await answer(LIST, ADA);
  assert.equal(
    [tools.map(({ name }: { name: string }) => name), cacheScope, ttlMs],
    [['connect'], 'private', 0],
  );
  assert.equal((await answer({ method: 'prompts/list' }, ADA)).prompts, []);
  const required = await answer(CALL, ADA);
  assert.instance(required, ConnectionRequired);
  assert.is(required.url, 'https://gateway.example/connections/ada');
  const told = await answer({ method: 'tools/call', params: { name: 'connect' } }, ADA);
  assert.match(told.content[0].text, 'https://gateway.example/connections/ada');
  connected.add('ada');
  assert.is((await answer(CALL, ADA)).for, 'ada');
});

test('an API key, a subject of another issuer and an unknown caller have no account', async () => {
  const { answer, openings } = await opened(new Set(['ada']));
  for (const caller of ['key:k1', 'issuer:abc', 'anonymous'])
    for (const request of [CALL, LIST]) {
      const refused = await answer(request, caller);
      assert.instance(refused, ConnectionRequired);
      assert.is(refused.url, undefined);
    }
  assert.equal(openings, []);
});

test('a retry waits until the account is connected, with signs of life', async () => {
  const { ask, connected, waiting, servers } = await opened();
  const { events } = ask({ ...CALL, params: ACCEPTED }, ADA);
  await passTurns(20);
  mock.timers.tick(12_000);
  assert.equal(
    events.map(({ kind }) => kind),
    ['notification', 'notification'],
  );
  connected.add('ada');
  waiting[0]?.();
  await passTurns(20);
  assert.is(answerIn(events.at(-1)).for, 'ada');
  assert.equal(servers.get('ada')?.last.request.params, CALL.params);
  mock.timers.tick(60_000);
  assert.is(events.length, 3);
});

test('a retry that waits when the instance ends was not sent', async () => {
  const { ask, transport } = await opened();
  const { failures } = ask({ ...CALL, params: ACCEPTED }, ADA);
  await passTurns(20);
  await transport.close();
  assert.equal(
    failures.map((thrown) => thrown instanceof GatewayError && [thrown.code, thrown.delivered]),
    [['BACKEND_UNAVAILABLE', 'no']],
  );
});

test('a retry that comes too early gets the same again, and one that was declined does not', async () => {
  const { ask, answer } = await opened();
  const { events } = ask({ ...CALL, params: ACCEPTED }, ADA);
  await passTurns(20);
  mock.timers.tick(60_000);
  await passTurns(20);
  assert.is(answerIn(events.at(-1)).url, 'https://gateway.example/connections/ada');
  const declined = { ...CALL.params, inputResponses: { 'visit-1': { action: 'decline' } } };
  const refused = await answer({ ...CALL, params: declined }, ADA);
  assert.equal([refused.url, refused instanceof ConnectionRequired], [undefined, true]);
});

test('a connection that ends in the middle of a call leads to the address again', async () => {
  const { answer, servers } = await opened(new Set(['ada']));
  await answer(CALL, ADA);
  const server = servers.get('ada');
  if (server !== undefined)
    server.onExchange = (exchange) =>
      exchange.fail(connectionRequired({ template: 'notes', instanceId: 'one', who: 'user', why: 'ended' }));
  assert.is((await answer(CALL, ADA)).url, 'https://gateway.example/connections/ada');
  assert.is(server?.isClosed, true);
});

test('another connection of the user gets another transport', async () => {
  const { answer, changed$, servers, openings } = await opened(new Set(['ada']));
  await answer(CALL, ADA);
  const first = servers.get('ada');
  changed$.next('ada');
  await answer(CALL, ADA);
  assert.equal([first?.isClosed, openings], [true, ['ada', 'ada']]);
});

test('a call that ends with its earlier connection leaves the present one as it is', async () => {
  const { ask, answer, changed$, servers, openings } = await opened(new Set(['ada']));
  await answer(LIST, ADA);
  const first = servers.get('ada');
  if (first !== undefined) first.onExchange = () => {};
  ask(CALL, ADA);
  await passTurns(20);
  changed$.next('ada');
  await answer(CALL, ADA);
  first?.last.fail(connectionRequired({ template: 'notes', instanceId: 'one', who: 'user', why: 'ended' }));
  await answer(CALL, ADA);
  assert.equal([first?.isClosed, servers.get('ada')?.isClosed], [true, false]);
  assert.equal(openings, ['ada', 'ada']);
});

test('a probe needs no account, and there is no list of all users', async () => {
  const { answer, openings, notices, servers } = await opened(new Set(['ada']), {
    ...MODERN_HANDSHAKE,
    capabilities,
  });
  assert.equal(await answer({ method: 'server/discover' }), {});
  assert.is((await answer(LIST)).code, -32601);
  assert.equal(openings, []);
  await answer(CALL, ADA);
  servers.get('ada')?.sendNotification('notifications/tools/list_changed');
  assert.equal(notices, [['ada', 'notifications/tools/list_changed']]);
});

test('transports without calls are closed after ten minutes, and all with the instance', async () => {
  const { answer, servers, transport } = await opened(new Set(['ada', 'bob']));
  await answer(CALL, ADA);
  mock.timers.tick(9 * 60_000);
  await answer(CALL, BOB);
  mock.timers.tick(2 * 60_000);
  await passTurns(20);
  assert.equal([servers.get('ada')?.isClosed, servers.get('bob')?.isClosed], [true, false]);
  await transport.close();
  assert.is(servers.get('bob')?.isClosed, true);
});

test.run();
