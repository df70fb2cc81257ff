// Sessions of clients continue in the next life of their node: what continues, for which requests, and what is stored for it.

import * as assert from 'uvu/assert';
import { Gateway } from '../../../src/gateway/gateway.ts';
import { becomes, until } from '../../helpers/eventually.ts';
import { suite } from '../../helpers/suite.ts';
import { alarmsOf } from '../../helpers/time/simulated-time.ts';
import { openSession, postTo, send } from './post.ts';
import { ADA, call, EVE, post, READ, refusal, StoredSessions, UNSAFE } from './stored-sessions.ts';

const test = suite('sessions of an earlier life');
const stored = new StoredSessions(test);

test('the next request works under the same id, in a new conversation with the state of the client', async () => {
  const first = await stored.start();
  await stored.registered(first);
  const session = await openSession(first, 't', ADA);
  assert.match(session['mcp-session-id'], /^[\w-]{51}$/);
  await post(first, session, { method: 'logging/setLevel', params: { level: 'info' } });
  await becomes(() => stored.operations.includes('update'), true);
  const next = await stored.start();
  const { status, answer } = await post(next, session, READ);
  assert.equal([status, answer.error], [200, undefined]);
  const [last] = [...stored.server.sessions.values()].reverse();
  assert.ok(last !== undefined);
  assert.is(stored.server.requests.filter(({ message }) => message?.method === 'logging/setLevel').length, 2);
  assert.equal(
    next.sessions().map(({ ownerId, bindings }) => [ownerId, bindings.length]),
    [['user:ada', 1]],
  );
});

test('a node that is drained continues none, until it is resumed', async () => {
  const first = await stored.start();
  await stored.registered(first);
  const session = await openSession(first, 't', ADA);
  const next = await stored.start();
  next.internals.readiness.drain();
  stored.operations = [];
  const refused = await post(next, session, READ);
  assert.equal(
    [refused.status, Object(Object(refused.answer.error).data).error_code],
    [503, 'NODE_UNAVAILABLE'],
  );
  assert.equal(stored.operations, ['read'], 'it is not claimed');
  next.internals.readiness.resume();
  assert.is((await post(next, session, READ)).status, 200);
});

test('requests of one session share one reading and one recovery', async () => {
  const first = await stored.start();
  await stored.registered(first);
  const session = await openSession(first, 't', ADA);
  const next = await stored.start();
  stored.operations = [];
  const answers = await Promise.all(
    Array.from({ length: 5 }, (_, n) => post(next, session, { ...READ, id: n })),
  );
  assert.equal(
    answers.map(({ status }) => status),
    [200, 200, 200, 200, 200],
  );
  // The claim gives the row as it is then: its former owner may have changed it after the reading.
  assert.equal(stored.operations.slice(0, 2), ['read', 'claim']);
  assert.is(stored.operations.filter((name) => name === 'read').length, 1);
  assert.is(next.sessions().length, 1);
});

test('a call costs no operation of the store', async () => {
  const gateway = await stored.start();
  await stored.registered(gateway);
  const session = await openSession(gateway, 't', ADA);
  await post(gateway, session, UNSAFE);
  assert.equal(stored.operations, ['insert', 'update']);
  for (let n = 0; n < 500; n += 1) {
    await post(gateway, session, call('echo'));
    await post(gateway, session, UNSAFE);
  }
  await gateway.close(); // writes what is left to be written
  assert.equal(stored.operations, ['insert', 'update'], 'the next life refuses it by its row');
});

test('the mark of a call that is not safe to repeat is written before the call leaves', async () => {
  const first = await stored.start();
  await stored.registered(first);
  const session = await openSession(first, 't', ADA);
  stored.operations = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  stored.blocked = promise;
  const answered = Promise.all([1, 2].map((id) => post(first, session, { ...UNSAFE, id })));
  await until(() => stored.operations.length !== 0);
  assert.equal([stored.operations, stored.server.count('tools/call')], [['update'], 0]);
  resolve();
  await answered;
  assert.is(stored.server.count('tools/call'), 2);
  await post(first, session, UNSAFE);
  assert.equal(stored.operations, ['update']);
  const next = await stored.start();
  const { status } = await post(next, session, READ);
  assert.is(status, 404);
  assert.is((await post(next, session, READ)).status, 404);
  assert.is(stored.server.count('resources/list'), 0);
});

test('with session_failover "always" an unsafe call writes nothing first, and the session continues', async () => {
  const first = await stored.start();
  await stored.registered(first, { session_failover: 'always' });
  const session = await openSession(first, 't', ADA);
  stored.blocked = new Promise(() => undefined);
  await post(first, session, UNSAFE);
  stored.blocked = undefined;
  const next = await stored.start();
  assert.is((await post(next, session, READ)).status, 200);
});

test('a session that its client deleted is over in the next life, also when its row is deleted late', async () => {
  const first = await stored.start();
  await stored.registered(first);
  const session = await openSession(first, 't', ADA);
  const { status } = await send(first, 'DELETE', { template: 't', headers: session, principal: ADA });
  assert.is(status, 200);
  const next = await stored.start();
  assert.is((await post(next, session, READ)).status, 404);
  // A recovered one, too: its id does not name the present life.
  const second = await openSession(first, 't', ADA);
  assert.is((await post(next, second, READ)).status, 200);
  stored.blocked = refusal();
  await send(next, 'DELETE', { template: 't', headers: second, principal: ADA });
  stored.blocked = undefined;
  assert.is((await post(next, second, READ)).status, 404);
});

