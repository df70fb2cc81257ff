// Sessions of clients continue in the next life of their node. A life ends here as with `kill -9`: the gateway of the next one opens
// the store while the one before still runs, and that one is not asked any more.

import { setImmediate as turn } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { rowKeyOf } from '../../../src/actors/sessions/stored-row.ts';
import { ANONYMOUS, type Principal } from '../../../src/domain/accounts/account.ts';
import { databaseUnavailable } from '../../../src/domain/errors/gateway-errors.ts';
import type { JsonObject } from '../../../src/domain/json/json.ts';
import { createGateway, Gateway } from '../../../src/gateway/gateway.ts';
import type { GatewayOptions } from '../../../src/gateway/gateway-types.ts';
import { openStore } from '../../../src/persistence/open.ts';
import type { SessionStore, Store } from '../../../src/persistence/store.ts';
import { WATCHED_URI } from '../../fixtures/everything/resources.ts';
import { startEverything } from '../../fixtures/everything-server.ts';
import { type HttpFixture, startHttpServer } from '../../fixtures/http-server.ts';
import { becomes, until } from '../../helpers/eventually.ts';
import { suite } from '../../helpers/suite.ts';
import { alarmsOf } from '../../helpers/time/simulated-time.ts';
import { parsed } from '../../protocol/recorded-reply.ts';
import { begin, initialize, openSession, postTo, send } from './post.ts';

const test = suite('sessions of an earlier life');
const ADA: Principal = { ...ANONYMOUS, id: 'user:ada' };
const EVE: Principal = { ...ANONYMOUS, id: 'user:eve' };
let server: HttpFixture;
let opened: Store;
let store: Store;
/** The operations on sessions, without trims. */
let operations: string[];
let gateways: Gateway[];
/** What each operation on sessions waits for. */
let blocked: Promise<void> | undefined;

test.before.each(async () => {
  [server, opened] = await Promise.all([
    startHttpServer({ answers: 'sse' }),
    openStore('sqlite://', { cwd: '.', migrations: 'apply' }),
  ]);
  operations = [];
  gateways = [];
  blocked = undefined;
  store = { ...opened, sessions: watched(opened.sessions) };
});
test.after.each(async () => {
  await Promise.all(gateways.map((gateway) => gateway.close({ graceMs: 0 })));
  await Promise.all([opened.close(), server.close()]);
});

/** The answer of a database that is away. */
function refusal(): Promise<void> {
  const refused = Promise.reject(databaseUnavailable(new Error('away')));
  refused.catch(() => undefined); // nothing may have asked yet
  return refused;
}

function watched(sessions: SessionStore): SessionStore {
  const watching =
    <Input extends unknown[], Output>(name: string, operation: (...input: Input) => Promise<Output>) =>
    async (...input: Input) => {
      operations.push(name);
      await blocked;
      return operation(...input);
    };
  return {
    insert: watching('insert', sessions.insert),
    update: watching('update', sessions.update),
    read: watching('read', sessions.read),
    claim: watching('claim', sessions.claim),
    delete: watching('delete', sessions.delete),
    trim: sessions.trim,
  };
}

/** The next life of the node. */
async function start(options: GatewayOptions = {}): Promise<Gateway> {
  const sessions = { recover: true, ...options.sessions };
  const gateway = await createGateway({ store, node: { id: 'n' }, ...options, sessions });
  gateways.push(gateway);
  return gateway;
}

const registered = async (gateway: Gateway, load: object = {}) => {
  await gateway.register('t', { id: 'a', endpoint: server.url }, { waitMs: 20_000 });
  await gateway.changeTemplate('t', load);
};
const call = (name: string) => ({ method: 'tools/call', params: { name, arguments: { text: 'x' } } });
const UNSAFE = call('count');
const post = (gateway: Gateway, headers: object, message: JsonObject, principal = ADA) =>
  postTo(gateway, { template: 't', headers, message, principal });
const READ = { method: 'resources/list' };

