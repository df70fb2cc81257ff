// Commands that end before their work does: by Ctrl-C, which leaves none of the programs that they started, or because nobody
// reads their output any more.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import * as assert from 'uvu/assert';
import { gatewayFor, HANDLER } from '../../cli/commands/against-gateway.ts';
import { becomes, eventually } from '../../helpers/eventually.ts';
import { folderOfEach } from '../../helpers/folder.ts';
import { isRunning } from '../../helpers/programs/processes.ts';
import { Program } from '../../helpers/programs/program.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('journey: interrupted commands', { timeoutMs: 60_000 });
const folder = folderOfEach(test);
const gateway = gatewayFor(test, { withAccounts: true, more: { oauth: false } }, ({ server }) =>
  server.gateway.register('other', { id: 'one', handler: HANDLER }, { waitMs: 5_000 }),
);

test('leaves no program behind when an examination of `doctor` is interrupted', async () => {
  const [script, pids] = [folder('hang.mjs'), folder('pids')];
  const write = `appendFileSync(${JSON.stringify(pids)}, process.pid + '\\n')`;
  writeFileSync(script, `import { appendFileSync } from 'node:fs'; ${write}; setInterval(() => {}, 1_000);`);
  const program = new Program(['doctor', '--wait', '1', '--', process.execPath, script]);
  try {
    // The second start is without a gateway.
    const started = async () => (existsSync(pids) ? readFileSync(pids, 'utf8').trim().split('\n') : []);
    const all = await eventually(started, (each) => each.length > 1);
    program.signal('SIGINT');
    await program.end();
    for (const pid of all) await becomes(() => isRunning(Number(pid)), false);
  } finally {
    await program.remove();
  }
});

test('leaves no program behind when a verification of `connect` is interrupted', async () => {
  const [script, pidFile] = [folder('hang.mjs'), folder('pid')];
  const write = `if (process.env.PID_FILE) writeFileSync(process.env.PID_FILE, String(process.pid));`;
  writeFileSync(script, `import { writeFileSync } from 'node:fs'; ${write} setInterval(() => {}, 1_000);`);
  await gateway.server.gateway.register('hanging', { command: process.execPath, args: [script] });
  const env = { STAGEDOOR_URL: gateway.url, STAGEDOOR_API_KEY: await gateway.newKey('admin') };
  const words = [
    'connect',
    'hanging',
    '--llm',
    'cursor',
    '--env',
    `PID_FILE=${pidFile}`,
    '--verify',
    '--trust',
  ];
  const program = new Program(words, { env });
  try {
    const pid = await eventually(async () => existsSync(pidFile) && Number(readFileSync(pidFile)), Boolean);
    program.signal('SIGINT');
    await program.end();
    await becomes(() => isRunning(Number(pid)), false);
  } finally {
    await program.remove();
  }
});

test('following events ends with exit code 0 when the reader closes the pipe', async () => {
  const words = ['gateway', 'events', '-f', '--type', 'instance.draining'];
  const env = { STAGEDOOR_URL: gateway.url, STAGEDOOR_API_KEY: await gateway.newKey('admin') };
  const program = new Program(words, { env });
  try {
    gateway.server.gateway.drain('other', 'one');
    await program.sees(/instance\.draining {2}other\/one/);
    program.process.stdout?.destroy();
    const again = setInterval(() => {
      gateway.server.gateway.resume('other', 'one');
      gateway.server.gateway.drain('other', 'one');
    }, 50);
    assert.equal(await program.end(), { code: 0, signal: null });
    clearInterval(again);
  } finally {
    await program.remove();
  }
});

test.run();
