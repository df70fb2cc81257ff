// `gateway logs`: which lines of the file are shown.

import { appendFileSync, writeFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { filesIn, writeDaemon } from '../../../../src/cli/background/daemon-files.ts';
import { lockFile } from '../../../../src/persistence/file-lock.ts';
import { becomes } from '../../../helpers/eventually.ts';
import { inFolder } from '../../../helpers/folder.ts';
import { suite } from '../../../helpers/suite.ts';
import { complaint, printed, runAtTerminal, runCommand } from '../against-gateway.ts';

const test = suite('gateway logs');
const record = (level: number, hour: string, msg: string) =>
  JSON.stringify({ level, time: `2027-01-31T${hour}:00:00.000Z`, msg });
const LINES = [
  record(30, '08', 'first'),
  record(40, '09', 'slow'),
  'a line of Node itself',
  record(50, '10', 'failed'),
  record(30, '11', 'last'),
];
const CRASH = 'a line of Node itself';

test('shows the last lines, those of a level, and those since a time', () =>
  inFolder(async (folder) => {
    await writeFile(join(folder, 'gateway.log'), `${LINES.join('\n')}\n`);
    const shown = async (...words: string[]) => {
      const out = await printed(runCommand(['gateway', 'logs', '--state-dir', folder, '--quiet', ...words]));
      return out.split('\n').map((line) => (line === CRASH ? 'crash' : JSON.parse(line).msg));
    };
    assert.equal(await shown(), ['first', 'slow', 'crash', 'failed', 'last']);
    assert.equal(await shown('-n', '2'), ['failed', 'last']);
    assert.equal(await shown('--level', 'warn'), ['slow', 'crash', 'failed']);
    assert.equal(await shown('--level', 'warn', '-n', '1'), ['failed']);
    assert.equal(await shown('--since', '2027-01-31T10:00Z'), ['crash', 'failed', 'last']);
    for (const level of ['loud', 'constructor'])
      assert.match(
        await complaint(runCommand(['gateway', 'logs', '--state-dir', folder, '--level', level]), 2),
        `--level must be trace or debug or info or warn or error or fatal, not "${level}"`,
      );
    assert.match(
      await complaint(runCommand(['gateway', 'logs', '--state-dir', folder, '--since', 'noon']), 2),
      /^stagedoor: --since takes a time such as/,
    );
  }));

test('says that the log is of an earlier gateway where none runs in the background', () =>
  inFolder(async (folder) => {
    await writeFile(join(folder, 'gateway.log'), `${LINES.join('\n')}\n`);
    const words = ['gateway', 'logs', '--state-dir', folder, '-n', '1'];
    const earlier = `no gateway runs in the background here now: ${join(folder, 'gateway.log')} is the log of an earlier one`;
    const { err } = await runCommand(words);
    assert.is(err, earlier);
    const files = filesIn(folder);
    const lock = await lockFile(files.lock); // it runs
    writeDaemon(files, { pid: 7, url: 'http://127.0.0.1:1', words: [], folder, graceMs: 1 });
    assert.is((await runCommand(words)).err, '');
    await lock?.release();
  }));

test('follows a long line, whose bytes are joined once', () =>
  inFolder(async (folder) => {
    const file = join(folder, 'gateway.log');
    await writeFile(file, 'first\n');
    const long = 'x'.repeat(2_000_000);
    const before = process.listenerCount('SIGINT');
    const joins = mock.method(Buffer, 'concat');
    // Each line is added when the one before it was shown.
    const next = new Map<string, () => unknown>([
      ['first', () => appendFileSync(file, `${long}\nlast\n`)],
      ['last', () => process.emit('SIGINT')],
    ]);
    const words = ['gateway', 'logs', '--state-dir', folder, '-f', '--quiet'];
    const out = await printed(runAtTerminal(words, { folder, onPrint: (line) => next.get(line)?.() }));
    assert.ok(out === `first\n${long}\nlast`, `${out.length}`);
    const joined = joins.mock.calls.map(({ result }) => result?.length ?? 0);
    joins.mock.restore();
    const sum = joined.reduce((total, length) => total + length, 0);
    assert.ok(sum < 2 * long.length, `${sum}`);
    // They are kept for a moment, for the same Ctrl-C that arrives twice.
    await becomes(() => process.listenerCount('SIGINT'), before);
  }));

test('follows the lines that were added right before a rotation, too', () =>
  inFolder(async (folder) => {
    const file = join(folder, 'gateway.log');
    await writeFile(file, 'first\nsecond\n');
    const before = process.listenerCount('SIGINT');
    const rotate = () => {
      writeFileSync(`${file}.1`, 'first\nsecond\nunseen\nhal');
      writeFileSync(file, 'f\nnew\n');
    };
    const next = new Map<string, () => unknown>([
      ['second', rotate],
      ['new', () => process.emit('SIGINT')],
    ]);
    const words = ['gateway', 'logs', '--state-dir', folder, '-f', '--quiet'];
    const out = await printed(runAtTerminal(words, { folder, onPrint: (line) => next.get(line)?.() }));
    assert.is(out, 'first\nsecond\nunseen\nhalf\nnew');
    await becomes(() => process.listenerCount('SIGINT'), before);
  }));

test('follows a file that was made empty from its beginning, without lines of an older file', () =>
  inFolder(async (folder) => {
    const file = join(folder, 'gateway.log');
    await writeFile(`${file}.1`, 'much older\nand not shown, although it is longer\n');
    await writeFile(file, 'first\nsecond\nhal');
    const before = process.listenerCount('SIGINT');
    const next = new Map<string, () => unknown>([
      ['hal', () => writeFileSync(file, 'new\n')],
      ['new', () => process.emit('SIGINT')],
    ]);
    const words = ['gateway', 'logs', '--state-dir', folder, '-f', '--quiet'];
    const out = await printed(runAtTerminal(words, { folder, onPrint: (line) => next.get(line)?.() }));
    assert.is(out, 'first\nsecond\nhal\nnew');
    await becomes(() => process.listenerCount('SIGINT'), before);
  }));

test('follows a file that was made empty and has grown beyond its length since', () =>
  inFolder(async (folder) => {
    const file = join(folder, 'gateway.log');
    await writeFile(file, 'first\nsecond\n');
    const before = process.listenerCount('SIGINT');
    const next = new Map<string, () => unknown>([
      ['second', () => writeFileSync(file, 'new, and longer than both\nend\n')],
      ['end', () => process.emit('SIGINT')],
    ]);
    const words = ['gateway', 'logs', '--state-dir', folder, '-f', '--quiet'];
    const out = await printed(runAtTerminal(words, { folder, onPrint: (line) => next.get(line)?.() }));
    assert.is(out, 'first\nsecond\nnew, and longer than both\nend');
    await becomes(() => process.listenerCount('SIGINT'), before);
  }));

test.run();
