// The spinner, on a stream that takes itself for a terminal.

import { once } from 'node:events';
import { clearLine, cursorTo, moveCursor } from 'node:readline';
import { PassThrough } from 'node:stream';
import { stripVTControlCharacters } from 'node:util';
import * as assert from 'uvu/assert';
import { showBusy } from '../../src/cli/terminal.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('busy');
// Where nobody watches, the library draws nothing.
delete process.env.CI;
process.env.TERM = 'xterm';

test('shows nothing for work that is done at once', async () => {
  const screen = terminalStream();
  assert.is(await showBusy(screen)('waiting', async () => 7), 7);
  assert.is(screen.written(), '');
});

test('shows what is waited for when it takes long, and clears it', async () => {
  const screen = terminalStream();
  await showBusy(screen)('waiting for a gateway', () => screen.shows(/waiting for a gateway/));
  const [, afterwards = ''] = screen.written().split(/gateway(?!.*gateway)/s);
  assert.match(afterwards.replaceAll('\u001b', ''), /\[\d?K/);
});

test('shows the latest news of the work at once, on one line, without what moves the cursor', async () => {
  const screen = terminalStream();
  await showBusy(screen)('calling', async (progress) => {
    progress('step 1\n\u001b[2Jof 3');
    await screen.shows(/step 1 +\[2Jof 3/);
    progress('step 2');
    await screen.shows(/step 2/);
  });
  assert.not.match(screen.written(), '\u001b[2J');
});

test('hands on how the work failed, and is ready for the next one', async () => {
  const screen = terminalStream();
  const busy = showBusy(screen);
  const failure = new Error('refused');
  const outcome = await busy('calling', () => Promise.reject(failure)).catch((error: unknown) => error);
  assert.is(outcome, failure);
  await busy('again', (progress) => {
    progress('again');
    return screen.shows(/again/);
  });
});

test('draws one line when work is done within work', async () => {
  const screen = terminalStream();
  const busy = showBusy(screen);
  await busy('outer', async (progress) => {
    progress('outer');
    await busy('inner', async (quietly) => quietly('inner'));
    await screen.shows(/outer/);
  });
  assert.not.match(screen.written(), 'inner');
});

test.run();

/** What is written to it, and a wait for what is to be written. */
function terminalStream() {
  const stream: PassThrough = Object.assign(new PassThrough(), {
    isTTY: true,
    columns: 80,
    cursorTo: (x: number) => cursorTo(stream, x),
    moveCursor: (x: number, y: number) => moveCursor(stream, x, y),
    clearLine: (direction: -1 | 0 | 1) => clearLine(stream, direction),
  });
  let text = '';
  stream.setEncoding('utf8').on('data', (piece) => {
    text += piece;
  });
  const written = () => text;
  const shows = async (pattern: RegExp): Promise<void> => {
    while (!pattern.test(stripVTControlCharacters(text).replaceAll('\u001b', ''))) await once(stream, 'data');
  };
  return Object.assign(stream, { written, shows }) as never as NodeJS.WriteStream & {
    written(): string;
    shows(pattern: RegExp): Promise<void>;
  };
}