test('the next request works under the same id, in a new conversation with the state of the client', async () => {
  const first = await start();
  await registered(first);
  const session = await openSession(first, 't', ADA);
  assert.match(session['mcp-session-id'], /^[\w-]{51}$/);
  await post(first, session, { method: 'logging/setLevel', params: { level: 'info' } });
  await becomes(() => operations.includes('update'), true);
  const next = await start();
  const { status, answer } = await post(next, session, READ);
  assert.equal([status, answer.error], [200, undefined]);
  const [last] = [...server.sessions.values()].reverse();
  assert.ok(last !== undefined);
  assert.is(server.requests.filter(({ message }) => message?.method === 'logging/setLevel').length, 2);
  assert.equal(
    next.sessions().map(({ ownerId, bindings }) => [ownerId, bindings.length]),
    [['user:ada', 1]],
  );
});

test('a client that initializes while the gateway stops and its database hangs is refused within seconds', async () => {
  const gateway = await start();
  await registered(gateway);
  const { promise, resolve } = Promise.withResolvers<void>();
  blocked = promise;
  const opening = post(gateway, {}, initialize());
  await becomes(() => operations.includes('insert'), true);
  const closing = gateway.close({ graceMs: 10_000 });
  const { status, answer } = await opening;
  assert.equal([status, Object(Object(answer.error).data).error_code], [503, 'SHUTTING_DOWN']);
  await closing;
  resolve();
});

test('a call that waits for the mark of its session when the gateway stops is refused as not delivered', async () => {
  const gateway = await start();
  await registered(gateway);
  const session = await openSession(gateway, 't', ADA);
  const { promise, resolve } = Promise.withResolvers<void>();
  blocked = promise;
  const calling = post(gateway, session, UNSAFE);
  await becomes(() => operations.includes('update'), true);
  const closing = gateway.close({ graceMs: 10_000 });
  setTimeout(resolve, 300);
  const { data } = Object((await calling).answer.error);
  assert.equal(
    [data.error_code, data.delivered, data.retry_after_seconds],
    ['BACKEND_UNAVAILABLE', undefined, 1],
  );
  await closing;
});

test('a node that is drained continues none, until it is resumed', async () => {
  const first = await start();
  await registered(first);
  const session = await openSession(first, 't', ADA);
  const next = await start();
  next.internals.readiness.drain();
  operations = [];
  const refused = await post(next, session, READ);
  assert.equal(
    [refused.status, Object(Object(refused.answer.error).data).error_code],
    [503, 'NODE_UNAVAILABLE'],
  );
  assert.equal(operations, ['read'], 'it is not claimed');
  next.internals.readiness.resume();
  assert.is((await post(next, session, READ)).status, 200);
});

test('requests of one session share one reading and one recovery', async () => {
  const first = await start();
  await registered(first);
  const session = await openSession(first, 't', ADA);
  const next = await start();
  operations = [];
  const answers = await Promise.all(
    Array.from({ length: 5 }, (_, n) => post(next, session, { ...READ, id: n })),
  );
  assert.equal(
    answers.map(({ status }) => status),
    [200, 200, 200, 200, 200],
  );
  // The claim gives the row as it is then: its former owner may have changed it after the reading.
  assert.equal(operations.slice(0, 2), ['read', 'claim']);
  assert.is(operations.filter((name) => name === 'read').length, 1);
  assert.is(next.sessions().length, 1);
});

test('a call costs no operation of the store', async () => {
  const gateway = await start();
  await registered(gateway);
  const session = await openSession(gateway, 't', ADA);
  await post(gateway, session, UNSAFE);
  assert.equal(operations, ['insert', 'update']);
  for (let n = 0; n < 500; n += 1) {
    await post(gateway, session, call('echo'));
    await post(gateway, session, UNSAFE);
  }
  await gateway.close(); // writes what is left to be written
  assert.equal(operations, ['insert', 'update', 'delete']);
});

