// What the table of sessions does by owner: no one of them takes all there are, one who may no longer use them loses all of
// his, and one who does not wait for his session leaves nothing behind.

import * as assert from 'uvu/assert';
import { LIMITS } from '../../../src/domain/limits.ts';
import { codeOf } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import {
  ASKABLE,
  ask,
  HTTP,
  hear,
  PLAIN,
  SessionHarness,
  settled,
  simulateTime,
} from './client-session-harness.ts';

const test = suite('client sessions: owners');
let stage = new SessionHarness();
simulateTime(
  test,
  () => stage.close(),
  () => {
    stage = new SessionHarness({ maxSessions: 40 });
  },
);

test('gives nobody more than a quarter of all sessions, and says whose limit it is', async () => {
  await stage.add('a');
  const first = await stage.open(PLAIN, 'ann');
  for (let count = 1; count < 10; count += 1) await stage.open(PLAIN, 'ann');
  const refusal = await stage.open(PLAIN, 'ann').catch((thrown: unknown) => thrown);
  assert.ok(refusal instanceof Error && 'code' in refusal);
  assert.is(refusal.code, 'SESSION_LIMIT');
  assert.match(refusal.message, 'You have 10 sessions already');
  await stage.open(PLAIN, 'bob');
  await first.close();
  await stage.open(PLAIN, 'ann');
});

test('gives callers that cannot be told apart all of them', async () => {
  await stage.add('a');
  for (let count = 0; count < 40; count += 1) await stage.open(PLAIN, 'anonymous');
  assert.is(await codeOf(stage.open(PLAIN, 'anonymous')), 'SESSION_LIMIT');
});

test('gives one caller the share that was set, of sessions and of processes', async () => {
  await stage.close();
  stage = new SessionHarness({ maxSessions: 40, own: { processes: 20, share: 0.5 } });
  await stage.add('a', { fields: { transport: 'stdio', command: 'serve' } });
  for (let count = 0; count < 10; count += 1) await stage.open(ASKABLE, 'ann');
  assert.is(await codeOf(stage.open(ASKABLE, 'ann')), 'QUEUE_FULL');
  for (let count = 0; count < 10; count += 1) await stage.open(PLAIN, 'ann');
  assert.is(await codeOf(stage.open(PLAIN, 'ann')), 'SESSION_LIMIT');
});

test('gives one caller all of a few', async () => {
  await stage.close();
  stage = new SessionHarness({ maxSessions: 6 });
  await stage.add('a');
  for (let count = 0; count < 6; count += 1) await stage.open(PLAIN, 'ann');
  const refusal = await stage.open(PLAIN, 'ann').catch((thrown: unknown) => thrown);
  assert.match(
    String(refusal),
    'All 6 sessions are taken (setting sessions.max)',
    'a greater share would not help',
  );
});

test('counts no session that could not be opened', async () => {
  assert.is(await codeOf(stage.open(PLAIN, 'ann')), 'NO_HEALTHY_INSTANCE');
  await stage.add('a', { fields: HTTP });
  stage.transport('a').thrownByOpenUpstream = new Error('no');
  for (let count = 0; count < 3; count += 1) await codeOf(stage.open(PLAIN, 'ann'));
  stage.transport('a').thrownByOpenUpstream = undefined;
  await stage.open(PLAIN, 'ann');
  assert.is(stage.sessions.size, 1);
});

test('gives nobody more than a quarter of the processes of an instance', async () => {
  await stage.close();
  stage = new SessionHarness();
  await stage.add('a', { fields: { transport: 'stdio', command: 'serve' } });
  const share = LIMITS.isolatedProcesses / 4;
  const sessions = [];
  for (let count = 0; count < share; count += 1) sessions.push(await stage.open(ASKABLE, 'ann'));
  assert.is(await codeOf(stage.open(ASKABLE, 'ann')), 'QUEUE_FULL');
  await stage.open(ASKABLE, 'bob');
  await stage.open(PLAIN, 'ann');
  await sessions[0]?.close();
  await stage.open(ASKABLE, 'ann');
});

test('ends all sessions of one owner, those that are being opened included', async () => {
  await stage.add('a', { fields: HTTP, script: () => undefined });
  const [theirs, other] = [await stage.open(PLAIN, 'ann'), await stage.open(PLAIN, 'bob')];
  const call = ask(theirs, 'read');
  const heard = hear(theirs);
  stage.transport('a').openUpstream = () => new Promise(() => undefined);
  const opening = codeOf(stage.open(PLAIN, 'ann'));
  await settled();
  await stage.sessions.endOf('ann');
  assert.equal([await opening, heard.isOver], ['SESSION_NOT_FOUND', true]);
  assert.instance(await call.end, Error);
  assert.equal([stage.sessions.find(theirs.id), stage.sessions.find(other.id)], [undefined, other]);
  assert.equal(
    stage.upstreams('a').map(({ isClosed }) => isClosed),
    [true, false],
  );
});

test('calls off the opening of a client that went away, and frees what it held', async () => {
  await stage.add('a', { fields: HTTP });
  const signals: AbortSignal[] = [];
  stage.transport('a').openUpstream = (_, signal) => {
    signals.push(signal);
    return new Promise(() => undefined);
  };
  const client = new AbortController();
  const opening = codeOf(stage.sessions.open('t', 'ann', PLAIN, client.signal));
  await settled();
  assert.is(stage.sessions.size, 1);
  client.abort();
  assert.equal([await opening, stage.sessions.size, signals[0]?.aborted], ['SESSION_NOT_FOUND', 0, true]);
  assert.is(await codeOf(stage.sessions.open('t', 'ann', PLAIN, client.signal)), 'SESSION_NOT_FOUND');
});

test('keeps an open session whose client went away after', async () => {
  await stage.add('a');
  const client = new AbortController();
  const session = await stage.sessions.open('t', 'ann', PLAIN, client.signal);
  client.abort();
  assert.is(stage.sessions.find(session.id), session);
});

test.run();
