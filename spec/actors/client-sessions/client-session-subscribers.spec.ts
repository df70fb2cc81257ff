// Listeners of a session: they stay while it moves.

import * as assert from 'uvu/assert';
import { DedicatedBinding } from '../../../src/actors/client-sessions/bindings.ts';
import { Subscribers } from '../../../src/actors/client-sessions/client-session-subscribers.ts';
import { alarmOf } from '../../../src/domain/clock.ts';
import { ScriptedTransport } from '../../helpers/scripted-transport.ts';
import { suite } from '../../helpers/suite.ts';
import { steadyPace } from '../../helpers/turns.ts';
import { SessionHarness, settled } from './client-session-harness.ts';

const alarm = alarmOf(steadyPace());

const test = suite('client session: audience');
let harness = new SessionHarness();
let told: string[] = [];
let heard: unknown[] = [];
let audience = newAudience();

test.before.each(async () => {
  harness = new SessionHarness();
  await harness.add('a');
  told = [];
  heard = [];
  audience = newAudience();
});
test.after.each(() => harness.close());

test('hears one place at a time', () => {
  listen();
  const [from, to] = [new ScriptedTransport(), new ScriptedTransport()];
  audience.attach(pinOf(from));
  audience.attach(pinOf(to));
  from.tell('from');
  to.tell('to');
  assert.equal(heard, ['to']);
  assert.equal([from.listeners, to.listeners], [0, 1]);
  audience.detach();
  assert.is(to.listeners, 0);
});

test('says that its place is lost when the conversation ends', () => {
  listen();
  const backend = new ScriptedTransport();
  audience.attach(pinOf(backend));
  backend.lose();
  assert.ok(told.includes('lost'));
});

test('says that its place is lost when the instance drains, not when it may come back', async () => {
  listen();
  const backend = new ScriptedTransport();
  audience.attach(pinOf(backend));
  harness.transport('a').lose(); // its own conversation is over, that of this session is not
  await settled();
  assert.is(told.includes('lost'), false);
  harness.ref('a').drain();
  assert.is(told.includes('lost'), true);
});

test.run();

function newAudience(): Subscribers {
  return new Subscribers({
    uris: () => new Set<string>(),
    changed: (isListening) => told.push(String(isListening)),
    lost: () => told.push('lost'),
  });
}

function listen() {
  return audience.messages$.subscribe(({ method }) => heard.push(method));
}

function pinOf(backend: ScriptedTransport): DedicatedBinding {
  return new DedicatedBinding(harness.ref('a'), backend, {
    close: () => backend.close(),
    buffersMessages: false,
    alarm,
  });
}
