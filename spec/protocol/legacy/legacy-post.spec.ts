// The answer to one POST: when it is written whole and when it goes on.

import * as assert from 'uvu/assert';
import { EventBudget } from '../../../src/protocol/legacy/legacy-event-log.ts';
import { LegacyPost } from '../../../src/protocol/legacy/legacy-post.ts';
import { LegacyStream } from '../../../src/protocol/legacy/legacy-stream.ts';
import { suite } from '../../helpers/suite.ts';
import { RecordedReply } from '../recorded-reply.ts';

const test = suite('legacy post');

function posted(awaited = 1, canPoll = true) {
  const reply = new RecordedReply();
  const streams: LegacyStream[] = [];
  const openStream = () => {
    const stream = new LegacyStream({ key: 'k', budget: EventBudget.ofSession(), onTaken: () => {} });
    streams.push(stream);
    return stream;
  };
  return { reply, streams, post: new LegacyPost(reply, openStream, awaited, canPoll) };
}

test('one answer and nothing else is one event, written whole', () => {
  const { reply, post, streams } = posted();
  post.answer('{"id":1}', 1);
  const found = [reply.status, reply.contentType, reply.body, streams.length];
  assert.equal(found, [200, 'text/event-stream', '{"id":1}', 0]);
});

test('one that is told by status is JSON', () => {
  const { reply, post, streams } = posted();
  post.answer('{"id":1}', 1, 404);
  const found = [reply.status, reply.contentType, reply.body, streams.length];
  assert.equal(found, [404, 'application/json', '{"id":1}', 0]);
});

test('the first who answers is named', () => {
  const { reply, post } = posted();
  post.from('a');
  post.from('b');
  assert.is(reply.instanceId, 'a');
});

test('what only matters after something else begins nothing', () => {
  const { reply, post } = posted();
  post.add('{}');
  assert.is(reply.isAnswered, false);
  post.notify('{"n":1}');
  post.add('{"n":2}');
  assert.equal(reply.events.messages, [{ n: 1 }, { n: 2 }]);
});

test('the first answer of several begins the stream', () => {
  const { reply, post } = posted(2);
  post.answer('{"id":1}', 1, 404);
  assert.equal([reply.status, reply.events.messages], [200, [{ id: 1 }]]);
  assert.is(post.ask('{"q":1}'), true);
  post.answer('{"id":2}', 2);
  assert.equal([reply.events.messages, reply.events.isEnded], [[{ id: 1 }, { q: 1 }, { id: 2 }], true]);
});

test('a batch whose last answer is left out is still answered', () => {
  const { reply, post } = posted(2);
  post.notify('{"n":1}');
  post.answer('{"id":1}', 1);
  post.skip();
  assert.equal([reply.events.messages.length, reply.events.isEnded], [2, true]);
});

test('a stream whose only answer is left out leaves nothing to come back for', () => {
  const { reply, post, streams } = posted();
  post.notify('{"n":1}');
  reply.events.unsentBytes = 9;
  post.skip();
  assert.equal([reply.events.isEnded, streams[0]?.isDone], [true, true]);
});

test('nothing but a cancelled request is a stream with nothing in it', () => {
  const { reply, post, streams } = posted();
  post.skip();
  assert.equal([reply.events.events, reply.events.isEnded, streams.length], [[], true, 0]);
});

test('a client that is gone cannot be asked, and is not answered', () => {
  const { reply, post, streams } = posted();
  reply.lose();
  assert.is(post.ask('{}'), false);
  post.notify('{}');
  post.answer('{}', 1);
  assert.equal([streams.length, streams[0]?.isDone], [1, true]);
});

test('interruptions are for those who can poll', () => {
  const [one, other] = [posted(), posted(1, false)];
  one.post.interrupted(5);
  other.post.interrupted(5);
  assert.equal([one.reply.events.isEnded, other.reply.events.isEnded], [true, false]);
  assert.equal(other.reply.events.events, []);
});

test('an interruption that comes first is the only event, a later one is one more', () => {
  const [first, later] = [posted(), posted()];
  first.post.interrupted(5);
  later.post.notify('{}');
  later.post.interrupted(5);
  assert.equal(first.reply.events.events, [{ data: '', id: 'k.0', retryMs: 5 }]);
  assert.equal(
    later.reply.events.events.map(({ id, retryMs }) => [id, retryMs]),
    [
      ['k.0', undefined],
      ['k.1', undefined],
      ['k.1', 5],
    ],
  );
});

test('who has left is not interrupted', () => {
  const { reply, post, streams } = posted();
  reply.lose();
  post.interrupted(5);
  post.interrupted(5);
  post.answer('{}', 1);
  assert.equal([streams.length, streams[0]?.isDone], [1, true]);
});

test.run();
