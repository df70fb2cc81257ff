// What the table of sessions does by owner: no one of them takes all there are, one who may no longer use them loses all of
// his, and one who does not wait for his session leaves nothing behind.

import * as assert from 'uvu/assert';
import { LIMITS } from '../../../src/domain/limits.ts';
import { codeOf } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { ASKABLE, HTTP, PLAIN, SessionHarness, settled, simulateTime } from './client-session-harness.ts';

const test = suite('client sessions: owners');
let harness = new SessionHarness();
simulateTime(
  test,
  () => harness.close(),
  () => {
    harness = new SessionHarness({ maxSessions: 40 });
  },
);

test('gives anonymous callers all of them', async () => {
  await harness.add('a');
  for (let count = 0; count < 40; count += 1) await harness.open(PLAIN, 'anonymous');
  assert.is(await codeOf(harness.open(PLAIN, 'anonymous')), 'SESSION_LIMIT');
});

test('gives one caller the share that was set, of sessions and of processes', async () => {
  await harness.close();
  harness = new SessionHarness({ maxSessions: 40, own: { processes: 20, share: 0.5 } });
  await harness.add('a', { fields: { transport: 'stdio', command: 'serve' } });
  for (let count = 0; count < 10; count += 1) await harness.open(ASKABLE, 'ann');
  assert.is(await codeOf(harness.open(ASKABLE, 'ann')), 'QUEUE_FULL');
  for (let count = 0; count < 10; count += 1) await harness.open(PLAIN, 'ann');
  assert.is(await codeOf(harness.open(PLAIN, 'ann')), 'SESSION_LIMIT');
});

test('gives one caller all of a few', async () => {
  await harness.close();
  harness = new SessionHarness({ maxSessions: 6 });
  await harness.add('a');
  for (let count = 0; count < 6; count += 1) await harness.open(PLAIN, 'ann');
  const refusal = await harness.open(PLAIN, 'ann').catch((thrown: unknown) => thrown);
  assert.match(
    String(refusal),
    'All 6 sessions are taken (setting sessions.max)',
    'a greater share would not help',
  );
});

test('counts no session that could not be opened', async () => {
  assert.is(await codeOf(harness.open(PLAIN, 'ann')), 'NO_HEALTHY_INSTANCE');
  await harness.add('a', { fields: HTTP });
  harness.transport('a').thrownByOpenUpstream = new Error('no');
  for (let count = 0; count < 3; count += 1) await codeOf(harness.open(PLAIN, 'ann'));
  harness.transport('a').thrownByOpenUpstream = undefined;
  await harness.open(PLAIN, 'ann');
  assert.is(harness.sessions.size, 1);
});

test('gives no owner more than a quarter of the processes of an instance', async () => {
  await harness.close();
  harness = new SessionHarness();
  await harness.add('a', { fields: { transport: 'stdio', command: 'serve' } });
  const share = LIMITS.isolatedProcesses / 4;
  const sessions = [];
  for (let count = 0; count < share; count += 1) sessions.push(await harness.open(ASKABLE, 'ann'));
  assert.is(await codeOf(harness.open(ASKABLE, 'ann')), 'QUEUE_FULL');
  await harness.open(ASKABLE, 'bob');
  await harness.open(PLAIN, 'ann');
  await sessions[0]?.close();
  await harness.open(ASKABLE, 'ann');
});

test('calls off the opening of a client that went away, and frees what it held', async () => {
  await harness.add('a', { fields: HTTP });
  const signals: AbortSignal[] = [];
  harness.transport('a').openUpstream = (_, signal) => {
    signals.push(signal);
    return new Promise(() => undefined);
  };
  const client = new AbortController();
  const opening = codeOf(harness.sessions.open('t', 'ann', PLAIN, client.signal));
  await settled();
  assert.is(harness.sessions.size, 1);
  client.abort();
  assert.equal([await opening, harness.sessions.size, signals[0]?.aborted], ['SESSION_NOT_FOUND', 0, true]);
  assert.is(await codeOf(harness.sessions.open('t', 'ann', PLAIN, client.signal)), 'SESSION_NOT_FOUND');
});

test.run();
