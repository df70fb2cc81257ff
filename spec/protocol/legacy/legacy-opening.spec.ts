// When a session stays open that a client asked for, and when it does not.

import * as assert from 'uvu/assert';
import { openSession, type SessionRequest } from '../../../src/protocol/legacy/legacy-endpoint.ts';
import { suite } from '../../helpers/suite.ts';
import { nestedTooDeeply } from '../modern/modern-harness.ts';
import { RecordedReply } from '../recorded-reply.ts';
import { PEER, ScriptedBackends } from '../scripted-backends.ts';

const test = suite('legacy opening');

const OPENER: SessionRequest = {
  id: 7,
  owner: { id: 'ann' },
  profile: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: {} },
};

function setUp() {
  const backends = new ScriptedBackends();
  const reply = new RecordedReply();
  const opened = () => openSession(OPENER, reply, backends);
  const isClosed = () => [...backends.sessions.values()].map((session) => session.isClosed);
  return { backends, reply, opened, isClosed };
}

test('the client is told its id', async () => {
  const { reply, opened, isClosed } = setUp();
  await opened();
  assert.equal([reply.headers, reply.message.id, isClosed()], [['Mcp-Session-Id', 'session-1'], 7, [false]]);
});

test('the answer names the instance, where there is one', async () => {
  const { backends, reply, opened } = setUp();
  const open = backends.openSession.bind(backends);
  backends.openSession = async (...asked) => {
    return Object.assign(await open(...asked), { instanceId: 'near' });
  };
  await opened();
  assert.is(reply.instanceId, 'near');
});

test('is called off when the client leaves, and closed when it was opened all the same', async () => {
  const { backends, reply, opened, isClosed } = setUp();
  const opening = Promise.withResolvers<void>();
  backends.opening = () => opening.promise;
  const done = opened();
  assert.equal(
    backends.signals.map((signal) => signal?.aborted),
    [false],
  );
  reply.lose();
  assert.equal(
    backends.signals.map((signal) => signal?.aborted),
    [true],
  );
  opening.resolve();
  await done;
  assert.equal(isClosed(), [true]);
});

test('is closed when the answer cannot be written', async () => {
  const { backends, reply, opened, isClosed } = setUp();
  backends.peer = { ...PEER, greeting: { ...PEER.greeting, more: nestedTooDeeply() } };
  await opened().then(
    () => assert.unreachable(),
    (error: unknown) => assert.instance(error, RangeError),
  );
  assert.equal([isClosed(), reply.isAnswered], [[true], false]);
});

test.run();
