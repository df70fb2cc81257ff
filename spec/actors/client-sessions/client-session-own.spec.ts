// A conversation that is a session's own: what is kept of it, and when it is closed.

import * as assert from 'uvu/assert';
import { DedicatedBinding } from '../../../src/actors/client-sessions/bindings.ts';
import type { SessionSubscriber } from '../../../src/actors/client-sessions/client-session-types.ts';
import type { ServerMessage } from '../../../src/domain/client.ts';
import { alarmOf } from '../../../src/domain/clock.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { ScriptedTransport } from '../../helpers/scripted-transport.ts';
import { suite } from '../../helpers/suite.ts';
import { steadyPace } from '../../helpers/turns.ts';
import { MODERN, SessionHarness, settled } from './client-session-harness.ts';

const alarm = alarmOf(steadyPace());

const test = suite('client session: own');
let harness = new SessionHarness();
let upstream = new ScriptedTransport();

test.before.each(async () => {
  harness = new SessionHarness();
  await harness.add('a');
  upstream = new ScriptedTransport();
});
test.after.each(() => harness.close());

test('closes with its last call after the session has moved', async () => {
  const binding = dedicatedBinding(false);
  binding.take();
  binding.take();
  binding.retire();
  binding.release();
  assert.is(upstream.isClosed, false);
  binding.release();
  assert.is(upstream.isClosed, true);
  assert.is(binding.isIntact, false);
});

test('buffers no more than it has room for, and leaves no backend waiting', () => {
  const binding = dedicatedBinding(true);
  upstream.ask('roots/list', { data: 'x'.repeat(LIMITS.undeliveredBytes / 2) });
  upstream.tell('notifications/message', { data: 'x'.repeat(LIMITS.undeliveredBytes / 2) });
  const listener = new Ear();
  binding.listen(listener);
  assert.equal([listener.heard, upstream.replies.length], [1, 1]);
});

for (const buffers of [true, false]) {
  const kind = buffers ? 'a process' : 'a session over HTTP';
  test(`tells who listens to ${kind} that it is lost`, async () => {
    const binding = dedicatedBinding(buffers);
    const listener = new Ear();
    binding.listen(listener);
    upstream.tell('notifications/message', { n: 1 });
    upstream.lose();
    assert.is(binding.isIntact, false);
    assert.equal([listener.heard, listener.losses > 0], [1, true]);
    assert.is(upstream.listeners, 0);
  });
  test(`survives that the messages of ${kind} end with an error`, async () => {
    const binding = dedicatedBinding(buffers);
    binding.listen(new Ear());
    upstream.breakMessages(new Error('broken'));
    assert.is(binding.isIntact, false);
  });
}

test('subscribes at a modern process while its client listens', async () => {
  upstream = new ScriptedTransport(MODERN);
  const binding = dedicatedBinding(true);
  assert.is(binding.setSubscribed(), undefined);
  const listener = new Ear();
  listener.uris = new Set(['x:1']);
  assert.is(binding.opening, undefined);
  const leave = binding.listen(listener);
  const opening = binding.opening;
  await settled();
  assert.equal(upstream.last.request, {
    method: 'subscriptions/listen',
    params: { notifications: { resourcesListChanged: true, resourceSubscriptions: ['x:1'] } },
  });
  const [first] = upstream.open;
  first?.notify('notifications/subscriptions/acknowledged');
  await opening;
  assert.is(binding.opening, undefined);
  first?.notify('notifications/resources/updated', { uri: 'x:1' });
  upstream.tell('notifications/message', { level: 'info' });
  const updated = { kind: 'notification', method: 'notifications/resources/updated', params: { uri: 'x:1' } };
  assert.equal([listener.heard, listener.last], [1, updated]);
  listener.uris = new Set(['x:1', 'x:2']);
  const known = binding.setSubscribed();
  await settled();
  upstream.last.notify('notifications/subscriptions/acknowledged');
  await known;
  assert.is(upstream.open.length, 1);
  leave();
  assert.equal([upstream.open.length, upstream.listeners], [0, 0]);
});

test('reports the loss of a modern process to its listener, and asks it no more', async () => {
  upstream = new ScriptedTransport(MODERN);
  const binding = dedicatedBinding(true);
  const [gone, listener] = [new Ear(), new Ear()];
  const leave = binding.listen(gone);
  binding.listen(listener);
  leave();
  await settled();
  assert.is(upstream.open.length, 1);
  upstream.lose();
  assert.equal([binding.isIntact, gone.losses, listener.losses], [false, 0, 1]);
  await settled();
  assert.is(upstream.exchanges.length, 1);
});

test.run();

function dedicatedBinding(buffersMessages: boolean): DedicatedBinding {
  const close = () => upstream.close();
  return new DedicatedBinding(harness.ref('a'), upstream, { close, buffersMessages, alarm });
}

class Ear implements SessionSubscriber {
  uris = new Set<string>();
  heard = 0;
  last: ServerMessage | undefined;
  losses = 0;
  deliver(message: ServerMessage): void {
    this.heard += 1;
    this.last = message;
  }
  lost(): void {
    this.losses += 1;
  }
}
