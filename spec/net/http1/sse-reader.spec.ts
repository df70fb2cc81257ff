// Server-sent events from bytes: the examples of the standard, every way to cut a stream, and an independent parser.

import { createParser } from 'eventsource-parser';
import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { SseReader } from '../../../src/net/http1/sse-reader.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('sse reader');

type Seen = [type: string, data: string];

function read(chunks: readonly (string | Buffer)[]): Seen[] {
  const seen: Seen[] = [];
  const reader = new SseReader(1_000_000, (data, type) => seen.push([type, data.toString('utf8')]));
  for (const chunk of chunks) assert.ok(reader.push(Buffer.from(chunk)));
  return seen;
}

function readElsewhere(text: string): Seen[] {
  const seen: Seen[] = [];
  const parser = createParser({ onEvent: ({ event, data }) => seen.push([event ?? 'message', data]) });
  parser.feed(text);
  return seen;
}

test('accepts all three line ends, also when one is cut in two', () => {
  for (const text of ['data: a\r\n\r\ndata: b\r\n\r\n', 'data: a\r\rdata: b\r\r', 'data: a\n\ndata: b\n\n']) {
    for (let cut = 0; cut <= text.length; cut += 1) {
      assert.equal(
        read([text.slice(0, cut), text.slice(cut)]),
        [
          ['message', 'a'],
          ['message', 'b'],
        ],
        text,
      );
    }
  }
});

test('reads characters whose bytes arrive one by one, and skips a byte order mark', () => {
  const bytes = Buffer.from('\ufeffdata: é → 🎭 日本\n\n');
  assert.equal(read([...bytes].map((byte) => Buffer.from([byte]))), [['message', 'é → 🎭 日本']]);
});

test('keeps no more of a type than any known one has', () => {
  const [[type, data] = []] = read([`event: ${'x'.repeat(900_000)}\ndata: a\n\n`]);
  assert.equal([type?.length, data], [64, 'a']);
});

test('remembers the retry time', () => {
  const reader = new SseReader(1000, () => {});
  reader.push(Buffer.from('retry: soon\nretry: 250\n\n'));
  assert.is(reader.retryMs, 250);
});

test('knows the id of the last complete event', () => {
  const idAfter = (text: string): string => {
    const reader = new SseReader(10_000, () => {});
    reader.push(Buffer.from(text, 'latin1'));
    return reader.lastEventId;
  };
  assert.is(idAfter('data: none\n\n'), '');
  assert.is(idAfter('id: a-1\ndata: \n\n'), 'a-1');
  assert.is(idAfter('id: only-an-id\n\n'), 'only-an-id');
  assert.is(idAfter('id: a\n\ndata: inherits it\n\nid: b\ndata: unfinished\n'), 'a');
  assert.is(idAfter('id: a\n\nid\ndata: x\n\n'), '');
  assert.is(idAfter('id: gr\xc3\xbc\xc3\x9fe\n\n'), 'gr\xc3\xbc\xc3\x9fe');
  for (const odd of ['a\0b', 'a\x7f', `${'x'.repeat(1_025)}`]) assert.is(idAfter(`id: ${odd}\n\n`), '');
});

test('forwards the data of a single line without copying it', () => {
  const chunk = Buffer.from('data: {"a":1}\n\n');
  let data: Buffer | undefined;
  new SseReader(1000, (seen) => {
    data = seen;
  }).push(chunk);
  assert.is(data?.buffer, chunk.buffer);
});

test('an event that is not complete keeps its lines, and not the comments around them', () => {
  const kept: number[] = [];
  const reader = new SseReader(1_000, (data) => {
    assert.is(data.toString(), '1\n2\n3\n4');
    kept.push(data.buffer.byteLength);
  });
  const comment = `:${'c'.repeat(60_000)}\n`;
  reader.push(Buffer.from(`${comment}data: 1\n${comment}data: 2\nda`));
  reader.push(Buffer.from(`ta: 3\n${comment}data: 4`));
  reader.push(Buffer.from('\n\n'));
  // A single line, which is not copied once more.
  const single = new SseReader(1_000, (data) => kept.push(data.buffer.byteLength));
  single.push(Buffer.from(`data: 1\n${comment}`));
  single.push(Buffer.from('\n'));
  assert.ok(kept.length === 2 && kept.every((bytes) => bytes <= Buffer.poolSize), String(kept));
});

test('push returns false once an unfinished event exceeds the limit, in one line or in many', () => {
  const inOneLine = new SseReader(1_000, () => {});
  assert.ok(inOneLine.push(Buffer.from(`data: ${'x'.repeat(500)}`)));
  assert.not.ok(inOneLine.push(Buffer.from('x'.repeat(600))));
  const inMany = new SseReader(1_000, () => {});
  assert.ok(inMany.push(Buffer.from('data: xxx\n'.repeat(10))));
  assert.not.ok(inMany.push(Buffer.from('data: \n'.repeat(10))));
});

test('finished events do not count towards the limit', () => {
  const reader = new SseReader(1_000, () => {});
  for (let index = 0; index < 100; index += 1) {
    assert.ok(reader.push(Buffer.from(`: comment\ndata: ${'x'.repeat(300)}\n\ndata: y`)));
    assert.ok(reader.push(Buffer.from('y\n\n')));
  }
});

test('agrees with an independent parser, however the stream is cut', () => {
  const word = fc.constantFrom(
    'data',
    'event',
    'id',
    'retry',
    ':',
    ': ',
    ' ',
    'message',
    '{"a":"é🎭"}',
    'x',
    '17',
  );
  const lineEnd = fc.constantFrom('\n', '\r\n', '\n\n', '\r\n\r\n');
  const line = fc
    .tuple(fc.array(word, { maxLength: 4 }), lineEnd)
    .map(([words, end]) => words.join('') + end);
  const stream = fc.array(line, { maxLength: 30 }).map((lines) => lines.join(''));
  fc.assert(
    fc.property(stream, fc.array(fc.nat({ max: 60 }), { maxLength: 20 }), (text, sizes) => {
      const bytes = Buffer.from(text);
      const chunks: Buffer[] = [];
      let from = 0;
      for (const size of sizes) {
        chunks.push(bytes.subarray(from, from + size));
        from += size;
      }
      chunks.push(bytes.subarray(from));
      assert.equal(read(chunks), readElsewhere(text));
    }),
    { numRuns: 2_000 },
  );
});

test.run();
