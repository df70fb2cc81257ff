// A command may not name files of the gateway: for every way to register a command, and for a stored one at its start.

import { existsSync } from 'node:fs';
import { link, mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import * as assert from 'uvu/assert';
import { importDocument } from '../../../src/cli/database/registry-document.ts';
import { fields } from '../../../src/cli/remote/answers.ts';
import { loadConfig } from '../../../src/config/config.ts';
import { createGateway } from '../../../src/gateway/gateway.ts';
import { openStore } from '../../../src/persistence/open-store.ts';
import { parseRegistryDocument } from '../../../src/registry/files/registry-file.ts';
import { type RunningServer, startServer } from '../../../src/server/server.ts';
import { caller, field, newKey, statusAndCode, tokenOf } from '../../helpers/clients/caller.ts';
import { becomes, eventually } from '../../helpers/eventually.ts';
import { folderOfEach } from '../../helpers/folder.ts';
import { codeOf, endOf } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('a command that names files of the gateway', { timeoutMs: 60_000 });
/** The folder in which a gateway is started, as in the quick start. */
const home = folderOfEach(test);
const cleanups: (() => unknown)[] = [];
const URL_OF_HOME = 'sqlite:///gateway.db';

test.before.each(async () => {
  process.chdir(home());
  await mkdir('shared');
  await mkdir('state');
});
test.after.each(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
  process.chdir(tmpdir());
});

test('is refused for paths of the database, the key, the state folder or the configuration, and their parents', async () => {
  await writeFile('gateway.yaml', 'state_dir: state\n');
  const { urls } = await start();
  await symlink(home(), 'shared/way-out');
  await symlink(home('gateway.key'), 'shared/innocent');
  await link('gateway.key', 'shared/same-file');
  const inShared = (word: string) => ({ command: 'node', args: [word], working_dir: home('shared') });
  const refused = [
    ...['.', '..', '/', home(), './shared/..', 'gateway.db', 'gateway.db-wal', './gateway.key', 'state'],
    ...['gateway.yaml', '--root=.', 'type=bind,source=..', '', 'shared/way-out', 'shared/innocent'],
    ...['shared/same-file', 'shared/way-out/shared/..', `${'a='.repeat(3_000)}.`],
  ].map((word) => ({ command: 'node', args: [word] }));
  refused.push(inShared('..'), inShared('way-out'), inShared('--root=../gateway.key'));
  for (const instance of refused) {
    const { status, error_code, detail } = await register(urls, instance);
    assert.equal([status, error_code], [400, 'COMMAND_NOT_ALLOWED'], instance.args.join());
    assert.match(String(detail), /^".*" is .*\.$/);
  }
  for (const working_dir of ['.', home(), 'shared/way-out'])
    assert.is((await register(urls, { command: 'node', working_dir })).status, 400, working_dir);
  const allowed = ['./shared', '-y', '--root=shared', 'server.js', 'a=b', 'shared/new', '/nowhere/at/all'];
  for (const word of allowed)
    assert.is((await register(urls, { command: 'node', args: [word] })).status, 201, word);
  assert.is((await register(urls, { command: 'node' })).status, 201, 'an unset working folder');
  assert.is((await register(urls, inShared('.'))).status, 201);
});

test('is refused for what decides which commands run: the registry file, and all of the folder of templates', async () => {
  await mkdir('elsewhere/templates/own', { recursive: true });
  await writeFile('elsewhere/registry.yaml', 'servers: []\n');
  const { urls } = await start({
    'registry-file': home('elsewhere/registry.yaml'),
    'templates-dir': home('elsewhere/templates'),
  });
  const refused = ['elsewhere', 'elsewhere/registry.yaml', 'elsewhere/templates', 'elsewhere/templates/new'];
  for (const word of [...refused, 'elsewhere/templates/own/template.json', 'elsewhere/templates/own/..'])
    assert.is((await register(urls, { command: 'node', args: [word] })).status, 400, word);
  assert.is((await register(urls, { command: 'node', args: ['elsewhere/other'] })).status, 201);
});

test('is refused for the accounts of clusters: those of kubeconfigs and of the pod', async () => {
  await mkdir('kube/extra', { recursive: true });
  await writeFile('kube/config', '');
  await symlink(home('kube/config'), 'shared/innocent');
  const before = { ...process.env };
  cleanups.push(() => {
    process.env = before;
  });
  process.env = {
    ...before,
    KUBECONFIG: `${home('kube/config')}:other/config`,
    KUBERNETES_SERVICE_HOST: '10.0.0.1',
  };
  const { urls } = await start();
  const account = '/var/run/secrets/kubernetes.io/serviceaccount';
  const words = [
    'kube',
    './kube/config',
    'kube/new/..',
    'other',
    'shared/innocent',
    `--kubeconfig=${home('kube/config')}`,
  ];
  words.push(account, `/var/run/../run/secrets`, '/run/secrets/kubernetes.io', `x:${account}/`);
  for (const word of words)
    assert.is((await register(urls, { command: 'node', args: [word] })).status, 400, word);
  const variable = { command: 'node', env_vars: { KUBECONFIG: home('kube/config') } };
  assert.match(String((await register(urls, variable)).detail), /KUBECONFIG is a kubeconfig of this gateway/);
  for (const word of ['kube/extra', 'other/more', '/run/secrets/github'])
    assert.is((await register(urls, { command: 'node', args: [word] })).status, 201, word);
});

