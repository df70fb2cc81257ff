// A gateway that is stopped during its start: it exits with 0, leaves no process, and creates nothing that it no longer needs.
// A registry file that is a pipe, which the spec closes, holds up the start.

import { spawnSync } from 'node:child_process';
import { constants } from 'node:fs';
import { access, type FileHandle, open, writeFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { stdioServerPath } from '../../fixtures/programs.ts';
import { eventually } from '../../helpers/eventually.ts';
import { folderOfEach } from '../../helpers/folder.ts';
import { canFindProcesses, NO_PROCESSES } from '../../helpers/programs/processes.ts';
import { Program } from '../../helpers/programs/program.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('journey: stop during the start', { timeoutMs: 60_000 });
const needsProcesses = test.needs(canFindProcesses, NO_PROCESSES);
const args = [stdioServerPath, '--ignore-stdin-end', '--ignore-sigterm', '--spawn-grandchild'];
const registry = JSON.stringify({ mcpServers: { stubborn: { command: process.execPath, args } } });

const folder = folderOfEach(test);
let gateway: Program | undefined;
let pipe: FileHandle | undefined;
test.after.each(async () => {
  await gateway?.remove();
  await pipe?.close();
  [gateway, pipe] = [undefined, undefined];
});

needsProcesses('SIGTERM ends it after the current step, without a database or a program', async () => {
  const program = await startAtPipe();
  program.signal('SIGTERM');
  await program.sees(/^stopping after SIGTERM during the start; a second signal stops at once$/m);
  await pipe?.writeFile(registry);
  await closePipe();
  assert.equal(await program.end(), { code: 0, signal: null });
  assert.equal([program.err, program.descendants()], ['', []]);
  assert.not.match(program.out, 'listening');
  const wasMade = access(folder('gateway.db')).then(() => true);
  assert.is(await wasMade.catch(() => false), false, 'no database was made');
});

needsProcesses('a second SIGTERM ends it at once while the start still waits', async () => {
  const program = await startAtPipe();
  program.signal('SIGTERM');
  await program.sees(/stopping after/);
  await delay(600); // later than one Ctrl-C that arrives twice
  program.signal('SIGTERM');
  assert.equal(await program.end(), { code: null, signal: 'SIGTERM' });
  assert.equal(program.descendants(), []);
});

needsProcesses('SIGTERM while programs start leaves none of them', async () => {
  await writeFile(folder('registry.json'), registry);
  gateway = begin('registry.json');
  const program = gateway;
  const running = await eventually(
    async () => program.descendants(),
    ({ length }) => length > 0,
  );
  assert.ok(running.length > 0, program.err);
  program.signal('SIGTERM');
  assert.equal(await program.end(), { code: 0, signal: null });
  assert.equal(await program.survivors(), []);
});

test.run();

function begin(file: string): Program {
  const words = ['--port', '0', '--host', '127.0.0.1', '--database', 'sqlite:///gateway.db'];
  return new Program(['gateway', 'start', ...words, '--registry-file', file], { folder: folder() });
}

/** A gateway that has begun to read its registry from the pipe. */
async function startAtPipe(): Promise<Program> {
  const path = folder('pipe.json');
  assert.is(spawnSync('mkfifo', [path]).status, 0);
  gateway = begin('pipe.json');
  // Opening fails until the gateway reads.
  const tryToOpen = () => open(path, constants.O_WRONLY | constants.O_NONBLOCK).catch(() => undefined);
  pipe = await eventually(tryToOpen, (opened) => opened !== undefined);
  assert.ok(pipe, gateway.err);
  return gateway;
}

async function closePipe(): Promise<void> {
  await pipe?.close();
  pipe = undefined;
}
