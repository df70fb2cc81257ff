// A node that is killed and started again at once, with a program that ignores the end of its input and SIGTERM: the next one starts
// when the former one has ended. Sampled in /proc.

import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import * as assert from 'uvu/assert';
import { stdioServerPath } from '../../fixtures/programs.ts';
import { caller } from '../../helpers/clients/caller.ts';
import { becomes } from '../../helpers/eventually.ts';
import {
  canFindProcesses,
  isRunning,
  NO_PROCESSES,
  processesWhere,
} from '../../helpers/programs/processes.ts';
import { Program } from '../../helpers/programs/program.ts';
import { freshDatabase, postgresql } from '../../helpers/services/services.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('journey: killed programs', { timeoutMs: 60_000 });
const needsProcesses = test.needs(canFindProcesses, NO_PROCESSES);
const server = await postgresql();
const needsServer = test.needs(canFindProcesses && server.url !== undefined, server.skip ?? NO_PROCESSES);
const SAMPLE_MS = 20;
const programs: Program[] = [];
const folders: string[] = [];
test.after.each(async () => {
  for (const program of programs.splice(0).reverse()) await program.remove();
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true });
});

needsProcesses('on a database file one program of an instance runs at any moment', async () => {
  const folder = newFolder();
  await isAlone(folder, { GATEWAY_DATABASE_URL: `sqlite:///${join(folder, 'gateway.db')}` });
});

needsServer('on a database server one program of an instance runs at any moment', async () => {
  const folder = newFolder();
  assert.ok(server.url);
  const { url, drop } = await freshDatabase(server);
  await isAlone(folder, { GATEWAY_DATABASE_URL: url, GATEWAY_NODE_ID: 'one', GATEWAY_STATE_DIR: folder });
  for (const program of programs.splice(0)) await program.remove();
  await drop();
});

async function isAlone(folder: string, env: Readonly<Record<string, string>>): Promise<void> {
  const former = start(env);
  const command = [
    process.execPath,
    stdioServerPath,
    '--ignore-stdin-end',
    '--ignore-sigterm',
    `--${basename(folder)}`,
  ];
  const { code, err } = await former.run(
    ...['instance', 'register', 'deaf', '--id', 'one', '--wait', '20', '--command'],
    command.map((word) => `'${word}'`).join(' '),
  );
  assert.is(code, 0, err);
  const running = () =>
    processesWhere(
      'cmdline',
      (words) => words.includes(`\0--${basename(folder)}`) && words.includes(stdioServerPath),
    ).filter(isRunning);
  const [first] = running();
  let most = 0;
  const sampling = setInterval(() => {
    most = Math.max(most, running().length);
  }, SAMPLE_MS);
  try {
    former.signal('SIGKILL');
    await former.end();
    const next = start(env);
    const who = caller(await next.url());
    const state = async () => {
      const { body } = await who('GET /mcp/deaf/health?format=array');
      return Object(body).instances?.[0]?.state;
    };
    const atFirst = await state();
    if (isRunning(Number(first))) assert.is(atFirst, 'starting', 'served meanwhile'); // else the machine is busy
    await becomes(state, 'healthy');
    assert.is(most, 1, 'processes at one moment');
    assert.not(isRunning(Number(first)));
  } finally {
    clearInterval(sampling);
  }
}

function start(env: Readonly<Record<string, string>>): Program {
  const program = new Program(['gateway', 'start', '--port', '0'], { env });
  programs.push(program);
  return program;
}

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'stagedoor-killed-'));
  folders.push(folder);
  return folder;
}

test.run();
