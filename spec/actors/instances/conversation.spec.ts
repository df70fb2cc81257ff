// The life of one conversation: opened, used, left alone, ended from either side.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { Conversation } from '../../../src/actors/instances/conversation.ts';
import { NO_SUBSCRIBER } from '../../../src/actors/stateless/stateless-upstream.ts';
import { backendUnavailable } from '../../../src/domain/error-catalogue.ts';
import { hasCode } from '../../../src/domain/errors.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import type { Upstream } from '../../../src/transports/transport.ts';
import { ScriptedTransport } from '../../helpers/scripted-transport.ts';
import { suite } from '../../helpers/suite.ts';
import { alarm, settled } from '../stateless/stateless-harness.ts';

const test = suite('a conversation');

test.before.each(() => mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'] }));
test.after.each(() => mock.timers.reset());

test('retires when it was idle for a minute, counted from its last use', async () => {
  const { conversation, upstream, told } = await open();
  conversation.acquire();
  mock.timers.tick(3 * LIMITS.statelessIdleMs);
  conversation.release();
  mock.timers.tick(LIMITS.statelessIdleMs - 1);
  assert.equal(told, []);
  mock.timers.tick(1);
  await settled();
  assert.equal([told, upstream.closings, conversation.isFree], [['retired', 'gone'], 1, false]);
});

test('retires when its backend ends it, or breaks its word', async () => {
  for (const end of ['lose', 'breakClosed'] as const) {
    const { upstream, told } = await open();
    if (end === 'lose') upstream.lose();
    else upstream.breakClosed(new Error('a fault'));
    await settled();
    assert.equal(told, ['retired', 'gone']);
  }
});

test('is gone when it could not be opened', async () => {
  const { conversation, opening, told } = start();
  opening.reject(backendUnavailable('connection refused', { delivered: 'no' }));
  await settled();
  assert.equal([told, conversation.isFree], [['retired', 'gone'], false]);
});

test('is none where the backend keeps none for a single client', async () => {
  const { conversation, opening, told } = start();
  opening.resolve(undefined);
  assert.is(await conversation.opening, undefined);
  assert.is(
    hasCode(await conversation.opened.catch((thrown: unknown) => thrown), 'BACKEND_UNAVAILABLE'),
    true,
  );
  assert.equal(told, ['retired', 'gone']);
});

test('waits until a log level is set, and never raises it again', async () => {
  const { conversation, upstream } = await open();
  const first = conversation.requireLogLevel('error');
  assert.is(conversation.requireLogLevel('error'), first);
  await settled();
  upstream.last.result();
  await first;
  assert.is(conversation.requireLogLevel('alert'), undefined);
  assert.ok(conversation.requireLogLevel('debug') !== undefined);
  await settled();
  assert.equal(
    upstream.exchanges.map(({ request }) => request.params),
    [{ level: 'error' }, { level: 'debug' }],
  );
});

test('waits five seconds for that, and takes a refusal for an answer', async () => {
  const { conversation, upstream } = await open();
  const late = conversation.requireLogLevel('error');
  await settled();
  mock.timers.tick(5_000);
  await late;
  assert.is(upstream.last.isCancelled, true);
  const refused = conversation.requireLogLevel('info');
  await settled();
  upstream.last.refuse(-32601);
  await refused;
});

test('refuses what the backend asks in the middle of a request of the gateway itself', async () => {
  const { conversation, upstream } = await open();
  const answer = conversation.ask({ method: 'resources/subscribe' }, 1_000);
  await settled();
  upstream.last.ask('roots/list');
  assert.equal(upstream.last.replies, [NO_SUBSCRIBER]);
  mock.timers.tick(1_000);
  const failure = await answer.catch((thrown: unknown) => thrown);
  assert.is(hasCode(failure, 'BACKEND_TIMEOUT'), true);
});

test.run();

function start(isExclusive = false, idleMs: number = LIMITS.statelessIdleMs) {
  const opening = Promise.withResolvers<Upstream | undefined>();
  const signals: AbortSignal[] = [];
  const told: string[] = [];
  const clock = { now: () => Date.now(), alarm };
  const conversation = new Conversation(clock, {
    ownerId: 'ann',
    isExclusive,
    forwardsMessages: false,
    idleMs,
    open: (signal) => {
      signals.push(signal);
      return opening.promise;
    },
    listener: {
      opened: () => undefined,
      ended: () => undefined,
      retired: () => told.push('retired'),
      gone: () => told.push('gone'),
    },
  });
  return {
    conversation,
    opening,
    signals,
    told,
    upstream: new ScriptedTransport({ capabilities: { logging: {} } }),
  };
}

async function open() {
  const started = start();
  started.opening.resolve(started.upstream);
  await settled();
  return started;
}
