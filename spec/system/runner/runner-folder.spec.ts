// The folder of a run is removed as a whole, whoever removes a part of it at the same time, and nobody waits for the dead.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { suite } from '../../helpers/suite.ts';
import { closeRunFolder, keepingMark, openRunFolder } from '../../runner/run-folder.ts';

const test = suite('the folder of a run', { timeoutMs: 60_000 });

test('is gone although another process removes a part of it at the same time', async () => {
  const remover = spawn(
    process.execPath,
    [
      '--eval',
      `process.stdin.on('data', (path) => {
         require('node:fs').rmSync(String(path), { recursive: true, force: true });
         process.stdout.write('done');
       });
       process.stdout.write('ready');`,
    ],
    { stdio: ['pipe', 'pipe', 'inherit'] },
  );
  try {
    await once(remover.stdout, 'data');
    for (let round = 0; round < 40; round += 1) {
      const run = openRunFolder();
      const part = join(run.path, 'part');
      mkdirSync(part);
      for (let file = 0; file < 100; file += 1) writeFileSync(join(part, String(file)), '');
      const removed = once(remover.stdout, 'data');
      remover.stdin.write(part);
      await closeRunFolder(run);
      await removed;
      assert.is(existsSync(run.path), false, `left behind in round ${round}`);
    }
  } finally {
    remover.stdin.end();
    await once(remover, 'close');
  }
});

test('is there as long as a supervisor says that it keeps something', async () => {
  const run = openRunFolder();
  const supervisor = spawn(
    process.execPath,
    ['--eval', `process.stdin.on('end', () => require('node:fs').rmSync('${keepingMark}')).resume();`],
    { cwd: keptFolder(run.path), stdio: ['pipe', 'ignore', 'inherit'] },
  );
  writeFileSync(join(run.path, 'redis', keepingMark), String(supervisor.pid));
  const closing = closeRunFolder(run);
  assert.is(existsSync(run.path), true);
  supervisor.stdin.end();
  await closing;
  assert.is(existsSync(run.path), false);
  if (supervisor.exitCode === null) await once(supervisor, 'exit');
});

test('does not wait for a supervisor that has died', async () => {
  const run = openRunFolder();
  const supervisor = spawn(process.execPath, ['--version'], { stdio: 'ignore' });
  await once(supervisor, 'exit');
  writeFileSync(join(keptFolder(run.path), keepingMark), String(supervisor.pid));
  const startedAt = performance.now();
  await closeRunFolder(run);
  assert.is(existsSync(run.path), false);
  assert.ok(performance.now() - startedAt < 10_000, 'it waited');
});

test.run();

function keptFolder(path: string): string {
  const folder = join(path, 'redis');
  mkdirSync(folder);
  return folder;
}
