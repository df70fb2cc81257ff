// Stored events of streams for clients that resume them: bounds of time and bytes, and the order in which they make room.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { BYTES_PER_PIECE } from '../../../src/domain/memory/held-bytes.ts';
import type { McpSession } from '../../../src/domain/sessions/mcp-session.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { GetStream } from '../../../src/protocol/legacy/get-stream.ts';
import {
  EventBudget,
  LegacyStream,
  MessageLog,
  positionOf,
} from '../../../src/protocol/legacy/legacy-stream.ts';
import { suite } from '../../helpers/suite.ts';
import { RecordedReply } from '../recorded-reply.ts';
import { SessionBackends } from '../scripted-backends.ts';

const test = suite('legacy streams');

const MIB = 1024 * 1024;

test.before.each(() => mock.timers.enable({ apis: ['Date'], now: 1_000_000 }));
test.after.each(() => mock.timers.reset());

/** One stream that has begun. */
function begun() {
  const common = {
    budget: new EventBudget(),
    clock: { ...systemClock, now: Date.now },
    sessionId: 's',
    ownerId: 'ann',
    generation: 1,
  };
  const stream = new LegacyStream({ ...common, key: 'k1' });
  const reply = new RecordedReply();
  stream.begin(reply, true);
  return { stream, reply };
}

