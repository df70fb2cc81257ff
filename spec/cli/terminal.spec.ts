// The real terminal, in a process of its own.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import * as assert from 'uvu/assert';
import { suite } from '../helpers/suite.ts';

const test = suite('terminal');
const terminal = new URL('../../src/cli/terminal.ts', import.meta.url).href;
const open = `const terminal = (await import('${terminal}')).processTerminal();`;

test('prints to standard output and complains on standard error', async () => {
  const child = start(`${open} terminal.print('a'); terminal.complain('b');`);
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)]);
  assert.equal({ out, err }, { out: 'a\n', err: 'b\n' });
});

test('writes nothing that moves the cursor or turns the order of letters', async () => {
  const child = start(
    `${open} terminal.print('a\\u001b]0;b\\u202ec\\n\\td'); terminal.complain('\\u001b[2Je\\rf');`,
  );
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)]);
  assert.equal({ out, err }, { out: 'a ]0;b c\n\td\n', err: ' [2Je f\n' });
});

test('draws no spinner and no more than it is told where nobody watches', async () => {
  const child = start(`${open}
    const done = await terminal.busy('waiting', async (progress) => { progress('half'); return 7; });
    terminal.print(String(done)); terminal.note('by the way');`);
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)]);
  assert.equal({ out, err }, { out: '7\n', err: 'by the way\n' });
});

test('keeps a screen that is drawn again clean', async () => {
  const child = start(`${open} process.stdout.rows = 3; terminal.redraw('a\u001b[2Jb\\nc\\nd');`);
  assert.is(await text(child.stdout), '\u001b[Ha [2Jb\u001b[K\nc\u001b[K\n\u001b[J');
});

test('uses no colours when nobody watches', async () => {
  const child = start(`${open} terminal.print(terminal.paint('red', 'a'));`);
  assert.is(await text(child.stdout), 'a\n');
});

test('reads the first line of what is piped in, and asks nobody then', async () => {
  const child = start(
    `${open} terminal.print(JSON.stringify([terminal.canAsk, await terminal.readLine()]));`,
  );
  child.stdin.end('secret\nmore\n');
  assert.equal(JSON.parse(await text(child.stdout)), [false, 'secret']);
});

test('ends after a line of an input that stays open', async () => {
  const child = start(`${open} terminal.print(String(await terminal.readLine()));`);
  child.stdin.write('secret\n');
  const [code] = await once(child, 'exit');
  assert.is(code, 0);
});

test('survives a reader that goes away', async () => {
  const child = start(`${open}
    for (let line = 0; line < 2000; line += 1) { terminal.print('x'.repeat(1000)); await new Promise(setImmediate); }
    process.exitCode = 5;`);
  child.stdout.destroy();
  const [code] = await once(child, 'exit');
  assert.is(code, 5);
});

test.run();

function start(script: string) {
  return spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['pipe', 'pipe', 'pipe'] });
}