test('is refused to a key with gateway:write that may choose the folder of a file server', async () => {
  const server = ['npx', '-y', '@modelcontextprotocol/server-filesystem@2026.8.31'];
  const flags = { 'allowed-commands': JSON.stringify([[...server, '*path']]) };
  const { urls, gateway } = await start(flags, { GATEWAY_ADMIN_PASSWORD: 'correct horse 7' });
  const url = String(urls[0]);
  const admin = caller(url, await tokenOf(url, 'admin', 'correct horse 7'));
  const { headers } = await newKey(admin, 'writer', ['gateway:write', 'gateway:read', 'tools:call']);
  const writer = caller(url, headers);
  await symlink(home(), 'shared/way-out');
  const registerAt = (folder: string) =>
    writer('POST /gateway/register?wait=20', {
      template_name: 'demo',
      instance: { command: 'npx', args: [...server.slice(1), folder] },
    });
  const refused = [
    ...[
      `/proc/self/cwd/x/..`,
      `/proc/${process.pid}/cwd/x/..`,
      `/proc/${process.pid}`,
      '/proc',
      '/proc/thread-self/root',
    ],
    ...[
      'shared/way-out/x/..',
      '/dev/fd/..',
      '/proc/self/cwd/shared',
      `/tmp:${home()}`,
      `file://${home()}`,
      '~',
      'x/../.',
    ],
  ];
  for (const folder of refused)
    assert.equal(statusAndCode(await registerAt(folder)), [400, 'COMMAND_NOT_ALLOWED'], folder);
  assert.equal(gateway.servers(), []);
  const allowed = await registerAt('shared');
  assert.equal([allowed.status, field(allowed, 'healthy')], [201, true]);
});

test('is refused with a message that names the exposed file and the remedy', async () => {
  const { urls } = await start();
  assert.is(
    (await register(urls, { command: 'node', args: ['.'] })).detail,
    `"." is a folder that holds the database of this gateway (${home('gateway.db')}): with it a program can make ` +
      'itself an admin; name another folder, such as ./shared, or allow it with "force": true (--force).',
  );
});

test('is accepted with force, which is stored for the next start', async () => {
  const first = await start();
  const forced = await register(first.urls, { id: 'one', ...leavesMark('first'), force: true });
  assert.is(forced.status, 201);
  await becomes(() => existsSync(home('first')), true);
  await first.close();
  await rm('first');
  await start();
  await becomes(() => existsSync(home('first')), true);
});

test('is accepted with force in the fields of the instance', async () => {
  const { urls } = await start();
  const program = { command: 'node', args: ['.'] };
  for (const [force, status] of [
    [true, 201],
    [false, 400],
  ] as const)
    for (const [path, fields] of [
      ['/gateway/register', { instance: { ...program, force } }],
      ['/gateway/register', { ...program, force }],
      ['/servers', { config: { ...program, force } }],
    ] as const) {
      const answer = await post(`${urls[0]}${path}`, { template_name: 'demo', ...fields });
      const shown = force ? true : undefined;
      assert.equal([answer.status, answer.force], [status, shown], `${path} ${JSON.stringify(fields)}`);
    }
  assert.is((await register(urls, { command: 'node' })).force, undefined, 'not forced');
});

test('is refused in a registry file, unless the file forces it', async () => {
  const entries = [
    { id: 'bad', command: 'node .' },
    { id: 'forced', command: 'node .', force: true },
  ];
  await writeFile('registry.json', JSON.stringify({ templates: { demo: { instances: entries } } }));
  const { gateway, warnings } = await start({ 'registry-file': 'registry.json' });
  const found = gateway.servers().map(({ definition }) => definition.id);
  assert.equal(found, ['forced']);
  assert.match(
    warnings.join('\n'),
    /registry file: demo\/bad is skipped: "\." is a folder that holds the database/,
  );
});

test('is refused by an import into the database', async () => {
  const store = await openStore(URL_OF_HOME, { cwd: home(), migrations: 'apply' });
  const instances = [
    { id: 'bad', command: 'node .' },
    { id: 'good', command: 'node ./shared' },
  ];
  const contents = await parseRegistryDocument(
    JSON.stringify({ templates: { demo: { instances } } }),
    'mcp.json',
  );
  const { added, problems } = await importDocument(store, contents, {
    ...{ nodeId: 'local', now: '2027-01-01T00:00:00.000Z', folder: home(), protectedPaths: [] },
  });
  assert.equal(added, ['demo/good']);
  assert.match(problems.join('\n'), /^demo\/bad: "\." is a folder that holds the database/);
  await store.close();
});

