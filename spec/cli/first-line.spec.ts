import { Readable } from 'node:stream';
import * as assert from 'uvu/assert';
import { readFirstLine, readWhole } from '../../src/cli/terminal.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('first line');
const read = (...chunks: (string | Buffer)[]) => readFirstLine(Readable.from(chunks));

test('is the text up to the line end, of whichever kind, or to the end', async () => {
  assert.is(await read('secret\nmore\n'), 'secret');
  assert.is(await read('secret\r\nmore'), 'secret');
  assert.is(await read('secret'), 'secret');
  assert.is(await read('\nmore'), '');
  assert.is(await read(), '');
});

test('keeps spaces and characters whose bytes come apart', async () => {
  const bytes = Buffer.from(' pässwörd 🔑 \n');
  const apart = [...bytes].map((byte) => Buffer.from([byte]));
  assert.is(await read(...apart), ' pässwörd 🔑 ');
});

test('does not wait for what follows the line', async () => {
  const input = new Readable({ read: () => {} });
  input.push('secret\n');
  assert.is(await readFirstLine(input), 'secret');
});

test('gives up what is no UTF-8 and what never ends', async () => {
  assert.is(await read(Buffer.from([0xff, 0xfe, 0x0a])), undefined);
  assert.is(await readFirstLine(Readable.from(endless())), undefined);
});

test('rejects when the input cannot be read', async () => {
  const broken = new Readable({ read: () => broken.destroy(new Error('gone')) });
  const error = await readFirstLine(broken).catch((reason: unknown) => reason);
  assert.match(String(error), 'gone');
});

test('is followed by the rest where all of it is wanted', async () => {
  const all = (...chunks: (string | Buffer)[]) => readWhole(Readable.from(chunks));
  assert.is(await all('{"a":\n', '1}\n'), '{"a":\n1}\n');
  assert.is(await all(Buffer.from([0xff])), undefined);
  const megabyte = Buffer.alloc(1_000_000, 'a');
  assert.is(await readWhole(Readable.from(Array.from({ length: 70 }, () => megabyte))), undefined);
});

test.run();

function* endless(): Generator<string> {
  for (;;) yield 'x'.repeat(1000);
}