test('rejects texts that are not event ids', () => {
  const texts = [
    ...[
      '',
      '1',
      '1-k1.',
      '1-.1',
      '1-k1.1.1',
      '1-k1.-1',
      '1-K1.1',
      '1-k1.9999999999',
      ' 1-k1.1',
      `1-${'k'.repeat(30)}.1`,
    ],
    ...['k1.1', '-k1.1', 'x-k1.1'],
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
  assert.is(again.events.isEnded, true);
  assert.is(stream.isAbandoned(Date.now() + 60_000), true);
});

/** The streams of one session. */
function setUp(budget = new EventBudget()) {
  const streams = new Map<string, LegacyStream>();
  let last = 0;
  const open = (reply: RecordedReply, canPoll: boolean) => {
    last += 1;
    const key = `${last}`;
    const stream = new LegacyStream({
      budget,
      clock: { ...systemClock, now: Date.now },
      sessionId: 's',
      ownerId: 'ann',
      generation: 1,
      key,
      onDiscarded: () => streams.delete(key),
    });
    streams.set(key, stream);
    stream.begin(reply, canPoll);
    return stream;
  };
  const begin = (said = '{}') => {
    const reply = new RecordedReply();
    const stream = open(reply, true);
    stream.send(said);
    return { reply, stream };
  };
  /** A stream that ended on its connection. */
  const take = (said?: string) => {
    const { stream } = begin(said);
    stream.finish();
    return stream.key;
  };
  /** The events that a client gets when it resumes a stream from the beginning; undefined when the stream was discarded. */
  const resume = (key: string) => {
    const reply = new RecordedReply();
    streams.get(key)?.resume(reply, 0);
    return streams.has(key) ? reply.events : undefined;
  };
  return { streams, open, begin, take, resume };
}

test('an ended stream can be resumed for a minute', () => {
  const budget = new EventBudget();
  const { streams, take, resume } = setUp(budget);
  const [one, two] = [take(), take()];
  const expired = (laterMs: number) => streams.get(two)?.isAbandoned(Date.now() + laterMs);
  assert.equal([expired(59_000), resume(one)?.isEnded, expired(60_000)], [false, true, true]);
  for (const stream of streams.values()) stream.discard();
  assert.equal([resume(two), budget.neededBytes], [undefined, 0]);
});

test('a stream whose client has no event id to resume with is discarded when it ends', () => {
  const { streams, open } = setUp();
  const [one, two] = [open(new RecordedReply(), false), open(new RecordedReply(), false)];
  one.answer('{}', 1, true);
  two.notify('{}');
  two.answer('{}', 1, true);
  assert.equal([...streams.keys()], [two.key]);
});

test('of streams that ended on their connection the latest 4,096 are stored, and a quarter of the budget', () => {
  const { streams, begin, take, resume } = setUp();
  const [first = '', lost] = [take(), begin()];
  lost.stream.finish();
  lost.reply.lose();
  for (let count = 0; count < 4_096; count += 1) take();
  assert.equal([resume(first), streams.size], [undefined, 4_097]);
  assert.is(resume(lost.stream.key)?.messages.length, 1, 'its connection broke off');
  const small = setUp(new EventBudget(4 * MIB));
  const keys = [1, 2, 3].map(() => small.take(`"${'x'.repeat(MIB / 2 - 300)}"`));
  const found = keys.map((key) => small.resume(key) !== undefined);
  assert.equal(found, [false, true, true]);
});

test('a session with many ended streams has room for the events of others', () => {
  const { begin, take } = setUp();
  for (let count = 0; count < 8; count += 1) take(`"${'x'.repeat(MIB - 300)}"`);
  const { stream, reply } = begin();
  reply.lose();
  stream.answer(`"${'y'.repeat(MIB - 300)}"`, 1, true);
  assert.ok(stream.bytes > MIB - 100);
});

test('messages that wait for a stream by GET need budget until the session ends', () => {
  const [budget, session] = [new EventBudget(), new SessionBackends().add('s', 'ann')];
  const own = {
    sessionId: 's',
    ownerId: 'ann',
    generation: 1,
    nextKey: () => '1',
    isPending: () => true,
    listened: new WeakSet<McpSession>(),
  };
  const deps = { budget, clock: { ...systemClock, now: Date.now }, ...own };
  const stream = new GetStream(session, deps);
  stream.notify('waiting');
  assert.is(budget.neededBytes, 7 + BYTES_PER_PIECE);
  stream.close();
  assert.is(budget.neededBytes, 0);
});

const newLog = (budget = new EventBudget(), sessionId = 's', ownerId = sessionId) =>
  new MessageLog({ budget, sessionId, ownerId }, { most: 256 });
/** A message that counts as this many bytes. */
const counting = (bytes: number) => Buffer.alloc(bytes - BYTES_PER_PIECE);
const numbersIn = (log: MessageLog) => log.messages.map(({ number }) => number);

test('a stream stores its latest 256 events', () => {
  const log = newLog();
  for (let number = 1; number <= 300; number += 1) log.append(number, 'é');
  assert.equal([numbersIn(log)[0], log.messages.length, log.bytes], [45, 256, 256 * (2 + BYTES_PER_PIECE)]);
});

test('a stream stores its latest 1 MiB of events', () => {
  const log = newLog();
  for (let number = 1; number <= 5; number += 1) log.append(number, counting(MIB / 4));
  assert.equal([numbersIn(log), log.bytes], [[2, 3, 4, 5], MIB]);
  assert.is(log.append(6, counting(MIB + 1)), false);
  assert.equal(numbersIn(log), [2, 3, 4, 5]);
});

test('the streams of a session store at most 4 MiB of needed events together, those of all sessions 192 MiB', () => {
  const budget = new EventBudget();
  const logs = Array.from({ length: 5 }, () => newLog(budget));
  const append = (log: MessageLog | undefined) => log?.append(1, counting(MIB));
  assert.equal(logs.map(append), [true, true, true, true, false]);
  for (let times = 0; times < 2; times += 1) logs[0]?.clear();
  assert.equal([append(logs[4]), append(logs[0])], [true, false]);
  for (let count = 4; count < 192; count += 1) assert.is(append(newLog(budget, `${count}`)), true);
  assert.is(append(newLog(budget, 'one more')), false);
  assert.is(append(logs[4]), true, 'its own oldest event makes room');
});

test('the sessions of one owner store at most a quarter of what those of all may', () => {
  const budget = new EventBudget();
  const append = (log: MessageLog) => log.append(1, counting(MIB));
  const stored = Array.from({ length: 60 }, (_, n) => append(newLog(budget, `s${n}`, 'ann')));
  assert.is(stored.filter(Boolean).length, 48);
  assert.is(append(newLog(budget, 'other', 'bob')), true);
});

test('a small answer that is stored does not keep the buffer from which Node cut it', () => {
  const { open } = setUp();
  const small = Buffer.allocUnsafe(100).fill('1');
  assert.ok(small.buffer.byteLength > 1_000, 'it shares a buffer');
  const log = newLog();
  log.append(1, small);
  assert.is(log.messages[0]?.data, small, 'not copied while its client is there');
  log.own();
  log.append(2, small);
  for (const { data } of log.messages) assert.is(Buffer.from(data).equals(small), true);
  const kept = log.messages.map(({ data }) => (typeof data === 'string' ? 0 : data.buffer.byteLength));
  assert.equal(kept, [100, 100]);
  const stream = open(new RecordedReply(), true);
  stream.answer(small, 1, true);
  const again = new RecordedReply();
  stream.resume(again, 0);
  assert.equal(
    again.events.events.map(({ data }) => (typeof data === 'string' ? data : data.buffer.byteLength)),
    [100],
  );
});

test.run();