test('is refused to a program that embeds a gateway with a SQLite file', async () => {
  const store = await openStore(URL_OF_HOME, { cwd: home(), migrations: 'apply' });
  const gateway = await createGateway({ store });
  assert.is(await codeOf(gateway.register('demo', { command: 'node .' })), 'COMMAND_NOT_ALLOWED');
  assert.is(await codeOf(gateway.testConnection('demo', { command: 'node .' })), 'COMMAND_NOT_ALLOWED');
  await gateway.close();
  await store.close();
});

test('is looked for from the home folder of the user that programs run as', async () => {
  await mkdir('users/ada', { recursive: true });
  await mkdir('secret');
  await writeFile('secret/registry.yaml', '');
  const user = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0, home: home('users/ada') };
  const protectedPaths = [{ path: home('secret/registry.yaml'), what: 'the registry file of this gateway' }];
  const store = await openStore(URL_OF_HOME, { cwd: home(), migrations: 'apply' });
  await store.templates.save({ name: 'demo', loadBalancer: {} });
  await store.instances.save({
    ...{ id: 'stored', serverId: 'stored', template: 'demo', transport: 'stdio', command: 'node' },
    ...{ args: ['../../secret'], env: {}, headers: {}, weight: 1, metadata: {}, source: 'api' },
    ...{ nodeId: 'local', createdAt: '2027-01-01T00:00:00.000Z', updatedAt: '2027-01-01T00:00:00.000Z' },
  });
  const gateway = await createGateway({ store, programs: { user, protectedPaths } });
  const codeFor = (program: object) =>
    endOf(gateway.register('demo', { command: 'node', ...program }, { waitMs: 0 }));
  for (const word of [
    '../../secret',
    '--root=../../secret/registry.yaml',
    '~/../../secret',
    '$HOME/../../secret',
  ])
    assert.is(await codeFor({ args: [word] }), 'COMMAND_NOT_ALLOWED', word);
  for (const program of [
    { args: ['..'], working_dir: 'users/ada' }, // a working folder is one from the folder of the gateway
    { args: ['secret'] },
  ])
    assert.is(await codeFor(program), 'done', JSON.stringify(program));
  assert.is(await codeFor({ args: ['../secret'], working_dir: 'shared' }), 'COMMAND_NOT_ALLOWED');
  const reasonOf = () => gateway.instance('demo', 'stored').snapshot.reason;
  assert.match(
    String(await eventually(async () => reasonOf(), Boolean)),
    /^it is not started: "..\/..\/secret"/,
  );
  await gateway.close();
  await store.close();
});

test('is not started if it is stored, and the instance shows why', async () => {
  const store = await openStore(URL_OF_HOME, { cwd: home(), migrations: 'apply' });
  await store.templates.save({ name: 'demo', loadBalancer: {} });
  await store.instances.save({
    ...{ id: 'one', serverId: 'one', template: 'demo', transport: 'stdio', ...leavesMark('mark') },
    ...{ env: {}, headers: {}, weight: 1, metadata: {}, source: 'api', nodeId: 'local' },
    ...{ createdAt: '2027-01-01T00:00:00.000Z', updatedAt: '2027-01-01T00:00:00.000Z' },
  });
  await store.close();
  const { gateway } = await start();
  const reasonOf = () => gateway.instance('demo', 'one').snapshot.reason;
  const found = String(await eventually(async () => reasonOf(), Boolean));
  assert.match(found, /^it is not started: "\." is a folder that holds the database of this gateway/);
  assert.is(existsSync('mark'), false);
});

test.run();

async function start(
  flags: Record<string, string> = {},
  env: Record<string, string> = { GATEWAY_AUTH_ENABLED: 'false' },
): Promise<RunningServer> {
  const config = loadConfig({ flags: { host: '127.0.0.1', port: '0', ...flags }, env, cwd: home() });
  const server = await startServer(config);
  cleanups.push(() => server.close());
  return server;
}

/** A program that creates a file when it runs, with the folder of the gateway as an argument. */
function leavesMark(name: string) {
  const script = `require('node:fs').writeFileSync(${JSON.stringify(home(name))}, ''); setInterval(() => {}, 1e3)`;
  return { command: process.execPath, args: ['-e', script, '.'] };
}

async function register(urls: readonly string[], instance: object) {
  return post(`${urls[0]}/gateway/register`, { template_name: 'demo', instance });
}

async function post(
  url: string,
  body: object,
): Promise<Record<string, unknown> & { readonly status: number }> {
  const answer = await caller('')(`POST ${url}`, body);
  return { ...fields(answer.body), status: answer.status };
}
