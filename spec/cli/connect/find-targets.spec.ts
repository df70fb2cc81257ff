// How local and remote clients reach a template, by the registry's records of its instances. The container engines are small
// programs here that know one container.

import { chmodSync, writeFileSync } from 'node:fs';
import { delimiter } from 'node:path';
import * as assert from 'uvu/assert';
import { findTargets } from '../../../src/cli/connect/find-targets.ts';
import { readCatalogue } from '../../../src/templates/catalogue.ts';
import { folderOfAll } from '../../helpers/folder.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('a template is reached');
const path = process.env.PATH;
const folder = folderOfAll(test);
test.before(() => {
  engine('docker', 'exit 1');
  engine('podman', '[ "$*" = "container inspect 0123456789abcdef" ]');
  process.env.PATH = `${folder()}${delimiter}${path}`;
});
test.after(() => {
  process.env.PATH = path ?? '';
});

function engine(name: string, script: string): void {
  writeFileSync(folder(name), `#!/bin/sh\n${script}\n`);
  chmodSync(folder(name), 0o755);
}

const notes: string[] = [];

/** fetch refuses port 9: whether a key is needed stays unknown, and so a key is used. */
async function stdioOf(
  instances: readonly object[],
  url = 'http://127.0.0.1:9',
  env: Readonly<Record<string, string>> = {},
  environment: readonly string[] = [],
  isTrusted = true,
): Promise<unknown> {
  const gateway = { url, request: async () => ({ templates: { x: { instances } }, environment }) };
  const choice = {
    key: { variable: 'STAGEDOOR_API_KEY' },
    env,
    isTrusted,
    note: (text: string) => notes.push(text),
  };
  const { program, command, args, key } = (await findTargets(gateway, 'x', choice)).stdio;
  return program === 'bridge' ? program : { program, command, args, key };
}

const local = {
  transport: 'stdio',
  command: 'npx',
  args: ['-y', '@scope/server@1.0.0'],
  working_dir: null,
  env_vars: {},
};
const contained = { ...local, command: 'node', args: ['server.js'], container: '0123456789abcdef' };

test('by exec in a container that a local engine knows', async () => {
  assert.equal(await stdioOf([contained]), {
    ...{ program: 'container', command: 'podman', key: undefined },
    args: ['exec', '-i', '0123456789ab', 'node', 'server.js'],
  });
  const { args } = (await stdioOf([contained], undefined, { LEVEL: 'a' })) as { args: readonly string[] };
  assert.equal(args.slice(0, 5), ['exec', '-i', '-e', 'LEVEL', '0123456789ab']);
});

test('by the bridge if no local engine knows the container', async () => {
  const unknown = { ...contained, container: 'ffff' };
  assert.is(await stdioOf([unknown]), 'bridge');
});

test('by the registered command if a client can start it', async () => {
  const wanted = { program: 'command', command: 'npx', args: local.args, key: undefined };
  assert.equal(await stdioOf([local]), wanted);
  assert.equal(await stdioOf([{ ...contained, container: 'ffff' }, local]), wanted);
});

test('by the bridge if a client cannot start the registered command in the same way', async () => {
  const others = [
    { working_dir: '/srv' },
    { env_vars: { TOKEN: '***' } },
    { args: ['-y', 'server', './data'] },
    { args: ['--dir=data/x'] },
    { command: null },
    { transport: 'http', command: null },
  ];
  for (const record of others) assert.is(await stdioOf([{ ...local, ...record }]), 'bridge');
  assert.is(await stdioOf([local], 'http://192.0.2.1:9'), 'bridge');
  assert.is(await stdioOf([local], undefined, {}, ['LEVEL']), 'bridge');
});

test('by the bridge if only the gateway names the program, and by a command of the local catalogue', async () => {
  const { templates } = await readCatalogue();
  const everything = templates.find(({ id }) => id === 'everything');
  const { command, args = [] } = everything ?? {};
  const known = { ...local, command, args };
  const untrusted = (record: object) => stdioOf([record], undefined, {}, [], false);
  assert.equal(await untrusted(known), { program: 'command', command, args, key: undefined });
  notes.length = 0;
  const others = [local, contained, { ...known, args: [...args, 'more'] }, { ...known, command: '/tmp/npx' }];
  for (const record of others) assert.is(await untrusted(record), 'bridge');
  assert.is(notes.length, others.length);
  assert.match(
    notes[0] ?? '',
    '["npx","-y","@scope/server@1.0.0"] is named by http://127.0.0.1:9 and not in the local catalogue',
  );
});

test.run();
