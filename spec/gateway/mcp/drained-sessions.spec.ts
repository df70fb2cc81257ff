// Sessions of a node that is drained continue at another node. Two gateways on one store; over HTTP, the request of a session that is
// elsewhere would follow it there (spec/system/nodes/sessions/drained-sessions.spec.ts).

import * as assert from 'uvu/assert';
import { rowKeyOf } from '../../../src/actors/sessions/rows/stored-row.ts';
import { ANONYMOUS, type Principal } from '../../../src/domain/accounts/principal.ts';
import type { JsonObject } from '../../../src/domain/json/json.ts';
import { RELEASED } from '../../../src/domain/nodes/life.ts';
import type { SessionHolders } from '../../../src/domain/sessions/session-holder.ts';
import { createGateway, type Gateway } from '../../../src/gateway/gateway.ts';
import { openStore } from '../../../src/persistence/open-store.ts';
import type { Store } from '../../../src/persistence/store.ts';
import { type HttpFixture, startHttpServer } from '../../fixtures/http-server.ts';
import { becomes } from '../../helpers/eventually.ts';
import { suite } from '../../helpers/suite.ts';
import { intervalsOf, settled } from '../../helpers/time/simulated-time.ts';
import { parsed } from '../../protocol/recorded-reply.ts';
import { openSession, postTo, send } from './post.ts';

const test = suite('sessions of a drained node');
const ADA: Principal = { ...ANONYMOUS, id: 'user:ada' };
const READ = { method: 'resources/list' };
const [LIFE_A, LIFE_B] = ['life-a--', 'life-b--'];
/** The intervals between two groups of sessions that a drained node releases. */
const parts = intervalsOf(100);
let server: HttpFixture;
let store: Store;
let a: Gateway;
let b: Gateway;
/** The life that takes the sessions of `a`. */
let successor: string | undefined;

test.before.each(async () => {
  [server, store] = await Promise.all([
    startHttpServer({ answers: 'sse' }),
    openStore('sqlite://', { cwd: '.', migrations: 'apply' }),
  ]);
  successor = LIFE_B;
  a = await start('a', LIFE_A);
  await a.register('t', { id: 'one', endpoint: server.url }, { waitMs: 20_000 });
  b = await start('b', LIFE_B);
});
test.after.each(async () => {
  await Promise.all([a, b].map((gateway) => gateway.close({ graceMs: 0 })));
  await Promise.all([store.close(), server.close()]);
});

function start(nodeId: string, life: string): Promise<Gateway> {
  const decideSession: SessionHolders['decideSession'] = async (row) => {
    if (row.life === RELEASED) return { do: 'claim' };
    return row.life === life ? { do: 'recover' } : { do: 'forward', life: row.life };
  };
  const successorOf = () => successor;
  return createGateway({
    store,
    clock: parts.clock,
    node: { id: nodeId, life },
    others: { decideSession, successorOf, mayBeStoredLater: async (opener) => opener === LIFE_A },
    sessions: { recover: true },
  });
}

const call = (name: string) => ({ method: 'tools/call', params: { name, arguments: { text: 'x' } } });
const post = (gateway: Gateway, headers: object, message: JsonObject) =>
  postTo(gateway, { template: 't', headers, message, principal: ADA });
const holderOf = async (session: { readonly 'mcp-session-id': string }) =>
  (await store.sessions.read([rowKeyOf(session['mcp-session-id'])]))[0]?.life;
const isReleased = (...sessions: { readonly 'mcp-session-id': string }[]) =>
  becomes(async () => {
    parts.ring();
    return (await Promise.all(sessions.map(holderOf))).every((life) => life === RELEASED);
  }, true);

test('a session without a call is released, its stream ends, and it continues under its id at the other node', async () => {
  const [one, all] = [await openSession(a, 't', ADA), await openSession(a, undefined, ADA)];
  const listening = await send(a, 'GET', { template: 't', headers: one, principal: ADA });
  a.internals.readiness.drain();
  await isReleased(one, all);
  assert.is(listening.opened?.isEnded, true);
  assert.equal(a.sessions(), []);
  assert.is((await post(b, one, READ)).status, 200);
  const ofAll = { template: undefined, headers: all, message: READ, principal: ADA };
  assert.is((await postTo(b, ofAll)).status, 200);
  assert.equal([await holderOf(one), await holderOf(all)], [LIFE_B, LIFE_B]);
  assert.is(b.sessions().length, 2);
});

