// Files with secrets: who can read them, and how they are replaced.

import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { writePrivateFile } from '../../src/cli/private-file.ts';
import { folderOfEach } from '../helpers/folder.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('private file');
const onPosix = test.needs(process.platform !== 'win32', 'Windows has no modes');

const folder = folderOfEach(test);

onPosix('replaces a link instead of writing through it', () => {
  const [target, path] = [folder('target'), folder('link')];
  writeFileSync(target, 'of somebody else');
  symlinkSync(target, path);
  writePrivateFile(path, 'secret');
  assert.equal([readFileSync(target, 'utf8'), readFileSync(path, 'utf8')], ['of somebody else', 'secret']);
});

test('asks right before it replaces, and leaves the old file when the answer is no', () => {
  const path = folder('secret.json');
  const isWritten = writePrivateFile(path, 'one', () => true);
  assert.is(isWritten, true);
  let seen = '';
  const written = writePrivateFile(path, 'two', () => {
    seen = readdirSync(folder()).length === 2 ? readFileSync(path, 'utf8') : 'no draft';
    return false;
  });
  assert.equal([written, seen, readFileSync(path, 'utf8')], [false, 'one', 'one']);
  assert.equal(readdirSync(folder()), ['secret.json']);
});

test('leaves nothing behind when it fails', () => {
  const path = folder('taken');
  mkdirSync(join(path, 'full'), { recursive: true });
  assert.throws(() => writePrivateFile(path, 'x'));
  assert.equal(readdirSync(folder()), ['taken']);
});

test.run();
