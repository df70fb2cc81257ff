// Stored streams of a session for clients that resume them: bounds of time and bytes, and the order of eviction.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { EventBudget } from '../../../src/protocol/legacy/legacy-event-log.ts';
import { LegacyStream, LegacyStreams, positionOf } from '../../../src/protocol/legacy/legacy-stream.ts';
import { suite } from '../../helpers/suite.ts';
import { RecordedReply } from '../recorded-reply.ts';

const test = suite('legacy streams');

const MIB = 1024 * 1024;

test.before.each(() => mock.timers.enable({ apis: ['Date'], now: 1_000_000 }));
test.after.each(() => mock.timers.reset());

/** One stream that has begun. */
function begun() {
  const budget = EventBudget.ofSession();
  const stream = new LegacyStream({ key: 'k1', budget, onEnded: () => {} });
  const reply = new RecordedReply();
  stream.begin(reply, true);
  return { stream, reply, budget };
}

test('rejects texts that are no event ids', () => {
  const texts = [
    ...['', '1', 'k1.', '.1', 'k1.1.1', 'k1.-1', 'K1.1', 'k1.9999999999', ' k1.1', `${'k'.repeat(30)}.1`],
  ];
  for (const text of texts) assert.is(positionOf(text), undefined, text);
});

test('a client that does not read misses notifications, but not the answer', () => {
  const { stream, reply } = begun();
  reply.events.unsentBytes = MIB + 1;
  stream.notify('{"n":1}');
  stream.send('{"q":1}');
  stream.answer('{"r":1}', 1, true);
  assert.equal(reply.events.messages, [{ q: 1 }, { r: 1 }]);
});

test('an answer that is too large to be stored is an error for a client that resumes', () => {
  const { stream, reply } = begun();
  const large = Buffer.from(`"${'x'.repeat(MIB)}"`);
  stream.send('{"q":1}');
  reply.lose();
  stream.answer(large, 'id', true);
  const again = new RecordedReply();
  stream.resume(again, 1);
  assert.equal(again.events.messages, [
    {
      jsonrpc: '2.0',
      id: 'id',
      error: {
        code: -32603,
        message: 'The answer was lost with its connection: it is too large to be stored.',
      },
    },
  ]);
  assert.equal([again.events.isEnded, stream.checkDelivered(), stream.isDiscarded], [true, true, false]);
  assert.is(stream.isAbandoned(Date.now() + 15_000), true);
});

test('nothing is held after it is discarded', () => {
  const { stream, reply, budget } = begun();
  stream.send('{}');
  stream.discard();
  stream.send('{}');
  stream.answer('{}', 1, true);
  assert.equal([reply.events.isEnded, budget.bytes, stream.isDiscarded], [true, 0, true]);
});

test('is abandoned when its client does not resume it for a minute', () => {
  const { stream, reply } = begun();
  mock.timers.tick(100_000);
  assert.is(stream.isAbandoned(Date.now() + 60_000), false);
  reply.lose();
  const forsaken = [60_000, 59_999].map((ms) => stream.isAbandoned(Date.now() + ms));
  assert.equal(forsaken, [true, false]);
});

/** The streams of one session. */
function setUp() {
  let last = 0;
  const budget = EventBudget.ofSession();
  const nextKey = () => {
    last += 1;
    return `${last}`;
  };
  const streams = new LegacyStreams({ budget, nextKey, onEnded: () => {} });
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
    streams.checkDelivered();
    return stream.key;
  };
  /** What a client that comes back to the beginning of a stream finds; undefined when it is told that it is gone. */
  const resume = (key: string) => {
    const reply = new RecordedReply();
    return streams.resume(reply, { key, number: 0 }) ? reply.events : undefined;
  };
  return { streams, budget, begin, take, resume };
}

test('delivered streams are stored for 15 s: their client may not have the events', () => {
  const { streams, take, resume } = setUp();
  const key = take('{"a":1}');
  streams.expire(Date.now() + 14_999);
  const events = resume(key);
  assert.equal([events?.messages, events?.isEnded], [[{ a: 1 }], true]);
  streams.checkDelivered();
  streams.expire(Date.now() + 15_000);
  assert.equal([streams.size, resume(key)], [0, undefined]);
});

test('the time of a slow delivery counts from its end', () => {
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

test('a stream whose connection broke off after all is undelivered, and not evictable', () => {
  const { streams, budget, begin, resume } = setUp();
  const { reply, stream } = begin();
  stream.finish();
  streams.checkDelivered();
  assert.is(budget.evictables, 1);
  reply.lose();
  assert.is(budget.evictables, 0);
  streams.expire(Date.now() + 59_000);
  assert.is(resume(stream.key)?.messages.length, 1);
});

test('a stream that is resumed in vain is undelivered', () => {
  const { streams, budget, take, resume } = setUp();
  const key = take();
  const gone = new RecordedReply();
  gone.lose();
  streams.resume(gone, { key, number: 0 });
  streams.checkDelivered();
  assert.is(budget.evictables, 0);
  streams.expire(Date.now() + 59_000);
  assert.is(resume(key)?.messages.length, 1);
});

test('a stream whose client has no event id to resume with is discarded after delivery', () => {
  const { streams, budget } = setUp();
  const [one, two] = [streams.open(), streams.open()];
  for (const stream of [one, two]) stream.begin(new RecordedReply(), false);
  one.answer('{}', 1, true);
  two.notify('{}');
  two.answer('{}', 1, true);
  streams.checkDelivered();
  assert.equal([one.isDiscarded, two.isDiscarded, streams.size, budget.evictables], [true, false, 1, 1]);
});

test('delivered streams are evicted for undelivered events, oldest first', () => {
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
  const found = waiting.map((one) => String(resume(one.stream.key)?.messages.at(-1)).length);
  assert.equal(found, [MIB - 100, MIB - 100, MIB - 100]);
  assert.equal([String(reply.events.messages.at(-1)).length, streams.size], [MIB / 4, 7]);
  assert.ok(budget.bytes <= 4 * MIB);
});

test('evicted streams leave no entry behind', () => {
  const { streams, budget, take } = setUp();
  for (let count = 0; count < 1_000; count += 1) take();
  assert.equal([streams.size, budget.evictables, budget.bytes], [64, 64, 128]);
});

test.run();
