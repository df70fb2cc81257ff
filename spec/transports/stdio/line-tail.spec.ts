// The tail of a child's stderr: last lines, whole, readable and bounded.

import * as assert from 'uvu/assert';
import { LIMITS } from '../../../src/domain/limits.ts';
import { LineTail } from '../../../src/transports/stdio/child-process.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('line tail');

test('keeps lines that come in pieces, cut inside a character as well', () => {
  const bytes = Buffer.from('first é line\r\nsecond 🎭\n\nunfinished');
  const tail = new LineTail();
  for (const byte of bytes) tail.write(Buffer.from([byte]));
  assert.equal(tail.lines, ['first é line', 'second 🎭', 'unfinished']);
});

test('keeps the last lines only', () => {
  const tail = new LineTail();
  const numbers = Array.from({ length: 3 * LIMITS.stderrLines }, (_, index) => `line ${index}`);
  tail.write(Buffer.from(`${numbers.join('\n')}\nthe end`));
  assert.equal(tail.lines, [...numbers.slice(1 - LIMITS.stderrLines), 'the end']);
});

test('cuts long lines and holds no more of them', () => {
  const tail = new LineTail();
  for (let written = 0; written < 100; written += 1) tail.write(Buffer.alloc(1000, 'x'));
  tail.write(Buffer.from('\nnext\n'));
  assert.equal(tail.lines, ['x'.repeat(LIMITS.stderrLineCharacters), 'next']);
});

test('leaves out colours', () => {
  const tail = new LineTail();
  tail.write(Buffer.from('\u001b[31mred\u001b[0m alert\n'));
  assert.equal(tail.lines, ['red alert']);
});

test('takes a line of another stream between those of its own', () => {
  const tail = new LineTail();
  tail.write(Buffer.from('one\ntw'));
  tail.add(Buffer.from('from stdout\r'));
  tail.add(Buffer.from('  '));
  assert.equal(tail.lines, ['one', 'from stdout', 'tw']);
  tail.write(Buffer.from('o\n'));
  assert.equal(tail.lines, ['one', 'from stdout', 'two']);
});

test.run();
