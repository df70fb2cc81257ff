// Which npx commands are launched as the program of an installed package.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders

import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import * as assert from 'uvu/assert';
import { instanceInputOf, launchOf } from '../../src/templates/launch.ts';
import { folderOfAll } from '../helpers/folder.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('launch of a command', { timeoutMs: 30_000 });

const folder = folderOfAll(test)();
test.before(async () => {
  const script = '#!/usr/bin/env node\nconsole.log(1);\n';
  await install('plain', { bin: 'run.js' }, { 'run.js': script });
  await install('@scope/server', { bin: { 'mcp-server': 'dist/run.js' } }, { 'dist/run.js': script });
  const tools = { bin: { other: 'other.js', tools: './tools.js' } };
  await install('tools', tools, { 'other.js': script, 'tools.js': script });
  await install('unclear', { bin: { one: 'a.js', two: 'b.js' } }, { 'a.js': script, 'b.js': script });
  await install('shell', { bin: 'run.sh' }, { 'run.sh': '#!/bin/sh\n' });
  await install('lost', { bin: 'gone.js' }, {});
});

async function install(
  name: string,
  manifest: object,
  files: Readonly<Record<string, string>>,
): Promise<void> {
  const home = join(folder, 'node_modules', name);
  await mkdir(home, { recursive: true });
  await writeFile(join(home, 'package.json'), JSON.stringify({ name, version: '1.2.3', ...manifest }));
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(home, path)), { recursive: true });
    await writeFile(join(home, path), text);
  }
}

/** The resolved command line without the folder; undefined if it is unchanged. */
function resolved(...[command = '', ...args]: string[]): string[] | undefined {
  const launch = { command, args };
  const result = launchOf(launch, { from: join(folder, 'src', 'deep'), node: 'NODE' });
  if (result === launch) return undefined;
  const modules = join(folder, 'node_modules');
  return [result.command, ...result.args].map((word) => word.replace(modules, '').replaceAll('\\', '/'));
}

test('starts the program of an installed package with Node', () => {
  assert.equal(resolved('npx', '-y', 'plain', '--x', 'a b'), ['NODE', '/plain/run.js', '--x', 'a b']);
  assert.equal(resolved('npx', '--yes', 'plain'), ['NODE', '/plain/run.js']);
  assert.equal(resolved('npx.cmd', '-y', 'plain@1.2.3'), ['NODE', '/plain/run.js']);
  assert.equal(resolved('npx', '-y', '@scope/server@1.2.3', 'stdio'), [
    'NODE',
    '/@scope/server/dist/run.js',
    'stdio',
  ]);
  assert.equal(resolved('npx', '-y', '@scope/server'), ['NODE', '/@scope/server/dist/run.js']);
});

test('selects the program that npx would select', () => {
  assert.equal(resolved('npx', '-y', 'tools'), ['NODE', '/tools/tools.js']);
  assert.is(resolved('npx', '-y', 'unclear'), undefined);
});

test('leaves a command unchanged if its program is not certain', () => {
  for (const command of [
    'npx plain',
    'npx -y plain@1.2.4',
    'npx -y plain@latest',
    'npx -y missing',
    'npx -y -p plain run',
    'npx -y plain -- --x',
    'npx -y ./plain',
    'npx -y owner/plain',
    'npx -y shell',
    'npx -y lost',
    'node -y plain',
  ]) {
    assert.is(resolved(...command.split(' ')), undefined, command);
  }
});

const described = { id: 'demo', name: 'Demo', description: 'Shows things.', version: '1.2.3' };
const values = '/tmp/my scratch';

test('splits a command into words before it replaces placeholders', () => {
  const input = instanceInputOf({ ...described, command: 'run "a b" ${SCRATCH}' }, values);
  assert.equal(input, { command: 'run', args: ['a b', '/tmp/my scratch'] });
});

test('passes the environment only to a command, not to an endpoint', () => {
  const endpoint = 'http://127.0.0.1:8080/mcp';
  assert.equal(instanceInputOf({ ...described, endpoint, environment: { A: 'b' } }, values), { endpoint });
});

test.run();
