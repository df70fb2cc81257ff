// The outbox: one write at a time, many lines in one, and what was not written can be taken back.

import * as assert from 'uvu/assert';
import { LIMITS } from '../../../src/domain/limits.ts';
import { Outbox } from '../../../src/transports/stdio/stdio-channel.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('outbox');

test('writes all lines of one turn at once', async () => {
  const pipe = openPipe();
  for (const text of ['a', 'b', 'c']) pipe.outbox.add(line(text));
  assert.equal(pipe.writes, []);
  await pipe.written();
  assert.equal(pipe.writes, ['a\nb\nc\n']);
});

test('has one write in the pipe at a time', async () => {
  const pipe = openPipe();
  pipe.outbox.add(line('a'));
  await pipe.written();
  for (const text of ['b', 'c']) pipe.outbox.add(line(text));
  await turn();
  assert.equal(pipe.writes, ['a\n']);
  pipe.done();
  assert.equal(pipe.writes, ['a\n', 'b\nc\n']);
  pipe.done();
  pipe.outbox.add(line('d'));
  await pipe.written();
  assert.equal(pipe.writes, ['a\n', 'b\nc\n', 'd\n']);
});

test('tells a line that it is handed over, and takes it back only before', async () => {
  const pipe = openPipe();
  const [kept, back] = [line('kept'), line('back')];
  pipe.outbox.add(kept);
  pipe.outbox.add(back);
  assert.not(kept.handedOver);
  assert.ok(pipe.outbox.remove(back));
  assert.not(pipe.outbox.remove(back));
  await pipe.written();
  assert.equal(pipe.writes, ['kept\n']);
  assert.ok(kept.handedOver && !back.handedOver);
  assert.not(pipe.outbox.remove(kept));
});

test('writes a large line alone, so that the next ones are not lost with it', async () => {
  const pipe = openPipe();
  const large = 'x'.repeat(100_000);
  for (const text of ['a', large, 'b']) pipe.outbox.add(line(text));
  await pipe.written();
  assert.equal(pipe.writes, [`a\n${large}\n`]);
  pipe.done();
  assert.is(pipe.writes[1], 'b\n');
});

test('takes no more when what waits is too much, until some of it is gone', async () => {
  const pipe = openPipe();
  pipe.outbox.add(line('in the pipe'));
  await pipe.written();
  const huge = line('x'.repeat(LIMITS.backendMessageBytes + 1));
  assert.ok(pipe.outbox.add(huge));
  assert.not(pipe.outbox.add(line('a')));
  pipe.outbox.remove(huge);
  assert.ok(pipe.outbox.add(line('a')));
  let taken = 0;
  while (taken < 100_000 && pipe.outbox.add(line(''))) taken += 1;
  assert.is(taken, 16_383);
});

function line(text: string) {
  return {
    line: text,
    handedOver: false,
    onWritten() {
      this.handedOver = true;
    },
  };
}

/** A pipe whose writes are done when the spec says so. */
function openPipe() {
  const writes: string[] = [];
  let finish: (error?: Error) => void = () => {};
  let tell: () => void = () => {};
  const outbox = new Outbox((text, done) => {
    writes.push(text);
    finish = done;
    tell();
  });
  const written = () =>
    new Promise<void>((resolve) => {
      tell = resolve;
    });
  return { outbox, writes, written, done: (error?: Error) => finish(error) };
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

test.run();
