// Output, spinner and input of a command. A real terminal with raw mode: spec/system/journeys/accounts.spec.ts.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { clearLine, cursorTo, moveCursor } from 'node:readline';
import { PassThrough, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { stripVTControlCharacters } from 'node:util';
import * as assert from 'uvu/assert';
import { Cancelled } from '../../src/cli/failures.ts';
import { askHidden, readFirstLine, showBusy } from '../../src/cli/terminal.ts';
import { rejects, thrownBy } from '../helpers/outcome.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('terminal');
const onPosix = test.needs(process.platform !== 'win32', 'Windows keeps the folder of a program');
const terminal = new URL('../../src/cli/terminal.ts', import.meta.url).href;
const open = `const terminal = (await import('${terminal}')).processTerminal();`;

test('prints without characters that move the cursor or reverse the order of letters', async () => {
  const child = start(
    `${open} terminal.print('a\\u001b]0;b\\u202ec\\n\\td'); terminal.complain('\\u001b[2Je\\rf');`,
  );
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)]);
  assert.equal({ out, err }, { out: 'a ]0;b c\n\td\n', err: ' [2Je f\n' });
});

test('draws no spinner and no colours in a pipe', async () => {
  const child = start(`${open}
    const done = await terminal.busy('waiting', async (progress) => { progress('half'); return 7; });
    terminal.print(terminal.paint('red', String(done))); terminal.note('by the way');`);
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)]);
  assert.equal({ out, err }, { out: '7\n', err: 'by the way\n' });
});

test('draws colours on a terminal, except with NO_COLOR or TERM=dumb', async () => {
  const child = start(`process.stdout.isTTY = true;
    for (const env of [{}, { NO_COLOR: '1' }, { TERM: 'dumb' }]) {
      Object.assign(process.env, { NO_COLOR: '', TERM: 'xterm' }, env);
      ${open} terminal.print(terminal.paint('red', 'a'));
    }`);
  assert.is(await text(child.stdout), '\u001b[31ma\u001b[39m\na\na\n');
});

test('clears what is left of the previous screen at a redraw', async () => {
  const child = start(`${open} process.stdout.rows = 3; terminal.redraw('a\u001b[2Jb\\nc\\nd');`);
  assert.is(await text(child.stdout), '\u001b[Ha [2Jb\u001b[K\nc\u001b[K\n\u001b[J');
});

test('reads the first line of an input that stays open, and cannot ask questions then', async () => {
  const child = start(
    `${open} terminal.print(JSON.stringify([terminal.canAsk, await terminal.readLine()]));`,
  );
  child.stdin.write('secret\nmore\n');
  assert.equal(JSON.parse(await text(child.stdout)), [false, 'secret']);
});

onPosix('works in a removed folder, except for commands that need the folder', async () => {
  const child = start(`const fs = await import('node:fs');
    const folder = fs.mkdtempSync('${join(tmpdir(), 'stagedoor-removed-')}');
    process.chdir(folder);
    fs.rmdirSync(folder);
    const { main } = await import('${new URL('../../src/cli/main.ts', import.meta.url).href}');
    const codes = [await main(['--help']), await main(['bridge', 'x', '--url', 'http://127.0.0.1:9'])];
    codes.push(await main(['config']), await main(['instance', 'list', '--url', 'http://127.0.0.1:9', '--quiet']));
    process.exitCode = Number(codes.join(''));`);
  child.stdin.end();
  const [[code], out, err] = await Promise.all([once(child, 'exit'), text(child.stdout), text(child.stderr)]);
  assert.match(out, /^One HTTP entrance/);
  assert.is(code, 11);
  const [first, ...others] = err.trimEnd().split('\n');
  assert.is(first, 'stagedoor: the current folder was removed; change to another one');
  assert.not.match(others.join('\n'), 'the current folder');
});

test.run();

function start(script: string) {
  return spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['pipe', 'pipe', 'pipe'] });
}

const busy = suite('spinner');
// Without a terminal, or in CI, the library draws nothing.
delete process.env.CI;
process.env.TERM = 'xterm';

