import { closeSync, existsSync, openSync, readFileSync } from 'node:fs';
import * as assert from 'uvu/assert';
import { rotatingLog } from '../../../src/cli/background/run-daemon.ts';
import { folderOfAll } from '../../helpers/folder.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('rotating log');
const folder = folderOfAll(test);

/** Writes numbered lines of ten bytes into a log with this size limit; returns its path. */
function logged(name: string, lines: number, largestBytes: number): string {
  const path = folder(name);
  const descriptor = openSync(path, 'a');
  const write = rotatingLog(path, { descriptor, largestBytes });
  for (let line = 1; line <= lines; line += 1) write(Buffer.from(`line ${String(line).padStart(4, '0')}\n`));
  closeSync(descriptor);
  return path;
}

test('rotates the file before it exceeds the limit, and loses no line', () => {
  const path = logged('a', 25, 100);
  const texts = [`${path}.2`, `${path}.1`, path].map((file) => readFileSync(file, 'utf8'));
  const found = texts.map((text) => text.length);
  assert.equal(found, [100, 100, 50]);
  const lines = texts.join('').trim().split('\n');
  assert.equal([lines[0], lines[24]], ['line 0001', 'line 0025']);
});

test('keeps five old files', () => {
  const path = logged('b', 100, 100);
  assert.match(readFileSync(`${path}.5`, 'utf8'), 'line 0041');
  assert.is(existsSync(`${path}.6`), false);
});

test('appends to an existing file, and writes a line over the limit into a new file', () => {
  logged('c', 9, 100);
  const path = logged('c', 2, 100);
  assert.is(readFileSync(path, 'utf8'), 'line 0002\n');
  assert.is(readFileSync(logged('d', 2, 5), 'utf8'), 'line 0002\n');
});

test.run();
