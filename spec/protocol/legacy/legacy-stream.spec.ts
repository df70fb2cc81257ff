// One event stream over its connections: ids, bounds, and what a slow or lost client finds.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { EventBudget } from '../../../src/protocol/legacy/legacy-event-log.ts';
import { LegacyStream, positionOf } from '../../../src/protocol/legacy/legacy-stream.ts';
import { suite } from '../../helpers/suite.ts';
import { RecordedReply } from '../recorded-reply.ts';

const test = suite('legacy stream');
const MIB = 1024 * 1024;

function begun(canPoll = true) {
  const budget = EventBudget.ofSession();
  const lost: string[] = [];
  const stream = new LegacyStream({
    key: 'k1',
    budget,
    onLost: () => lost.push('lost'),
    onTaken: () => {},
  });
  const reply = new RecordedReply();
  stream.begin(reply, canPoll);
  return { stream, reply, budget, lost };
}

test('events have ids that say where they were', () => {
  const { stream, reply } = begun();
  stream.send('{"a":1}');
  assert.equal(reply.events.events, [
    { data: '', id: 'k1.0' },
    { data: '{"a":1}', id: 'k1.1' },
  ]);
  assert.equal(positionOf('k1.1'), { key: 'k1', number: 1 });
});

test('what is no event id is none', () => {
  for (const text of [
    '',
    '1',
    'k1.',
    '.1',
    'k1.1.1',
    'k1.-1',
    'K1.1',
    'k1.9999999999',
    ' k1.1',
    `${'k'.repeat(30)}.1`,
  ]) {
    assert.is(positionOf(text), undefined);
  }
});

test('a client that does not read goes without notifications, but not without an answer', () => {
  const { stream, reply } = begun();
  reply.events.unsentBytes = MIB + 1;
  stream.notify('{"n":1}');
  stream.send('{"q":1}');
  stream.answer('{"r":1}', 1, true);
  assert.equal(reply.events.messages, [{ q: 1 }, { r: 1 }]);
});

test('an answer that is too large to be kept is told as an error to who comes back', () => {
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
        message: 'The answer was lost with its connection: it is too large to be kept.',
      },
    },
  ]);
  assert.equal([again.events.isEnded, stream.checkTaken(), stream.isDone], [true, true, false]);
  assert.is(stream.isForsaken(Date.now() + 15_000), true);
});

test('one that is there gets it', () => {
  const { stream, reply } = begun();
  const large = Buffer.from(`{"x":"${'x'.repeat(MIB)}"}`);
  stream.answer(large, 'id', true);
  assert.is(reply.events.events.at(-1)?.data, large);
});

test('a lost connection is told once, an ended one not', () => {
  const { reply, lost } = begun();
  reply.lose();
  reply.lose();
  assert.equal(lost, ['lost']);
  const other = begun();
  other.stream.finish();
  other.reply.lose();
  assert.equal(other.lost, []);
});

test('a client that is gone before it begins is lost at once', () => {
  const { stream } = begun();
  const reply = new RecordedReply();
  reply.lose();
  assert.is(stream.begin(reply, true), false);
});

test('one that begins suspended says only where to come back', () => {
  const { stream } = begun();
  const reply = new RecordedReply();
  assert.is(stream.beginSuspended(reply, 20), true);
  assert.equal(reply.events.events, [{ data: '', id: 'k1.0', retryMs: 20 }]);
  assert.equal([reply.events.isEnded, stream.isLive, stream.isFinished], [true, false, false]);
  const gone = new RecordedReply();
  gone.lose();
  assert.is(stream.beginSuspended(gone, 20), false);
});

test('nothing is held after it is discarded', () => {
  const { stream, reply, budget } = begun();
  stream.send('{}');
  stream.discard();
  stream.send('{}');
  stream.answer('{}', 1, true);
  assert.equal([reply.events.isEnded, budget.bytes, stream.isDone], [true, 0, true]);
});

test('is forsaken when its client stays away for a minute', () => {
  mock.timers.enable({ apis: ['Date'], now: 5_000 });
  try {
    const { stream, reply } = begun();
    mock.timers.tick(100_000);
    assert.is(stream.isForsaken(Date.now() + 60_000), false);
    reply.lose();
    const lostAtMs = Date.now();
    assert.equal([stream.isForsaken(lostAtMs + 60_000), stream.isForsaken(lostAtMs + 59_999)], [true, false]);
  } finally {
    mock.timers.reset();
  }
});

test('suspending ends the connection with the wait and the latest id', () => {
  const { stream, reply } = begun();
  stream.send('{}');
  stream.suspend(20);
  assert.equal(reply.events.events.at(-1), { data: '', id: 'k1.1', retryMs: 20 });
  assert.equal([reply.events.isEnded, stream.isLive, stream.isFinished], [true, false, false]);
});

test.run();
