// deploy/stagedoor.service: checked by systemd-analyze, and run by systemd in a container that has the programs of this machine
// and the clone read-only. Where these cannot run, the tests are skipped.

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import * as assert from 'uvu/assert';
import { EMPTY_IMAGE, type Podman, startPodman } from '../../helpers/containers/podman.ts';
import { eventually } from '../../helpers/eventually.ts';
import { suite } from '../../helpers/suite.ts';

const run = promisify(execFile);
const repository = fileURLToPath(new URL('../../..', import.meta.url));
const unit = join(repository, 'deploy/stagedoor.service');
const SYSTEMD = '/lib/systemd/systemd';
/** A program with those parts of the unit's sandbox that need support of the machine. */
const SANDBOX = `[Service]
Type=oneshot
User=stagedoor
ProtectSystem=strict
PrivateDevices=yes
SystemCallFilter=@system-service
ExecStart=/usr/bin/true
`;
/** The name of the container. */
const NAME = 'systemd';

const hasAnalyzer = await run('systemd-analyze', ['--version']).then(
  () => true,
  () => false,
);
const words = ['security', '--offline=true', '--no-pager', unit];
const { stdout } = await run('systemd-analyze', words, { timeout: 30_000 }).catch((error) => error);
const rating = String(stdout);
const found = existsSync(SYSTEMD)
  ? await startPodman()
  : { engine: undefined, skip: 'systemd is not installed' };
const { engine } = found;
const booted = engine === undefined ? found.skip : await boot(engine);

const test = suite('the systemd unit', { timeoutMs: 120_000 });
const analyzed = test.needs(hasAnalyzer, 'systemd-analyze is not installed');
const rated = test.needs(/exposure level/.test(rating), 'systemd-analyze rates running units only');
const withSystemd = test.needs(booted === '', booted);
test.after(() => engine?.close());

analyzed('has no fault', async () => {
  const { stderr } = await run('systemd-analyze', ['verify', unit], { timeout: 30_000 });
  assert.not.match(stderr, 'stagedoor.service');
});

rated('has an exposure level of at most 2', () => {
  const [, level] = /exposure level.*: ([\d.]+)/.exec(rating) ?? [];
  assert.ok(Number(level) <= 2, rating);
});

withSystemd('is active when the gateway is ready, runs programs, and stops without an error', async () => {
  await settings('GATEWAY_PORT=8123', 'GATEWAY_AUTH_ENABLED=false', 'GATEWAY_HOST=127.0.0.1');
  await inside('systemctl', 'start', 'stagedoor');
  assert.is(await state(), 'active success', await journal());
  const url = ['--url', 'http://127.0.0.1:8123'];
  const command = 'node /opt/stagedoor/spec/fixtures/stdio-server.ts';
  const words = [
    'instance',
    'register',
    'lines',
    '--id',
    'one',
    '--wait',
    '30',
    '--command',
    command,
    ...url,
  ];
  await inside('/opt/bin/node', '/opt/bin/stagedoor', ...words);
  const called = ['tool', 'call', 'lines', 'echo', 'text=sandboxed', ...url];
  assert.match(await inside('/opt/bin/node', '/opt/bin/stagedoor', ...called), 'sandboxed');
  assert.is(await inside('stat', '-c', '%U %a', '/var/lib/stagedoor/gateway.db'), 'stagedoor 600');
  assert.is(await inside('systemctl', 'show', '-p', 'LimitCORE', 'stagedoor'), 'LimitCORE=0');
  await inside('systemctl', 'stop', 'stagedoor');
  assert.is(await state(), 'inactive success');
  assert.match(await journal(), '"msg":"stopped"');
});

withSystemd('fails at once with invalid settings, and is restarted until they are valid', async () => {
  await settings('GATEWAY_PORT=8124', 'GATEWAY_LOG_LEVEL=chatty');
  assert.is(
    await inside('systemctl', 'start', 'stagedoor').then(
      () => 'started',
      () => 'failed',
    ),
    'failed',
  );
  assert.match(await journal(), 'chatty');
  await settings('GATEWAY_PORT=8124', 'GATEWAY_AUTH_ENABLED=false', 'GATEWAY_HOST=127.0.0.1');
  assert.is(await eventually(state, (now) => now === 'active success', 60_000), 'active success');
  await inside('systemctl', 'stop', 'stagedoor');
});

test.run();

/** Starts systemd in a container, with the unit and its user; returns the reason why that is not possible, or ''. */
async function boot(podman: Podman): Promise<string> {
  const folder = join(podman.folder, 'systemd');
  const files: Readonly<Record<string, string>> = {
    'units/stagedoor.service': await readFile(unit, 'utf8'),
    'units/stagedoor.service.d/path.conf': '[Service]\nEnvironment=PATH=/opt/bin:/usr/bin:/bin\n',
    'units/sandbox.service': SANDBOX,
    'settings/environment': '',
    passwd: 'root:x:0:0::/root:/bin/sh\nstagedoor:x:990:990::/var/lib/stagedoor:/usr/sbin/nologin\n',
    group: 'root:x:0:\nstagedoor:x:990:\n',
    'machine-id': '',
  };
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), text);
  }
  // The clone stands for the installed package.
  await mkdir(join(folder, 'bin'));
  await symlink('/opt/stagedoor/bin/stagedoor.mjs', join(folder, 'bin/stagedoor'));
  await symlink('/opt/node', join(folder, 'bin/node'));
  const mounts = [
    ...['/usr:/usr:ro', `${process.execPath}:/opt/node:ro`, `${repository}:/opt/stagedoor:ro`],
    ...[
      `${folder}/bin:/opt/bin:ro`,
      `${folder}/units:/etc/systemd/system`,
      `${folder}/settings:/etc/stagedoor`,
    ],
    ...['passwd', 'group', 'machine-id'].map((name) => `${folder}/${name}:/etc/${name}`),
  ].flatMap((mount) => ['-v', mount]);
  try {
    const place = ['--systemd=always', '--privileged', '--network=none', '--tmpfs=/var', ...mounts];
    await podman.podman('run', '-d', '--name', NAME, ...place, EMPTY_IMAGE, SYSTEMD, '--unit=basic.target');
    const answer = await eventually(
      () => inside('systemctl', 'is-system-running').catch((error) => String(Object(error).stdout)),
      (said) => /running|degraded/.test(said),
      20_000,
    );
    if (!/running|degraded/.test(answer)) return `no systemd runs in a container here: ${answer.trim()}`;
    // Some machines that run containers allow no sandbox inside of them.
    await inside('systemctl', 'start', 'sandbox');
    return '';
  } catch (thrown) {
    const lines = String(Object(thrown).stderr ?? thrown)
      .trim()
      .split('\n');
    return `no systemd runs in a container here: ${lines.at(-1)}`;
  }
}

/** Runs a command in the container; rejects when it fails. */
function inside(...words: string[]): Promise<string> {
  return (engine as Podman).podman('exec', NAME, ...words);
}

async function settings(...lines: string[]): Promise<void> {
  const file = join((engine as Podman).folder, 'systemd/settings/environment');
  await writeFile(file, `${lines.join('\n')}\n`);
}

async function state(): Promise<string> {
  const shown = await inside(
    'systemctl',
    'show',
    'stagedoor',
    '--value',
    '-p',
    'ActiveState',
    '-p',
    'Result',
  );
  return shown.split('\n').sort().join(' ');
}

function journal(): Promise<string> {
  return inside('journalctl', '-u', 'stagedoor', '--no-pager');
}