test('a session with a call is released when the call has been answered', async () => {
  const [session, idle] = [await openSession(a, 't', ADA), await openSession(a, 't', ADA)];
  const goOn = server.stop();
  const answered = post(a, session, call('echo'));
  await becomes(() => server.count('tools/call'), 1);
  a.internals.readiness.drain();
  await isReleased(idle);
  assert.is(await holderOf(session), LIFE_A);
  goOn();
  assert.is((await answered).answer.error, undefined);
  await isReleased(session);
});

test('a session that may not move stays, and is served', async () => {
  await a.register('u', { id: 'two', endpoint: server.url }, { waitMs: 20_000 });
  await a.changeTemplate('u', { session: 'isolated', session_failover: 'never' });
  const [stays, moves] = [await openSession(a, 'u', ADA), await openSession(a, 't', ADA)];
  a.internals.readiness.drain();
  await isReleased(moves);
  const read = { template: 'u', headers: stays, message: READ, principal: ADA };
  assert.is((await postTo(a, read)).status, 200);
  assert.is(await holderOf(stays), LIFE_A);
});

test('nothing is released while no other node takes sessions', async () => {
  const session = await openSession(a, 't', ADA);
  successor = undefined;
  a.internals.readiness.drain();
  parts.ring(3);
  assert.is((await post(a, session, READ)).status, 200);
  successor = LIFE_B;
  await isReleased(session);
});

test('requests that still come to the drained node go where the session is, and to a node that takes it', async () => {
  const [moved, free] = [await openSession(a, 't', ADA), await openSession(a, 't', ADA)];
  a.internals.readiness.drain();
  await isReleased(moved, free);
  await post(b, moved, READ);
  for (const session of [moved, free])
    assert.is((await post(a, session, READ)).status, 500, 'over HTTP it is sent there');
  successor = undefined;
  assert.equal((await post(a, free, READ)).status, 503);
});

test('a node that is resumed takes its sessions again, with their streams', async () => {
  const session = await openSession(a, 't', ADA);
  const before = await send(a, 'GET', { template: 't', headers: session, principal: ADA });
  a.internals.readiness.drain();
  await isReleased(session);
  a.internals.readiness.resume();
  assert.is((await post(a, session, READ)).status, 200);
  assert.is(await holderOf(session), LIFE_A);
  const lastEventId = before.opened?.events[0]?.id ?? '';
  const headers = { ...session, 'last-event-id': lastEventId };
  const { opened } = await send(a, 'GET', { template: 't', headers, principal: ADA });
  const seen = opened?.events.flatMap(({ data }) => (data.length > 0 ? [parsed(data).method] : []));
  const missed = ['tools', 'prompts', 'resources'].map((list) => `notifications/${list}/list_changed`);
  assert.equal([opened?.isEnded, seen], [false, missed]);
  parts.ring(3);
  await settled();
  assert.is(await holderOf(session), LIFE_A, 'it is not released again');
});

test('sessions are released over five seconds', async () => {
  const sessions = await Promise.all(Array.from({ length: 100 }, () => openSession(a, 't', ADA)));
  a.internals.readiness.drain();
  parts.ring(10);
  await becomes(() => a.sessions().length, 80);
  parts.ring(39);
  await becomes(() => a.sessions().length, 2);
  await isReleased(...sessions);
});

test('a session that cannot move is refused by the others while its node still waits for the calls of others', async () => {
  await a.changeTemplate('t', { session: 'isolated' });
  const [lost, busy] = [await openSession(a, 't', ADA), await openSession(a, 't', ADA)];
  assert.is((await post(a, lost, call('count'))).status, 200);
  server.failNext('never', { method: 'tools/call' });
  const underWay = post(a, busy, call('count'));
  await becomes(() => server.count('tools/call'), 2);
  const closing = a.close({ graceMs: 3_000 });
  await isReleased(lost);
  assert.equal([(await post(b, lost, READ)).status, a.sessions().length], [404, 1]);
  await Promise.all([closing, underWay]);
});

test.run();
