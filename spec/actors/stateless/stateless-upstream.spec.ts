// What a backend says beside its calls, and to which of them it goes.

import type { Subscription } from 'rxjs';
import * as assert from 'uvu/assert';
import { NO_SUBSCRIBER, StatelessUpstream } from '../../../src/actors/stateless/stateless-upstream.ts';
import { ScriptedTransport } from '../../helpers/scripted-transport.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('a conversation of guests over HTTP');
const YES = { result: { action: 'accept' } };
let inner = new ScriptedTransport();
let upstream = new StatelessUpstream(inner);

test.before.each(() => {
  inner = new ScriptedTransport();
  upstream = new StatelessUpstream(inner);
});

test('hands a question to the call that came last, and the answer back', () => {
  const [first, second] = [call(), call()];
  inner.ask('elicitation/create');
  assert.equal([first.heard, second.heard], [[], ['elicitation/create']]);
  second.answer?.(YES);
  assert.equal(inner.replies, [YES]);
});

test('refuses a question while no call is under way', () => {
  const { subscription } = call();
  inner.last.result();
  subscription.unsubscribe();
  inner.ask('roots/list');
  assert.equal(inner.replies, [NO_SUBSCRIBER]);
});

test('hands a log line to the only call, and to none of several', () => {
  const first = call();
  inner.tell('notifications/message');
  const second = call();
  inner.tell('notifications/message');
  assert.equal([first.heard, second.heard], [['notifications/message'], []]);
});

test('reports a complete elicitation to every call, and no changes of lists or resources', () => {
  const [first, second] = [call(), call()];
  inner.tell('notifications/elicitation/complete');
  inner.tell('notifications/tools/list_changed');
  inner.tell('notifications/resources/updated');
  assert.equal(
    [first.heard, second.heard],
    [['notifications/elicitation/complete'], ['notifications/elicitation/complete']],
  );
});

test('carries calls as they are, cancels them, and is otherwise the conversation itself', async () => {
  const { heard, subscription } = call();
  inner.last.notify('notifications/progress');
  subscription.unsubscribe();
  assert.equal([heard, inner.last.isCancelled], [['notifications/progress'], true]);
  upstream.notify('notifications/roots/list_changed', {});
  assert.equal(inner.notified, [{ method: 'notifications/roots/list_changed', params: {} }]);
  assert.is(upstream.peer, inner.peer);
  assert.is(upstream.closed$, inner.closed$);
  assert.is(upstream.messages$, inner.messages$);
  await upstream.close();
  assert.is(inner.closings, 1);
});

test.run();

interface Call {
  readonly heard: string[];
  readonly subscription: Subscription;
  answer: ((reply: typeof YES) => void) | undefined;
}

function call(): Call {
  const heard: string[] = [];
  const made: { answer: Call['answer'] } = { answer: undefined };
  const subscription = upstream.exchange({ method: 'tools/call' }).subscribe((event) => {
    if (event.kind === 'request') made.answer = event.answer;
    if (event.kind === 'request' || event.kind === 'notification') heard.push(event.method);
  });
  return Object.assign(made, { heard, subscription });
}