test('the mark of a call that is not safe to repeat is written before the call leaves', async () => {
  const first = await start();
  await registered(first);
  const session = await openSession(first, 't', ADA);
  operations = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  blocked = promise;
  const answered = Promise.all([1, 2].map((id) => post(first, session, { ...UNSAFE, id })));
  await until(() => operations.length !== 0);
  assert.equal([operations, server.count('tools/call')], [['update'], 0]);
  resolve();
  await answered;
  assert.is(server.count('tools/call'), 2);
  await post(first, session, UNSAFE);
  assert.equal(operations, ['update']);
  const next = await start();
  const { status } = await post(next, session, READ);
  assert.is(status, 404);
  assert.is((await post(next, session, READ)).status, 404);
  assert.is(server.count('resources/list'), 0);
});

test('with session_failover "always" an unsafe call writes nothing first, and the session continues', async () => {
  const first = await start();
  await registered(first, { session_failover: 'always' });
  const session = await openSession(first, 't', ADA);
  blocked = new Promise(() => undefined);
  await post(first, session, UNSAFE);
  blocked = undefined;
  const next = await start();
  assert.is((await post(next, session, READ)).status, 200);
});

test('a stream of before ends with an error for its request, and an answer to a question of before is dropped', async () => {
  const first = await start();
  await registered(first, { session_failover: 'always' });
  const session = await openSession(first, 't', ADA);
  const posted = begin(first, 'POST', {
    ...{ template: 't', headers: session, principal: ADA },
    message: { id: 'call-7', ...call('log') },
  });
  await becomes(() => (posted.reply.opened?.events.length ?? 0) > 0, true);
  const eventId = posted.reply.opened?.events[0]?.id ?? '';
  const next = await start();
  const get = (id: string) =>
    send(next, 'GET', { template: 't', headers: { ...session, 'last-event-id': id }, principal: ADA });
  const resumed = await get(eventId);
  const { id, error } = resumed.message;
  assert.equal([resumed.status, id, Object(error).data.delivered], [200, 'call-7', 'unknown']);
  assert.is((await get('1-abc.1')).status, 400, 'it names no request');
  const own = eventId.replace(/^1-/, '2-');
  assert.is((await get(own)).status, 400, 'a stream of the present life, which is not stored');
  const later = await send(next, 'GET', { template: 't', headers: session, principal: ADA });
  assert.equal([eventId.slice(0, 2), later.opened?.events[0]?.id?.slice(0, 6)], ['1-', '2-get-']);
  const answered = await send(next, 'POST', {
    ...{ template: 't', headers: session, principal: ADA },
    message: { id: 123, result: {} },
  });
  assert.is(answered.status, 202);
});

test('an answer to a question of before answers no question of the present life', async () => {
  const first = await start();
  await registered(first, { session_failover: 'always' });
  const headers = await openSession(first, 't', ADA, { elicitation: {} });
  const asking = async (gateway: Gateway) => {
    const params = { name: 'ask', arguments: { method: 'elicitation/create' } };
    const message = { method: 'tools/call', params };
    const { reply } = begin(gateway, 'POST', { template: 't', headers, principal: ADA, message });
    const texts = () => (reply.opened?.events ?? []).map(({ data }) => String(data));
    await becomes(() => texts().some((text) => text.includes('elicitation/create')), true);
    const question = texts().find((text) => text.includes('elicitation/create')) ?? '';
    return { id: parsed(question).id, reply };
  };
  const before = await asking(first);
  const next = await start();
  const present = await asking(next);
  const answer = async (id: JsonObject[string]) => {
    const message = { id, result: { action: 'decline' } };
    return (await send(next, 'POST', { template: 't', headers, principal: ADA, message })).status;
  };
  assert.equal([await answer(before.id), present.reply.opened?.isEnded], [202, false]);
  assert.is(await answer(present.id), 202);
  await becomes(() => present.reply.opened?.isEnded, true);
});

