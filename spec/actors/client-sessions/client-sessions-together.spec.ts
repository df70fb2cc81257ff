// What happens to many sessions in the same moment: it is done a few at a time, so that nobody else waits for all of them.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import type { ClientSession } from '../../../src/actors/client-sessions/client-session.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { codeOf } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { Turns } from '../../helpers/turns.ts';
import {
  ask,
  FULL,
  HTTP,
  listenTo,
  PLAIN,
  SessionHarness,
  settled,
  simulateTime,
} from './client-session-harness.ts';

const test = suite('client sessions: together');
const MANY = 60;
const PER_TURN = 5;
let harness = new SessionHarness();
simulateTime(
  test,
  () => harness.close(),
  () => {
    harness = new SessionHarness({ perTurn: PER_TURN, policy: { sessionFailover: 'always' } });
  },
);

test('ends all sessions of an owner, and no others', async () => {
  await harness.add('a', { fields: HTTP });
  const turns = endsOf(await openAll('ann'));
  await harness.open(PLAIN, 'bob');
  await harness.sessions.endOf('ann');
  assert.equal([turns.all, turns.fullest, harness.sessions.size], [MANY, PER_TURN, 1]);
  assert.is(harness.upstreams('a').filter(({ isClosed }) => isClosed).length, MANY);
});

test('ends all when the gateway closes, those with calls after the grace', async () => {
  await harness.add('a', { fields: HTTP, script: () => undefined });
  const sessions = await openAll('ann');
  const turns = endsOf(sessions);
  for (const session of sessions.slice(0, MANY / 2)) ask(session, 'read');
  const closed = harness.sessions.closeAll(10_000);
  await turns.pass(MANY);
  assert.equal([turns.all, turns.fullest], [MANY / 2, PER_TURN]);
  mock.timers.tick(10_000);
  await closed;
  assert.equal([turns.all, turns.fullest, harness.sessions.size], [MANY, PER_TURN, 0]);
});

test('gives up openings whose time is over', async () => {
  await harness.add('a', { fields: HTTP });
  harness.transport('a').openUpstream = () => new Promise(() => undefined);
  const turns = new Turns();
  const openings = Array.from({ length: MANY }, async () => {
    const code = await codeOf(harness.open());
    turns.note();
    return code;
  });
  await settled();
  mock.timers.tick(LIMITS.handshakeMs);
  assert.equal(new Set(await Promise.all(openings)), new Set(['BACKEND_TIMEOUT']));
  assert.equal([turns.fullest, harness.sessions.size], [PER_TURN, 0]);
});

test('lets those be that stopped listening before it was their turn', async () => {
  await harness.add('a', { peer: FULL });
  const heard = (await openAll('ann')).map(listenTo);
  await harness.add('b', { peer: FULL });
  harness.ref('a').drain();
  for (const { subscription } of heard) subscription.unsubscribe();
  await new Turns().pass(MANY);
  assert.ok(moved() <= PER_TURN, `${moved()}`);
});

test.run();

async function openAll(ownerId: string): Promise<ClientSession[]> {
  const sessions = [];
  for (let count = 0; count < MANY; count += 1) sessions.push(await harness.open(PLAIN, ownerId));
  return sessions;
}

function endsOf(sessions: readonly ClientSession[]): Turns {
  const turns = new Turns();
  for (const { ended$ } of sessions) ended$.subscribe(turns.note);
  return turns;
}

function moved(): number {
  return harness.inner.events.filter(({ type }) => type === 'session.moved').length;
}
