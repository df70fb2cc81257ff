// Stored events of streams for clients that resume them: bounds of time and bytes, the memory budget, and the order of eviction.

import { mock } from 'node:test';
import * as fc from 'fast-check';
import * as assert from 'uvu/assert';
import { EventBudget, type Evictable, MessageLog } from '../../../src/protocol/legacy/legacy-event-log.ts';
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

test('rejects texts that are not event ids', () => {
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
  /** A stream that ended and was delivered. */
  const take = (said?: string) => {
    const { stream } = begin(said);
    stream.finish();
    streams.checkDelivered();
    return stream.key;
  };
  /** The events that a client gets when it resumes a stream from the beginning; undefined when the stream was discarded. */
  const resume = (key: string) => {
    const reply = new RecordedReply();
    return streams.resume(reply, { key, number: 0 }) ? reply.events : undefined;
  };
  return { streams, budget, begin, take, resume };
}

test('the time to resume a stream counts from the end of its delivery', () => {
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

test('a stream whose connection broke off after delivery is undelivered, and not evictable', () => {
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

const newLog = (budget = EventBudget.ofSession()) => new MessageLog(budget, 256);
const numbersIn = (log: MessageLog) => log.messages.map(({ number }) => number);

/** A counted part, which records its name when it is evicted. */
function kept(budget: EventBudget, name: string, bytes: number, gone: string[] = []): Evictable {
  budget.count(bytes);
  const part: Evictable = {
    bytes,
    discard: () => {
      gone.push(name);
      budget.removeEvictable(part);
      budget.count(-bytes);
    },
  };
  return part;
}

test('64 parts and 1 MiB are evictable in a session, 4,096 and 64 MiB in total', () => {
  const all = EventBudget.ofAll();
  const session = EventBudget.ofSession(all);
  for (let count = 0; count < 70; count += 1) session.addEvictable(kept(session, `${count}`, 1));
  assert.is(session.evictables, 64);
  for (let count = 0; count < 3; count += 1) session.addEvictable(kept(session, 'large', MIB));
  assert.equal([session.evictables, session.bytes], [1, MIB]);
  for (let count = 0; count < 70; count += 1) {
    const other = EventBudget.ofSession(all);
    other.addEvictable(kept(other, 'large', MIB));
  }
  assert.equal([all.evictables, all.bytes], [64, 64 * MIB]);
  for (let count = 0; count < 5_000; count += 1) {
    const other = EventBudget.ofSession(all);
    other.addEvictable(kept(other, 'small', 1));
  }
  assert.is(all.evictables, 4_096);
});

test('in any order: needed bytes are never refused because of evictable ones, and no bound is exceeded', () => {
  const step = fc.record({
    bytes: fc.integer({ min: 1, max: 40 }),
    session: fc.integer({ min: 0, max: 2 }),
    isSpare: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const all = new EventBudget({ bytes: 150, evictableBytes: 60, evictables: 4 });
      const sessions = [0, 1, 2].map(
        () => new EventBudget({ bytes: 80, evictableBytes: 40, evictables: 3 }, all),
      );
      const needed = [0, 0, 0];
      for (const { bytes, session: index, isSpare } of steps) {
        const session = sessions[index] ?? all;
        const mine = needed[index] ?? 0;
        const isFitting = mine + bytes <= 80 && needed.reduce((sum, each) => sum + each, 0) + bytes <= 150;
        assert.is(session.makeRoom(bytes), isFitting);
        if (!isFitting) continue;
        if (isSpare) session.addEvictable(kept(session, '', bytes));
        else {
          session.count(bytes);
          needed[index] = mine + bytes;
        }
        assert.ok(all.bytes <= 150 && all.evictables <= 4 && session.bytes <= 80 && session.evictables <= 3);
      }
    }),
  );
});

test('a stream stores its latest 256 events', () => {
  const log = newLog();
  for (let number = 1; number <= 300; number += 1) log.append(number, 'é');
  assert.equal([numbersIn(log)[0], log.messages.length, log.bytes], [45, 256, 512]);
});

test('a stream stores its latest 1 MiB of events', () => {
  const log = newLog();
  for (let number = 1; number <= 5; number += 1) log.append(number, Buffer.alloc(MIB / 4));
  assert.equal([numbersIn(log), log.bytes], [[2, 3, 4, 5], MIB]);
  assert.is(log.append(6, Buffer.alloc(MIB + 1)), false);
  assert.equal(numbersIn(log), [2, 3, 4, 5]);
});

test('the streams of a session store at most 4 MiB of events together', () => {
  const budget = EventBudget.ofSession();
  const logs = Array.from({ length: 5 }, () => newLog(budget));
  const kept = logs.map((log) => log.append(1, Buffer.alloc(MIB)));
  assert.equal([kept, budget.bytes], [[true, true, true, true, false], 4 * MIB]);
  logs[0]?.clear();
  assert.is(budget.bytes, 3 * MIB);
  assert.is(logs[4]?.append(2, Buffer.alloc(MIB)), true);
});

test('the streams of all sessions together store a limited number of bytes', () => {
  const all = EventBudget.ofAll();
  const [log, other] = [newLog(EventBudget.ofSession(all)), newLog(EventBudget.ofSession(all))];
  all.count(254 * MIB);
  const bytes = Buffer.alloc(MIB);
  assert.equal([log.append(1, bytes), other.append(1, bytes), log.append(2, bytes)], [true, true, true]);
  all.count(1);
  assert.equal([log.append(3, bytes), other.append(2, Buffer.alloc(MIB - 1))], [false, true]);
  log.clear();
  other.clear();
  assert.is(all.bytes, 254 * MIB + 1);
});

test.run();