test('another principal, another path and unknown ids get 404, and take nothing from the owner', async () => {
  const first = await stored.start();
  await stored.registered(first);
  await first.register('u', { id: 'b', endpoint: stored.server.url }, { waitMs: 20_000 });
  const session = await openSession(first, 't', ADA);
  const next = await stored.start();
  stored.operations = [];
  assert.is((await post(next, session, READ, EVE)).status, 404);
  assert.is((await post(next, session, READ, EVE)).status, 404);
  const other = { template: 'u', headers: session, message: READ, principal: ADA };
  assert.equal(stored.operations, ['read']);
  assert.is((await postTo(next, { ...other, principal: EVE })).status, 404);
  const guessed = `${session['mcp-session-id'].slice(0, 50)}${session['mcp-session-id'].endsWith('x') ? 'y' : 'x'}`;
  for (const id of [guessed, guessed, guessed.slice(1), 'x'])
    assert.is((await post(next, { 'mcp-session-id': id }, READ)).status, 404, id);
  assert.equal(stored.operations, ['read', 'read']);
  assert.is((await post(next, session, READ)).status, 200);
});

test('a request of its owner at another path leaves a session as it is', async () => {
  const first = await stored.start();
  await stored.registered(first);
  await first.register('u', { id: 'b', endpoint: stored.server.url }, { waitMs: 20_000 });
  const session = await openSession(first, 't', ADA);
  const next = await stored.start();
  const elsewhere = { template: 'u', headers: session, message: READ, principal: ADA };
  assert.is((await postTo(next, elsewhere)).status, 404);
  assert.is((await post(next, session, READ)).status, 200);
});

test('a session with a deleted template is over, and its row is deleted', async () => {
  const first = await stored.start();
  await stored.registered(first);
  const session = await openSession(first, 't', ADA);
  const next = await stored.start();
  await next.deregister('t', 'a');
  await next.deleteTemplate('t').catch(() => undefined);
  const { status } = await post(next, session, READ);
  assert.is(status, 404);
});

test('without room the session is not continued, and no other one ends for it', async () => {
  const first = await stored.start();
  await stored.registered(first);
  const [one, two] = [await openSession(first, 't', ADA), await openSession(first, 't', ADA)];
  const next = await stored.start({ sessions: { max: 1 } });
  assert.is((await post(next, one, READ)).status, 200);
  const { status } = await post(next, two, READ);
  assert.is(status, 503);
  await send(next, 'DELETE', { template: 't', headers: one, principal: ADA });
  assert.is((await post(next, two, READ)).status, 200);
});

test('a session of a life that is not known yet is not given up', async () => {
  const first = await stored.start();
  await stored.registered(first);
  const session = await openSession(first, 't', ADA);
  let isKnown = false;
  const next = await stored.start({
    others: {
      decideSession: async () => (isKnown ? { do: 'claim' } : { do: 'end', reason: 'unknown life' }),
    },
  });
  assert.is.not((await post(next, session, READ)).status, 404); // over HTTP, the request follows the session
  isKnown = true;
  assert.is((await post(next, session, READ)).status, 200);
});

test('sessions that are not continued within the idle time are deleted', async () => {
  const first = await stored.start();
  await stored.registered(first);
  const session = await openSession(first, 't', ADA);
  assert.is(await stored.sessions.trim({ node: 'n', life: 'other---' }, 1), 0);
  assert.is(await stored.sessions.trim({ node: 'n', life: 'other---' }, 0), 1);
  const next = await stored.start();
  assert.is((await post(next, session, READ)).status, 404);
});

test('a gateway that is closed while it loads deletes none later', async () => {
  let trims = 0;
  const trim = async () => {
    trims += 1;
    return 0;
  };
  const { clock, ring } = alarmsOf(10_000);
  const sessions = { ...stored.lives.store.sessions, trim };
  const gateway = new Gateway(
    { ...stored.lives.store, sessions },
    { node: { id: 'n' }, sessions: { recover: true }, clock },
  );
  await gateway.internals.load(() => gateway.close({ graceMs: 0 }));
  ring();
  assert.is(trims, 0);
});

test('a database that is away fails no request of a client', async () => {
  const gateway = await stored.start();
  await stored.registered(gateway);
  stored.blocked = refusal();
  const session = await openSession(gateway, 't', ADA);
  assert.is((await post(gateway, session, UNSAFE)).status, 200);
  assert.is((await send(gateway, 'DELETE', { template: 't', headers: session, principal: ADA })).status, 200);
});

test('with a store in memory, without a node, or without the option nothing is stored', async () => {
  for (const options of [{ node: {} }, { sessions: { recover: false } }]) {
    const gateway = await stored.start(options);
    await stored.registered(gateway);
    const session = await openSession(gateway, 't', ADA);
    await post(gateway, session, UNSAFE);
    await send(gateway, 'DELETE', { template: 't', headers: session, principal: ADA });
    await gateway.close();
  }
  assert.equal(stored.operations, []);
});

test.run();