test('a stream of before ends with an error for its request, also when its session is over', async () => {
  const first = await start();
  await registered(first);
  const session = await openSession(first, 't', ADA);
  await post(first, session, UNSAFE);
  const posted = begin(first, 'POST', {
    ...{ template: 't', headers: session, principal: ADA },
    message: { id: 'call-7', ...call('log') },
  });
  await becomes(() => (posted.reply.opened?.events.length ?? 0) > 0, true);
  const lastEventId = posted.reply.opened?.events[0]?.id ?? '';
  const get = (gateway: Gateway, id: string | undefined) => {
    const headers = id === undefined ? session : { ...session, 'last-event-id': id };
    return send(gateway, 'GET', { template: 't', headers, principal: ADA });
  };
  const next = await start();
  for (let n = 0; n < 2; n += 1) {
    const resumed = await get(next, lastEventId);
    const { id, error } = resumed.message;
    assert.equal([resumed.status, id, Object(error).data.delivered], [200, 'call-7', 'unknown']);
  }
  for (const other of [undefined, '1-abc.1']) assert.is((await get(next, other)).status, 404, other);
  await send(first, 'DELETE', { template: 't', headers: session, principal: ADA });
  assert.is((await get(first, lastEventId)).status, 404, 'a session of the present life');
});

test('the stream for messages continues from now, first with what the client may have missed', async () => {
  const everything = await startEverything({ era: 'legacy' });
  try {
    const first = await start();
    await first.register('t', { id: 'a', endpoint: everything.url }, { waitMs: 20_000 });
    const session = await openSession(first, 't', ADA);
    operations = [];
    const { answer } = await post(first, session, {
      method: 'resources/subscribe',
      params: { uri: WATCHED_URI },
    });
    assert.equal(answer.result, {});
    const before = await send(first, 'GET', { template: 't', headers: session, principal: ADA });
    const eventId = before.opened?.events[0]?.id ?? '';
    await becomes(() => operations.includes('update'), true);
    const next = await start();
    const headers = { ...session, 'last-event-id': eventId };
    const { opened } = await send(next, 'GET', { template: 't', headers, principal: ADA });
    const seen = () => opened?.events.flatMap(({ data }) => (data.length > 0 ? [parsed(data).method] : []));
    const missed = [
      'notifications/tools/list_changed',
      'notifications/prompts/list_changed',
      'notifications/resources/list_changed',
      'notifications/resources/updated',
    ];
    assert.equal(seen(), missed);
    const subscribedAgain = [...missed, 'notifications/resources/updated'];
    await becomes(seen, subscribedAgain);
    await post(next, session, {
      method: 'tools/call',
      params: { name: 'test_trigger_resource_update', arguments: {} },
    });
    await becomes(seen, [...subscribedAgain, 'notifications/resources/updated']);
  } finally {
    await everything.close();
  }
});

test('a session that its client deleted is over in the next life, also when its row is deleted late', async () => {
  const first = await start();
  await registered(first);
  const session = await openSession(first, 't', ADA);
  const { status } = await send(first, 'DELETE', { template: 't', headers: session, principal: ADA });
  assert.is(status, 200);
  const next = await start();
  assert.is((await post(next, session, READ)).status, 404);
  // A recovered one, too: its id does not name the present life.
  const second = await openSession(first, 't', ADA);
  assert.is((await post(next, second, READ)).status, 200);
  blocked = refusal();
  await send(next, 'DELETE', { template: 't', headers: second, principal: ADA });
  blocked = undefined;
  assert.is((await post(next, second, READ)).status, 404);
});

test('another principal, another path and unknown ids get 404, and take nothing from the owner', async () => {
  const first = await start();
  await registered(first);
  await first.register('u', { id: 'b', endpoint: server.url }, { waitMs: 20_000 });
  const session = await openSession(first, 't', ADA);
  const next = await start();
  operations = [];
  assert.is((await post(next, session, READ, EVE)).status, 404);
  assert.is((await post(next, session, READ, EVE)).status, 404);
  const other = { template: 'u', headers: session, message: READ, principal: ADA };
  assert.equal(operations, ['read']);
  assert.is((await postTo(next, { ...other, principal: EVE })).status, 404);
  const guessed = `${session['mcp-session-id'].slice(0, 50)}${session['mcp-session-id'].endsWith('x') ? 'y' : 'x'}`;
  for (const id of [guessed, guessed, guessed.slice(1), 'x'])
    assert.is((await post(next, { 'mcp-session-id': id }, READ)).status, 404, id);
  assert.equal(operations, ['read', 'read']);
  assert.is((await post(next, session, READ)).status, 200);
});

