// Files that a user names: files, devices, and pipes with and without a program at the other end.

import { execFileSync, spawn } from 'node:child_process';
import { closeSync, existsSync, openSync, writeFileSync, writeSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { filePieces, readFileNow } from '../../src/config/read-file.ts';
import { codeOf } from '../../src/domain/errors/errors.ts';
import { bytesWithin } from '../../src/domain/memory/bounded-bytes.ts';
import { folderOfEach } from '../helpers/folder.ts';
import { thrownBy } from '../helpers/outcome.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('bytes of files that a user names');
const folder = folderOfEach(test);
const read = async (path: string) => String(await bytesWithin(filePieces(path), 200_000));

test('reads a file, and says what is wrong with one that is not there', async () => {
  writeFileSync(folder('a'), 'x'.repeat(150_000));
  assert.is((await read(folder('a'))).length, 150_000);
  assert.is(await read(folder('none')).catch(codeOf), 'ENOENT');
});

if (process.platform !== 'win32') {
  test('reads a pipe to its end, however late its program writes', async () => {
    const pipe = folder('pipe');
    execFileSync('mkfifo', [pipe]);
    const script = `exec 3>"$1"; echo open; sleep 0.2; head -c 150000 /dev/zero >&3; sleep 0.2; printf end >&3`;
    const program = spawn('/bin/sh', ['-c', script, 'sh', pipe], { stdio: ['ignore', 'pipe', 'inherit'] });
    // Opening it for writing waits for a reader.
    const text = await read(pipe);
    assert.equal([text.length, text.slice(-3)], [150_003, 'end']);
    program.kill();
  });

  test('reads what a program wrote that has opened and closed the pipe at once', async () => {
    execFileSync('mkfifo', [folder('pipe')]);
    const reading = read(folder('pipe'));
    await setImmediate();
    writeFileSync(folder('pipe'), 'all of it');
    assert.is(await reading, 'all of it');
  });

  test('waits for no program that is not there, and not for ever for one that never ends', async () => {
    execFileSync('mkfifo', [folder('pipe')]);
    assert.is(await read(folder('pipe')).catch(codeOf), 'no writer');
    const writer = openSync(folder('pipe'), 'r+');
    writeSync(writer, 'some');
    assert.is(await bytesWithin(filePieces(folder('pipe'), 50), 200).catch(codeOf), 'no end within 0.05 s');
    assert.is(codeOf(await thrownBy(() => readFileNow(folder('pipe'), 50))), 'no end within 0.05 s');
    closeSync(writer);
  });

  test('reads no device, which may have no end or wait for ever, but the empty one', async () => {
    assert.is(await read('/dev/null'), '');
    for (const device of ['/dev/zero', '/dev/kmsg'].filter(existsSync)) {
      assert.is(await read(device).catch(codeOf), 'not a file or a pipe', device);
      assert.is(codeOf(await thrownBy(() => readFileNow(device))), 'not a file or a pipe', device);
    }
  });
}

test.run();
