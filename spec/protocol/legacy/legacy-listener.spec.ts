// The stream of a GET. How it plays together with calls is in legacy-conversation.spec.ts.

import * as assert from 'uvu/assert';
import { EventBudget } from '../../../src/protocol/legacy/legacy-event-log.ts';
import { isListenersKey, LegacyListener } from '../../../src/protocol/legacy/legacy-listener.ts';
import { positionOf } from '../../../src/protocol/legacy/legacy-stream.ts';
import { RpcFailure } from '../../../src/protocol/rpc.ts';
import { suite } from '../../helpers/suite.ts';
import { RecordedReply } from '../recorded-reply.ts';

const test = suite('legacy listener');

function setUp() {
  const state = { holds: 0, keys: 0, asked: new Set<number>() };
  const listener = new LegacyListener({
    canPoll: true,
    budget: EventBudget.ofSession(),
    onTaken: () => {},
    nextKey: () => {
      state.keys += 1;
      return `${state.keys}`;
    },
    hold: () => {
      state.holds += 1;
      return () => {
        state.holds -= 1;
      };
    },
    isPending: (question) => state.asked.has(question),
  });
  const open = (after?: string) => {
    const reply = new RecordedReply();
    listener.open(reply, after === undefined ? undefined : positionOf(after));
    return reply;
  };
  return { state, listener, open };
}

test('its keys are told from those of calls', () => {
  const { open } = setUp();
  const key = positionOf(open().events.lastEventId)?.key ?? '';
  assert.equal([isListenersKey(key), isListenersKey('1a')], [true, false]);
});

test('a second one beside it is refused, whatever event it names', () => {
  const { open, state } = setUp();
  const first = open();
  for (const after of [undefined, 'get-77.1']) {
    assert.throws(
      () => open(after),
      (thrown: unknown) => thrown instanceof RpcFailure && thrown.status === 409,
    );
  }
  assert.equal([first.events.isEnded, state.holds], [false, 1]);
});

test('the same one again replaces a connection that hangs', () => {
  const { open, state } = setUp();
  const first = open();
  const second = open(first.events.lastEventId);
  assert.equal([first.events.isEnded, second.events.isEnded, state.holds], [true, false, 1]);
  first.lose();
  assert.is(state.holds, 1);
  second.lose();
  assert.is(state.holds, 0);
});

test('what waits comes with the next stream, but for questions that are settled', () => {
  const { listener, open, state } = setUp();
  state.asked.add(2);
  listener.store({ message: '{"q":1}', question: 1 });
  listener.store({ message: '{"q":2}', question: 2 });
  listener.notify('{"n":1}');
  assert.is(listener.hasWaiting, true);
  assert.equal(open().events.messages, [{ q: 2 }, { n: 1 }]);
  assert.is(listener.hasWaiting, false);
});

test('asks only while it is open', () => {
  const { listener, open } = setUp();
  assert.is(listener.ask('{}'), false);
  const reply = open();
  assert.is(listener.ask('{}'), true);
  reply.lose();
  assert.is(listener.ask('{}'), false);
});

test('closing ends it and forgets what waits', () => {
  const { listener, open, state } = setUp();
  const reply = open();
  reply.lose();
  listener.notify('{}');
  listener.close();
  assert.equal([listener.isOpen, listener.hasWaiting, state.holds], [false, false, 0]);
});

test.run();