test('a request of its owner at another path leaves a session as it is', async () => {
  const first = await start();
  await registered(first);
  await first.register('u', { id: 'b', endpoint: server.url }, { waitMs: 20_000 });
  const session = await openSession(first, 't', ADA);
  const next = await start();
  const elsewhere = { template: 'u', headers: session, message: READ, principal: ADA };
  assert.is((await postTo(next, elsewhere)).status, 404);
  assert.is((await post(next, session, READ)).status, 200);
});

test('a session with a deleted template is over, and its row is deleted', async () => {
  const first = await start();
  await registered(first);
  const session = await openSession(first, 't', ADA);
  const next = await start();
  await next.deregister('t', 'a');
  await next.deleteTemplate('t').catch(() => undefined);
  const { status } = await post(next, session, READ);
  assert.is(status, 404);
});

test('without room the session is not continued, and no other one ends for it', async () => {
  const first = await start();
  await registered(first);
  const [one, two] = [await openSession(first, 't', ADA), await openSession(first, 't', ADA)];
  const next = await start({ sessions: { max: 1 } });
  assert.is((await post(next, one, READ)).status, 200);
  const { status } = await post(next, two, READ);
  assert.is(status, 503);
  await send(next, 'DELETE', { template: 't', headers: one, principal: ADA });
  assert.is((await post(next, two, READ)).status, 200);
});

test('a stop keeps the rows of sessions that can be continued, and deletes the others', async () => {
  const first = await start();
  await registered(first);
  const [kept, unsafe] = [await openSession(first, 't', ADA), await openSession(first, 't', ADA)];
  await post(first, unsafe, UNSAFE);
  await first.close({ graceMs: 0 });
  const next = await start();
  operations = [];
  assert.is((await post(next, unsafe, READ)).status, 404);
  assert.equal(operations, ['read']);
  assert.is((await post(next, kept, READ)).status, 200);
});

test('a session that its client deletes while the gateway stops is over in the next life', async () => {
  const first = await start();
  await registered(first, { session_failover: 'always' });
  const session = await openSession(first, 't', ADA);
  server.failNext('never', { method: 'tools/call' });
  const underWay = begin(first, 'POST', {
    ...{ template: 't', headers: session, principal: ADA },
    message: call('echo'),
  });
  await becomes(() => server.count('tools/call'), 1);
  const closed = first.close({ graceMs: 20_000 });
  const unknown = { 'mcp-session-id': `${'x'.repeat(51)}` };
  await until(async () => (await post(first, unknown, READ)).status === 503);
  const { status } = await send(first, 'DELETE', { template: 't', headers: session, principal: ADA });
  assert.is(status, 200);
  await Promise.all([closed, underWay.handled]);
  assert.is((await post(await start(), session, READ)).status, 404);
});

test('in the next life of a running gateway sessions continue from their rows, which stay', async () => {
  const gateway = await start();
  await registered(gateway);
  const former = [await openSession(gateway, 't', ADA), await openSession(gateway, undefined, ADA)];
  await gateway.internals.beginLife('life-2--');
  assert.equal(gateway.sessions(), []);
  for (const [headers, template] of [[former[0], 't'] as const, [former[1], undefined] as const]) {
    const read = { template, headers: headers ?? {}, message: READ, principal: ADA };
    assert.is((await postTo(gateway, read)).status, 200);
  }
  const later = await openSession(gateway, 't', ADA);
  assert.match(later['mcp-session-id'], /^life-2--/);
  await gateway.close({ graceMs: 0 }); // writes what is left to be written
  const keys = [...former, later].map((headers) => rowKeyOf(headers['mcp-session-id']));
  const owners = (await opened.sessions.read(keys)).map(({ life }) => life);
  assert.equal(owners, ['life-2--', 'life-2--', 'life-2--']);
});

