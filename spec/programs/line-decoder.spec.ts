// The line decoder: the same lines however the bytes are cut, and bounded memory.

import * as fc from 'fast-check';
import * as assert from 'uvu/assert';
import { HeldBytes } from '../../src/domain/memory/held-bytes.ts';
import { systemClock } from '../../src/domain/time/clock.ts';
import { EDGE_BYTES, LineDecoder, type OversizeLine } from '../../src/programs/line-decoder.ts';
import { becomes } from '../helpers/eventually.ts';
import { collectGarbage } from '../helpers/garbage.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('line decoder');

test('gives the same lines however the stream is cut', () => {
  const line = fc.string({ unit: 'binary', maxLength: 40 }).map((text) => text.replaceAll(/[\r\n]/g, '·'));
  const lineEnd = fc.constantFrom('\n', '\r\n');
  fc.assert(
    fc.property(fc.array(fc.tuple(line, lineEnd)), fc.array(fc.nat(9), { minLength: 1 }), (lines, sizes) => {
      const stream = Buffer.from(lines.map((pair) => pair.join('')).join(''));
      assert.equal(
        decode(cut(stream, sizes)).lines,
        lines.map(([text]) => text.toWellFormed()),
      );
    }),
  );
});

test('reports each line above the limit once, with its edges, and continues after it', () => {
  const size = fc.integer({ min: 0, max: 3 * EDGE_BYTES });
  fc.assert(
    fc.property(
      fc.array(size, { maxLength: 6 }),
      fc.array(fc.integer({ min: 1, max: 700 }), { minLength: 1 }),
      (lengths, sizes) => {
        const limit = EDGE_BYTES + 10;
        const lines = lengths.map((length, index) => `${index}${'abcdefghij'.repeat(100)}`.slice(0, length));
        const seen = decode(cut(Buffer.from(lines.map((line) => `${line}\n`).join('')), sizes), limit);
        assert.equal(
          seen.lines,
          lines.filter((line) => line.length <= limit),
        );
        const oversize = lines.filter(({ length }) => length > limit);
        const edges = (line: string) => ({ head: line.slice(0, EDGE_BYTES), tail: line.slice(-EDGE_BYTES) });
        assert.equal(
          seen.oversize,
          oversize.map((line) => ({ ...edges(line), bytes: line.length })),
        );
      },
    ),
  );
});

test('keeps a carriage return that is not at the end', () => {
  assert.equal(decode([Buffer.from('a\rb\r\r\n'), Buffer.from('\r'), Buffer.from('\n')]).lines, [
    'a\rb\r',
    '',
  ]);
});

test('passes on a line within one chunk without copying it', () => {
  const chunk = Buffer.from('one\ntwo\n');
  const lines: Buffer[] = [];
  new LineDecoder({ onLine: (line) => lines.push(line), onOversize: unexpected }).write(chunk);
  assert.equal(
    lines.map(({ buffer }) => buffer === chunk.buffer),
    [true, true],
  );
});

test('assembles a line that arrives byte by byte', () => {
  const bytes = Array.from({ length: 300_000 }, (_, index) => Buffer.from(String(index % 10)));
  const { lines } = decode([...bytes, Buffer.from('\n')]);
  assert.is(lines[0], Buffer.concat(bytes).toString());
});

test('holds a line that never ends only up to the limit', async () => {
  const decoder = new LineDecoder({ onLine: unexpected, onOversize: unexpected }, 1024 * 1024);
  collectGarbage();
  const before = process.memoryUsage().arrayBuffers;
  for (let written = 0; written < 8_000; written += 1) decoder.write(Buffer.alloc(64 * 1024, 'x'));
  // V8 frees the memory of collected buffers on another thread.
  await becomes(() => {
    collectGarbage();
    return process.memoryUsage().arrayBuffers - before < 2_000_000;
  }, true);
});

test('drops a line whose memory is needed, keeps its edges, and reads the next one', () => {
  const held = new HeldBytes({ totalBytes: 100_000, ownerBytes: 100_000 }, systemClock.now);
  const lines: string[] = [];
  const given: OversizeLine[] = [];
  const listener = {
    onLine: (line: Buffer) => lines.push(line.toString()),
    onOversize: (line: OversizeLine) => given.push(line),
  };
  const decoder = new LineDecoder(listener, undefined, held.of('a'));
  decoder.write(Buffer.from(`head${'x'.repeat(60_000)}`));
  assert.ok(held.bytes > 60_000);
  held.hold('b', unexpected).set(50_000);
  assert.is(held.bytes, 50_000);
  decoder.write(Buffer.from('tail\nnext\n'));
  assert.equal(lines, ['next']);
  const [{ head, tail, bytes, isCut } = {}] = given;
  const found = [head?.toString('utf8', 0, 4), tail?.toString().slice(-4), bytes, isCut];
  assert.equal(found, ['head', 'tail', 60_008, true]);
  decoder.write(Buffer.from('x'.repeat(20_000)));
  decoder.write(Buffer.from('\n'));
  assert.is(held.bytes, 50_000);
});

interface Decoded {
  readonly lines: string[];
  readonly oversize: { readonly head: string; readonly tail: string; readonly bytes: number }[];
}

function decode(chunks: readonly Buffer[], limit?: number): Decoded {
  const seen: Decoded = { lines: [], oversize: [] };
  const decoder = new LineDecoder(
    {
      onLine: (line) => seen.lines.push(line.toString()),
      onOversize: ({ head, tail, bytes }: OversizeLine) =>
        seen.oversize.push({ head: head.toString(), tail: tail.toString(), bytes }),
    },
    limit,
  );
  for (const chunk of chunks) decoder.write(chunk);
  return seen;
}

/** Cuts bytes into chunks of the given sizes, taken in turn. */
function cut(bytes: Buffer, sizes: readonly number[]): Buffer[] {
  const chunks: Buffer[] = [];
  let start = 0;
  for (let turn = 0; start < bytes.length; turn += 1) {
    const size = (sizes[turn % sizes.length] ?? 0) + (turn % sizes.length === 0 ? 1 : 0);
    chunks.push(bytes.subarray(start, start + size));
    start += size;
  }
  return chunks;
}

function unexpected(): never {
  throw new Error('neither such a line nor such a length was written');
}

test.run();
