// The streams of one session's calls: found by their events, and forgotten.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { EventBudget } from '../../../src/protocol/legacy/legacy-event-log.ts';
import { LegacyStreams } from '../../../src/protocol/legacy/legacy-stream.ts';
import { suite } from '../../helpers/suite.ts';
import { RecordedReply } from '../recorded-reply.ts';

const test = suite('legacy streams');

const MIB = 1024 * 1024;

test.before.each(() => mock.timers.enable({ apis: ['Date'], now: 1_000_000 }));
test.after.each(() => mock.timers.reset());

function setUp() {
  let last = 0;
  const budget = EventBudget.ofSession();
  const nextKey = () => {
    last += 1;
    return `${last}`;
  };
  const streams = new LegacyStreams({ budget, nextKey, onTaken: () => {} });
  const begin = (said = '{}') => {
    const reply = new RecordedReply();
    const stream = streams.open();
    stream.begin(reply, true);
    stream.send(said);
    return { reply, stream };
  };
  /** One that ended and was taken. */
  const take = (said?: string) => {
    const { stream } = begin(said);
    stream.finish();
    streams.checkTaken();
    return stream.key;
  };
  /** What a client that comes back to the beginning of a stream finds; undefined when it is told that it is gone. */
  const resume = (key: string) => {
    const reply = new RecordedReply();
    return streams.resume(reply, { key, number: 0 }) ? reply.events : undefined;
  };
  return { streams, budget, begin, take, resume };
}

test('are found by key', () => {
  const { streams, begin } = setUp();
  const [first, second] = [begin(), begin()];
  const reply = new RecordedReply();
  assert.is(streams.resume(reply, { key: second.stream.key, number: 7 }), true);
  assert.equal([first.reply.events.isEnded, second.reply.events.isEnded], [false, true]);
  assert.is(streams.resume(new RecordedReply(), { key: '9', number: 0 }), false);
});

test('those that were missed are kept for a minute, those that are open as long as that takes', () => {
  const { streams, begin } = setUp();
  const [, missed] = [begin(), begin()];
  missed.reply.lose();
  missed.stream.finish();
  streams.expire(Date.now() + 59_000);
  assert.is(streams.size, 2);
  streams.expire(Date.now() + 61_000);
  assert.is(streams.size, 1);
});

test('those that were taken are kept for 15 s: their client may not have them', () => {
  const { streams, take, resume } = setUp();
  const key = take('{"a":1}');
  streams.expire(Date.now() + 14_999);
  const events = resume(key);
  assert.equal([events?.messages, events?.isEnded], [[{ a: 1 }], true]);
  streams.checkTaken();
  streams.expire(Date.now() + 15_000);
  assert.equal([streams.size, resume(key)], [0, undefined]);
});

test('those that are taken slowly are so from the end of that on', () => {
  const { streams, begin, resume } = setUp();
  const { reply, stream } = begin();
  reply.events.unsentBytes = 10;
  stream.finish();
  mock.timers.tick(20_000);
  streams.expire(Date.now());
  reply.events.unsentBytes = 0;
  streams.expire(Date.now());
  streams.expire(Date.now() + 14_999);
  assert.is(resume(stream.key)?.isEnded, true);
});

test('one whose connection turns out to have broken off was missed, and does not give way', () => {
  const { streams, budget, begin, resume } = setUp();
  const { reply, stream } = begin();
  stream.finish();
  streams.checkTaken();
  assert.is(budget.spares, 1);
  reply.lose();
  assert.is(budget.spares, 0);
  streams.expire(Date.now() + 59_000);
  assert.is(resume(stream.key)?.messages.length, 1);
});

test('one that is resumed in vain was missed', () => {
  const { streams, budget, take, resume } = setUp();
  const key = take();
  const gone = new RecordedReply();
  gone.lose();
  streams.resume(gone, { key, number: 0 });
  streams.checkTaken();
  assert.is(budget.spares, 0);
  streams.expire(Date.now() + 59_000);
  assert.is(resume(key)?.messages.length, 1);
});

test('one whose client was told no event to come back with is forgotten as soon as it was taken', () => {
  const { streams, budget } = setUp();
  const [one, two] = [streams.open(), streams.open()];
  for (const stream of [one, two]) stream.begin(new RecordedReply(), false);
  one.answer('{}', 1, true);
  two.notify('{}');
  two.answer('{}', 1, true);
  streams.checkTaken();
  assert.equal([one.isDone, two.isDone, streams.size, budget.spares], [true, false, 1, 1]);
});

test('those that were taken give way to what is not with its client yet, oldest first', () => {
  const { streams, budget, begin, take, resume } = setUp();
  const texts = Array.from({ length: 4 }, (_, index) => `"${index}${'x'.repeat(MIB / 4 - 10)}"`);
  const [oldest = '', second = ''] = texts.map((text) => take(text));
  const waiting = [1, 2, 3].map(() => begin());
  for (const { reply, stream } of waiting) {
    reply.lose();
    stream.answer(`"${'y'.repeat(MIB - 100)}"`, 1, true);
  }
  const { reply, stream } = begin();
  stream.answer(`"${'z'.repeat(MIB / 4)}"`, 1, true);
  assert.equal([resume(oldest), resume(second)?.messages.length], [undefined, 1]);
  assert.equal(
    waiting.map((one) => String(resume(one.stream.key)?.messages.at(-1)).length),
    [MIB - 100, MIB - 100, MIB - 100],
  );
  assert.equal([String(reply.events.messages.at(-1)).length, streams.size], [MIB / 4, 7]);
  assert.ok(budget.bytes <= 4 * MIB);
});

test('those that went for others are not kept by name', () => {
  const { streams, budget, take } = setUp();
  for (let count = 0; count < 1_000; count += 1) take();
  assert.equal([streams.size, budget.spares, budget.bytes], [64, 64, 128]);
});

test('a lost one whose call goes on is kept as long as that takes', () => {
  const { streams, begin } = setUp();
  begin().reply.lose();
  streams.expire(Date.now() + 3_600_000);
  assert.is(streams.size, 1);
});

test('closing ends them all and holds nothing', () => {
  const { streams, budget, begin, take } = setUp();
  const [{ reply }] = [begin(), begin()];
  take();
  streams.close();
  assert.equal([streams.size, budget.bytes, budget.spares, reply.events.isEnded], [0, 0, 0, true]);
});

test.run();
