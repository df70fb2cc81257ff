// When the streams of many conversations begin and end: a few in a turn. What each remembers is in legacy-conversation.spec.ts.

import { mock } from 'node:test';
import { NEVER } from 'rxjs';
import * as assert from 'uvu/assert';
import { shuttingDown } from '../../../src/domain/errors.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { LegacyConversations } from '../../../src/protocol/legacy/legacy-conversation.ts';
import { suite } from '../../helpers/suite.ts';
import { steadyPace } from '../../helpers/turns.ts';
import { RecordedReply } from '../recorded-reply.ts';
import { ScriptedBackends } from '../scripted-backends.ts';

const test = suite('legacy conversations');

test.before.each(() => mock.timers.enable({ apis: ['setInterval', 'Date'] }));
test.after.each(() => mock.timers.reset());

/** Conversations, and the beginning of a call in one of them. */
function setUp() {
  const backends = new ScriptedBackends();
  const conversations = new LegacyConversations(() => {}, steadyPace());
  const call = (sessionId: string) => {
    const session = backends.session(sessionId) ?? backends.add(sessionId, 'ann');
    const reply = new RecordedReply();
    const conversation = conversations.of(session);
    conversation.begin(1, conversation.post(reply, 1, '2025-11-25'), NEVER);
    return { session, reply, conversation };
  };
  return { conversations, call };
}

test('the stream of a call begins with an event id when it lasts longer than a second', () => {
  const { call } = setUp();
  const [first, short] = [call('one'), call('three')];
  first.session.instanceId = 'near';
  mock.timers.tick(400);
  const second = call('two');
  const isOpen = () => [first, second, short].map(({ reply }) => reply.opened !== undefined);
  mock.timers.tick(400);
  short.conversation.cancel(1); // its stream has an end, and no events
  assert.equal(isOpen(), [false, false, true]);
  mock.timers.tick(200);
  assert.equal([...isOpen(), first.reply.instanceId], [true, false, true, 'near']);
  mock.timers.tick(400);
  assert.equal(isOpen(), [true, true, true]);
  const events = [first, second, short].map(({ reply }) => reply.events.events);
  assert.equal(
    events.map(([event]) => event?.data),
    ['', '', undefined],
  );
  assert.is(new Set(events.map(([event]) => event?.id)).size, 3);
  mock.timers.tick(60_000);
  assert.equal(
    events.map(({ length }) => length),
    [1, 1, 0],
  );
});

test('thousands of streams begin a few in a turn', async () => {
  const { call } = setUp();
  const replies = Array.from({ length: 1_000 }, (_, n) => call(`session ${n}`).reply);
  const opened = () => replies.filter((reply) => reply.opened !== undefined).length;
  mock.timers.tick(1_000);
  assert.is(opened(), LIMITS.paceTasks);
  while (opened() < 1_000) await new Promise(setImmediate);
});

test('all of them end a few in a turn', async () => {
  const { conversations, call } = setUp();
  for (let count = 0; count < 100; count += 1) call(`${count}`);
  const sizes = [conversations.size];
  const closed = conversations.close(shuttingDown());
  while (conversations.size > 0) {
    sizes.push(conversations.size);
    await new Promise(setImmediate);
  }
  await closed;
  const drops = sizes.slice(1).map((size, turn) => (sizes[turn] ?? 0) - size);
  assert.is(Math.max(...drops), LIMITS.paceTasks);
});

test.run();