busy('appears when work takes long, and is cleared afterwards', async () => {
  const screen = terminalStream();
  await showBusy(screen)('waiting for a gateway', () => screen.shows(/waiting for a gateway/));
  const written = screen.written();
  assert.is(await showBusy(screen)('quick', async () => 7), 7);
  assert.is(screen.written(), written, 'nothing is shown for work that is done at once');
  const [, afterwards = ''] = screen.written().split(/gateway(?!.*gateway)/s);
  assert.match(afterwards.replaceAll('\u001b', ''), /\[\d?K/);
});

busy('shows the latest progress on one line, without characters that move the cursor', async () => {
  const screen = terminalStream();
  await showBusy(screen)('calling', async (progress) => {
    progress('step 1\n\u001b[2Jof 3');
    await screen.shows(/step 1 +\[2Jof 3/);
    progress(`step 2 \u001b[31m${'red'.repeat(100)}\u001b[39m`);
    await screen.shows(/step 2 +\[31mred/);
  });
  assert.not.match(screen.written(), '\u001b[2J');
});

busy('shows only the outer of two nested works', async () => {
  const screen = terminalStream();
  const busy = showBusy(screen);
  await busy('outer', async (progress) => {
    progress('outer');
    await busy('inner', async (quietly) => quietly('inner'));
    await screen.shows(/outer/);
  });
  assert.not.match(screen.written(), 'inner');
});

busy('leaves signals to a command that takes them itself', async () => {
  const screen = terminalStream();
  const listen = () => {};
  process.on('SIGINT', listen);
  const listeners = await showBusy(screen)('starting', async () => {
    await screen.shows(/starting/);
    return process.listeners('SIGINT');
  });
  process.off('SIGINT', listen);
  assert.is(listeners.at(-1), listen);
});

busy.run();

/** A stream with its written text, and a wait for a text. */
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

const firstLine = suite('first line');
const read = (...chunks: (string | Buffer)[]) => readFirstLine(Readable.from(chunks));

firstLine('is the text up to LF, CRLF or the end of the input', async () => {
  assert.is(await read('secret\nmore\n'), 'secret');
  assert.is(await read('secret\r\nmore'), 'secret');
  assert.is(await read('secret'), 'secret');
  assert.is(await read('\nmore'), '');
  assert.is(await read(), '');
  const person = Object.assign(new PassThrough(), { isTTY: true });
  for (const answer of ['key', 'y']) {
    person.write(`${answer}\n`);
    assert.is(await readFirstLine(person), answer);
  }
});

firstLine('keeps spaces, and characters whose bytes arrive separately', async () => {
  const bytes = Buffer.from(' pässwörd 🔑 \n');
  const apart = [...bytes].map((byte) => Buffer.from([byte]));
  assert.is(await read(...apart), ' pässwörd 🔑 ');
});

firstLine('is undefined for invalid UTF-8 and for a line without end', async () => {
  assert.is(await read(Buffer.from([0xff, 0xfe, 0x0a])), undefined);
  assert.is(await readFirstLine(Readable.from(endless())), undefined);
});

firstLine('rejects when the input cannot be read', async () => {
  const broken = new Readable({ read: () => broken.destroy(new Error('gone')) });
  await rejects(readFirstLine(broken), Error, 'gone');
});

firstLine.run();

function* endless(): Generator<string> {
  for (;;) yield 'x'.repeat(1000);
}

const prompt = suite('hidden prompt');

prompt('returns the typed text and shows only the question', async () => {
  assert.equal(await type('s3cret pässwörd 🔑\r'), ['s3cret pässwörd 🔑', 'Password: \n']);
  assert.equal((await type('one\rtwo\rthree\r'))[0], 'one');
  assert.equal((await type('\r'))[0], '');
});

prompt('shows a question of others on one line, without characters that move the cursor', async () => {
  const { input, said, answer } = ask('\u001b[2JToken\n\u202eof x: ');
  input.end('y\r');
  assert.is(await answer, 'y');
  assert.is(said(), ' [2JToken  of x: \n');
});

prompt('is cancelled by Ctrl-C, Ctrl-D and the end of the input, after a new line', async () => {
  for (const keys of ['half\u0003', '\u0004', '']) {
    const { input, said, answer } = ask();
    input.end(keys);
    assert.instance(await thrownBy(answer), Cancelled);
    assert.is(said(), 'Password: \n');
  }
});

prompt.run();

async function type(keys: string): Promise<[string, string]> {
  const { input, said, answer } = ask();
  input.write(keys);
  return [await answer, said()];
}

function ask(question = 'Password: ') {
  const input = new PassThrough();
  const output: string[] = [];
  const answer = askHidden(question, {
    input,
    output: { write: (text: string) => output.push(text) > 0 },
  });
  return { input, said: () => output.join(''), answer };
}