test('in the next life of a running gateway a session that is being opened is opened', async () => {
  const gateway = await start({ node: { id: 'n', life: 'life-1--' } });
  await registered(gateway);
  const opening = openSession(gateway, 't', ADA);
  await turn();
  await gateway.internals.beginLife('life-2--');
  const session = await opening;
  assert.match(session['mcp-session-id'], /^life-1--/); // it began before
  assert.is((await post(gateway, session, READ)).status, 200);
  const [row] = await opened.sessions.read([rowKeyOf(session['mcp-session-id'])]);
  assert.is(row?.life, 'life-2--');
});

test('in the next life of a running gateway a session continues whose row was not written before', async () => {
  const gateway = await start();
  await registered(gateway);
  const { promise, resolve } = Promise.withResolvers<void>();
  blocked = promise;
  const first = openSession(gateway, 't', ADA);
  await becomes(() => operations.includes('insert'), true);
  const second = openSession(gateway, 't', ADA); // its row waits until the first one is written
  await becomes(() => gateway.sessions().length, 2);
  await gateway.internals.beginLife('life-2--');
  resolve();
  for (const session of [await first, await second])
    assert.is((await post(gateway, session, READ)).status, 200);
});

test('a call under way in a session that another node continues is not told that the session is over', async () => {
  const gateway = await start();
  await registered(gateway);
  const session = await openSession(gateway, 't', ADA);
  server.failNext('never', { method: 'tools/call' });
  const underWay = post(gateway, session, UNSAFE);
  await becomes(() => server.count('tools/call') > 0, true);
  await gateway.internals.beginLife('life-2--');
  const { status, answer } = await underWay;
  const { error_code: code, delivered } = Object(Object(answer.error).data);
  assert.equal([status, code, delivered], [200, 'NODE_UNAVAILABLE', 'unknown']);
});

test('a session of a life that is not known yet is not given up', async () => {
  const first = await start();
  await registered(first);
  const session = await openSession(first, 't', ADA);
  let isKnown = false;
  const next = await start({
    others: {
      decideSession: async () => (isKnown ? { do: 'claim' } : { do: 'end', reason: 'unknown life' }),
    },
  });
  assert.is.not((await post(next, session, READ)).status, 404); // over HTTP, the request follows the session
  isKnown = true;
  assert.is((await post(next, session, READ)).status, 200);
});

test('sessions that are not continued within the idle time are deleted', async () => {
  const first = await start();
  await registered(first);
  const session = await openSession(first, 't', ADA);
  assert.is(await opened.sessions.trim({ node: 'n', life: 'other---' }, 1), 0);
  assert.is(await opened.sessions.trim({ node: 'n', life: 'other---' }, 0), 1);
  const next = await start();
  assert.is((await post(next, session, READ)).status, 404);
});

test('a gateway that is closed while it loads deletes none later', async () => {
  let trims = 0;
  const trim = async () => {
    trims += 1;
    return 0;
  };
  const { clock, ring } = alarmsOf(10_000);
  const sessions = { ...store.sessions, trim };
  const gateway = new Gateway(
    { ...store, sessions },
    { node: { id: 'n' }, sessions: { recover: true }, clock },
  );
  await gateway.internals.load(() => gateway.close({ graceMs: 0 }));
  ring();
  assert.is(trims, 0);
});

test('a database that is away fails no request of a client', async () => {
  const gateway = await start();
  await registered(gateway);
  blocked = refusal();
  const session = await openSession(gateway, 't', ADA);
  assert.is((await post(gateway, session, UNSAFE)).status, 200);
  assert.is((await send(gateway, 'DELETE', { template: 't', headers: session, principal: ADA })).status, 200);
});

test('with a store in memory, without a node, or without the option nothing is stored', async () => {
  for (const options of [{ node: {} }, { sessions: { recover: false } }]) {
    const gateway = await start(options);
    await registered(gateway);
    const session = await openSession(gateway, 't', ADA);
    await post(gateway, session, UNSAFE);
    await send(gateway, 'DELETE', { template: 't', headers: session, principal: ADA });
    await gateway.close();
  }
  assert.equal(operations, []);
});

test.run();
