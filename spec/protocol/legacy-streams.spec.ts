// The streams of one session's calls: found by their events, and forgotten.

import * as assert from 'uvu/assert';
import { EventBudget } from '../../src/protocol/legacy-event-log.ts';
import { LegacyStreams } from '../../src/protocol/legacy-streams.ts';
import { suite } from '../helpers/suite.ts';
import { RecordedReply } from './recorded-reply.ts';

const test = suite('legacy streams');

function staged() {
  let last = 0;
  const budget = EventBudget.ofSession();
  const nextKey = () => {
    last += 1;
    return `${last}`;
  };
  const streams = new LegacyStreams({ budget, nextKey, onTaken: () => {} });
  const begin = () => {
    const reply = new RecordedReply();
    const stream = streams.open();
    stream.begin(reply, true);
    stream.send('{}');
    return { reply, stream };
  };
  return { streams, budget, begin };
}

test('are found by key', () => {
  const { streams, begin } = staged();
  const [first, second] = [begin(), begin()];
  assert.is(streams.find({ key: second.stream.key, number: 7 }), second.stream);
  assert.is(streams.find({ key: first.stream.key, number: 0 }), first.stream);
  assert.is(streams.find({ key: '9', number: 0 }), undefined);
});

test('those that were taken are pruned, those that are open or missed are not', () => {
  const { streams, begin } = staged();
  const [taken, , missed] = [begin(), begin(), begin()];
  taken.stream.finish();
  missed.reply.lose();
  missed.stream.finish();
  streams.prune();
  assert.equal([streams.size, streams.find({ key: taken.stream.key, number: 0 })], [2, undefined]);
  streams.expire(Date.now() + 59_000);
  assert.is(streams.size, 2);
  streams.expire(Date.now() + 61_000);
  assert.is(streams.size, 1);
});

test('a lost one whose call goes on is kept as long as that takes', () => {
  const { streams, begin } = staged();
  begin().reply.lose();
  streams.expire(Date.now() + 3_600_000);
  assert.is(streams.size, 1);
});

test('closing ends them all and holds nothing', () => {
  const { streams, budget, begin } = staged();
  const [{ reply }] = [begin(), begin()];
  streams.close();
  assert.equal([streams.size, budget.bytes, reply.events.isEnded], [0, 0, true]);
});

test.run();
