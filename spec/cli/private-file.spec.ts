// Files with secrets: how they are replaced.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chownSync,
  lstatSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { keepOwner, replaceFile, writePrivateFile } from '../../src/cli/private-file.ts';
import { folderOfEach } from '../helpers/folder.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('private file');
const onPosix = test.needs(process.platform !== 'win32', 'Windows has no modes');

const onLinux = test.needs(process.platform === 'linux', 'only Linux has /proc');

const asRoot = test.needs(process.getuid?.() === 0, 'only root gives files to others');

const folder = folderOfEach(test);

onPosix('replaces a link instead of writing through it', () => {
  const [target, path] = [folder('target'), folder('link')];
  writeFileSync(target, 'of somebody else');
  symlinkSync(target, path);
  writePrivateFile(path, 'secret');
  assert.equal([readFileSync(target, 'utf8'), readFileSync(path, 'utf8')], ['of somebody else', 'secret']);
});

onLinux('is refused, without a wait, below a folder in which nobody can make one', () => {
  assert.throws(() => writePrivateFile('/proc/none/stagedoor/secret', ''), /cannot be written \(ENOENT\)/);
});

asRoot('gives no target of a link to the owner of the original', () => {
  const [original, target, link] = [folder('original'), folder('target'), folder('link')];
  for (const path of [original, target]) writeFileSync(path, '');
  chownSync(original, 1234, 1234);
  symlinkSync(target, link);
  keepOwner(original, link);
  assert.equal([statSync(target).uid, lstatSync(link).uid], [0, 1234]);
});

test('calls the check right before the replacement, and keeps the old file when it returns false', () => {
  const path = folder('secret.json');
  writePrivateFile(path, 'one');
  let seen = '';
  const written = replaceFile(path, 'two', 0o600, () => {
    seen = readdirSync(folder()).length === 2 ? readFileSync(path, 'utf8') : 'no draft';
    return false;
  });
  assert.equal([written, seen, readFileSync(path, 'utf8')], [false, 'one', 'one']);
  assert.equal(readdirSync(folder()), ['secret.json']);
});

onPosix('keeps the old file when the new one is written only in part', () => {
  const path = folder('backup.json');
  writeFileSync(path, 'old');
  const module = fileURLToPath(new URL('../../src/cli/private-file.ts', import.meta.url));
  const program = `
    const { writePrivateFile } = await import(${JSON.stringify(module)});
    writePrivateFile(${JSON.stringify(path)}, 'x'.repeat(100_000));`;
  // A full disk, too, takes the first bytes of a write and reports no error.
  const limited = ['-c', 'ulimit -f 8 && exec "$@"', 'sh', process.execPath, '--input-type=module'];
  const { stderr } = spawnSync('sh', [...limited, '--eval', program], { encoding: 'utf8' });
  assert.match(stderr, 'backup.json cannot be written (EFBIG)');
  assert.equal([readFileSync(path, 'utf8'), readdirSync(folder())], ['old', ['backup.json']]);
});

test('the lock of a killed process is taken over by one of those that wait, and each changes the file alone', async () => {
  const path = folder('count');
  const PROCESSES = 4;
  writeFileSync(path, '0');
  writeFileSync(`${path}.lock`, '');
  const module = fileURLToPath(new URL('../../src/cli/private-file.ts', import.meta.url));
  const program = `
    const { readFileSync, writeFileSync } = await import('node:fs');
    const { changePrivateFile } = await import(${JSON.stringify(module)});
    const path = ${JSON.stringify(path)};
    process.stdin.once('data', () => {
      changePrivateFile(path, () => {
        const count = Number(readFileSync(path, 'utf8'));
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300);
        writeFileSync(path, String(count + 1));
      });
      process.exit();
    });
    console.log('ready');`;
  const processes = Array.from({ length: PROCESSES }, () =>
    spawn(process.execPath, ['--input-type=module', '--eval', program], {
      stdio: ['pipe', 'pipe', 'inherit'],
    }),
  );
  await Promise.all(processes.map(({ stdout }) => once(stdout, 'data')));
  const ended = Promise.all(processes.map((each) => once(each, 'exit')));
  for (const { stdin } of processes) stdin.write('go');
  assert.equal(
    (await ended).map(([code]) => code),
    Array(PROCESSES).fill(0),
  );
  assert.equal([readFileSync(path, 'utf8'), readdirSync(folder())], [String(PROCESSES), ['count']]);
});

test.run();
