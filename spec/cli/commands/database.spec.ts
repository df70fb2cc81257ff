// The commands about a database, on a SQLite file.

import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import * as assert from 'uvu/assert';
import { withDatabase } from '../../../src/cli/database/open-database.ts';
import { loadConfig } from '../../../src/config/config.ts';
import { databaseUnavailable } from '../../../src/domain/errors/gateway-errors.ts';
import { openStore } from '../../../src/persistence/open-store.ts';
import { readRegistryFile } from '../../../src/registry/files/registry-file.ts';
import { folderOfEach } from '../../helpers/folder.ts';
import { suite } from '../../helpers/suite.ts';
import { recordingTerminal } from '../recording-terminal.ts';
import { complaint, printed, runCommand } from './against-gateway.ts';

const test = suite('db migrate, status, import and export');
const folder = folderOfEach(test);
const onPosix = test.needs(process.platform !== 'win32', 'files have no modes on Windows');

const run = (line: string, env: Record<string, string> = {}) =>
  runCommand(['db', ...line.split(' ')], env, folder());
const put = (name: string, document: unknown) => writeFileSync(folder(name), JSON.stringify(document));

test('migrate creates the database, lists the applied migrations, and reports up to date the second time', async () => {
  const path = folder('gateway.db');
  const first = await run('migrate');
  assert.equal([first.code, first.err], [0, `migrating ${path}`]);
  assert.match(first.out, /^applied \S+(\napplied \S+)*\n.*gateway\.db is up to date$/);
  if (process.platform !== 'win32') assert.is(statSync(path).mode & 0o077, 0);
  assert.is((await run('migrate')).out, `${path} was up to date`);
  const { database, applied } = JSON.parse((await run('migrate --json --database sqlite:///a.db')).out);
  assert.equal([database, applied.length > 0], [folder('a.db'), true]);
  const refused = await complaint(run('migrate --database sqlite:///no/a.db'));
  assert.match(refused, /^migrating .*\nstagedoor: the folder of the database .* does not exist/);
  assert.is(existsSync(folder('no')), false);
});

test('status fails for a missing database, and shows an existing one', async () => {
  const missing = await run('status');
  assert.is(missing.code, 1);
  assert.match(missing.out, /^answers +no: there is no database .*"npx stagedoor db migrate"$/m);
  const { reason, ...none } = JSON.parse((await run('status --json')).out);
  const database = folder('gateway.db');
  const unusable = { is_reachable: false, is_usable: false, migrations: null, warnings: [] };
  assert.equal(none, { database, kind: 'sqlite', ...unusable });
  assert.equal(existsSync(database), false);
  await run('migrate');
  const out = await printed(run('status'));
  assert.match(
    out,
    /^database +.*gateway\.db\nkind +sqlite\nanswers +yes\nmigrations +\d+ applied, 0 pending$/,
  );
  const { migrations, ...state } = JSON.parse((await run('status --json')).out);
  assert.equal([migrations.applied.length > 0, migrations.pending, migrations.unknown], [true, [], []]);
  const usable = { is_reachable: true, is_usable: true, reason: null, warnings: [] };
  assert.equal(state, { database, kind: 'sqlite', ...usable });
});

onPosix('status warns of a file that other users can read, and does not fail', async () => {
  const database = `--database sqlite:///${folder("ada's.db")}`;
  await run(`migrate ${database}`);
  for (const mode of [0o640, 0o604]) {
    chmodSync(folder("ada's.db"), mode);
    const out = await printed(run(`status ${database}`));
    const advice = `other users can read the database: run "chmod 600 '${folder()}/ada'\\''s.db'"`;
    assert.match(out.replace(/ {2,}/g, ' '), `\nwarning ${advice}`);
  }
});

test('every command fails for an in-memory or unknown database, and shows no password of an unreachable one', async () => {
  for (const url of ['memory://', 'sqlite://', 'sqlite:///:memory:', 'mongodb://a/b'])
    for (const command of ['status', 'migrate', 'export']) {
      const isKnown = !url.startsWith('mongo');
      const reason = isKnown
        ? `the database ${url} exists only inside`
        : 'a database is named by a URL such as sqlite:///gateway.db';
      assert.match(await complaint(run(`${command} --database ${url}`)), `stagedoor: ${reason}`);
    }
  const env = { GATEWAY_DATABASE_URL: 'postgresql://me:planted@127.0.0.1:1/db' };
  const { code, out } = await run('status --json', env);
  const { kind, is_reachable: isReachable } = JSON.parse(out);
  assert.equal([code, kind, isReachable], [1, 'postgresql', false]);
  assert.not.match(out, 'planted');
});

test('a database that becomes unavailable is a CommandFailure, and another error stays unchanged', async () => {
  await run('migrate');
  const flags = { database: 'sqlite:///gateway.db' };
  const config = loadConfig({ flags, env: {}, cwd: folder(), readFile: () => undefined });
  const failure = (error: Error) =>
    withDatabase(config, recordingTerminal({ folder: folder() }), () => Promise.reject(error)).catch(String);
  const away = 'the database does not answer: gone (DATABASE_UNAVAILABLE)';
  assert.is(await failure(databaseUnavailable(new Error('gone'))), `CommandFailure: ${away}`);
  assert.is(await failure(new Error('a bug')), 'Error: a bug');
});

test('a password on the command line is refused and not repeated; the environment may name the database', async () => {
  const err = await complaint(run('status --database mysql://me:planted@127.0.0.1/db'), 2);
  assert.match(err, /^stagedoor: --database: [^\n]*GATEWAY_DATABASE_URL$/);
  assert.not.match(err, 'planted');
  const other = await run('status', { GATEWAY_DATABASE_URL: 'sqlite:///other.db' });
  assert.match(other.out, /^database +.*other\.db$/m);
});

test('import accepts a document of mcpServers, and names the node that runs its programs', async () => {
  await run('migrate');
  put('mcp.json', { mcpServers: { memory: { command: 'npx', args: ['-y', 'x'] } } });
  const out = await printed(run('import mcp.json --node-id build-1:8080'));
  const where = `1 instance is in ${folder('gateway.db')}; build-1:8080 runs the programs`;
  assert.equal(out.split('\n'), ['added memory/memory', where]);
  const store = await openStore('sqlite:///gateway.db', { cwd: folder(), migrations: 'require' });
  const [{ source, nodeId } = {}] = await store.instances.list();
  await store.close();
  assert.equal([source, nodeId], ['api', 'build-1:8080']);
});

test('import replaces existing instances, and imports valid entries even if it fails for others', async () => {
  await run('migrate');
  put('a.yaml', { servers: { far: { url: 'http://127.0.0.1:9' } } });
  await run('import a.yaml');
  const replaced = JSON.parse((await run('import a.yaml --json')).out);
  assert.equal(replaced, { added: [], replaced: ['far/far'], problems: [] });
  put('a.json', { servers: { good: { url: 'http://a' }, bad: {} } });
  const { code, out, err } = await run('import a.json');
  assert.is(code, 1);
  assert.match(out, /^added good\/good$/m);
  assert.match(err, /^servers\.bad: /);
  writeFileSync(folder('broken.json'), '{"templates": ');
  for (const name of ['none.json', 'broken.json'])
    assert.match(await complaint(run(`import ${name}`)), /^stagedoor: registry file [^\n]+$/);
});

test('import names the instances that it replaces without their variables or headers', async () => {
  await run('migrate');
  const far = { url: 'http://127.0.0.1:9', headers: { A: 'planted', B: 'other' } };
  put('full.json', {
    servers: { far, near: { command: 'x', env: { KEY: 'planted' } }, plain: { url: 'http://a' } },
  });
  assert.not.match((await run('import full.json')).err, 'removed');
  await run('export --file out.json');
  const { code, err } = await run('import out.json');
  assert.is(code, 0);
  assert.match(
    err,
    /^removed the environment variables or headers of far\/far, near\/near, which out\.json leaves out$/m,
  );
  assert.not.match((await run('import out.json')).err, 'removed');
  put('changed.json', { servers: { far: { ...far, headers: { A: 'new' } } } });
  await run('import full.json');
  assert.match(
    (await run('import changed.json')).err,
    /^removed .* of far\/far, which changed\.json leaves out$/m,
  );
});

test('export and import carry the stored template definitions; a gateway does not read them from its file', async () => {
  await run('migrate');
  const definition = { name: 'Files', description: 'Reads files.', version: '1.0.0', command: 'node' };
  const views = { desk: { from: [{ template: 'files' }] } };
  put('in.json', { definitions: { files: definition }, views });
  const lines = (out: string) => out.split('\n').slice(0, -1);
  assert.equal(lines(await printed(run('import in.json'))), ['added definitions.files', 'added views.desk']);
  const again = lines(await printed(run('import in.json')));
  assert.equal(again, ['replaced definitions.files', 'replaced views.desk']);
  await run('export --file out.json');
  const { definitions } = JSON.parse(readFileSync(folder('out.json'), 'utf8'));
  assert.equal(definitions, { files: definition });
  await run('migrate --database sqlite:///copy.db');
  await printed(run('import out.json --database sqlite:///copy.db'));
  assert.equal(
    JSON.parse(await printed(run('export --database sqlite:///copy.db'))).definitions,
    definitions,
  );
  const read = await readRegistryFile(folder('out.json'));
  const line = 'definitions: not read by a gateway; "stagedoor db import" stores them';
  assert.equal([read.problems, read.isPartial], [[line], false]);
});

const instances: readonly Readonly<Record<string, unknown>>[] = [
  { id: 'alone', transport: 'stdio', command: '/opt/program', args: [], weight: 1 },
  {
    ...{ id: 'far', transport: 'http', endpoint: 'http://127.0.0.1:9/mcp', headers: { A: 'planted' } },
    ...{ weight: 2, metadata: { zone: 'a' } },
  },
  {
    ...{ id: 'near', transport: 'stdio', command: 'node', args: ['a b'], working_dir: '/srv' },
    ...{ env_vars: { B: 'planted' }, weight: 1 },
  },
];
const templates = { demo: { load_balancer: { timeout: 9 }, instances }, empty: { instances: [] } };
const document = { templates };
/** Tests that begin with that document in the database. */
const withDocument = (name: string, body: () => Promise<void>) =>
  test(name, async () => {
    await run('migrate');
    put('in.json', document);
    assert.is((await run('import in.json')).code, 0);
    await body();
  });

withDocument('secrets are stored encrypted, and exported only with --with-secrets', async () => {
  assert.not.match(readFileSync(folder('gateway.db'), 'latin1'), 'planted');
  const { code, out, err } = await run('export');
  const plain = instances.map(({ headers: _headers, env_vars: _variables, ...rest }) => rest);
  assert.equal(JSON.parse(out), {
    templates: { ...templates, demo: { ...templates.demo, instances: plain } },
  });
  const what = 'left out the environment variables and headers of demo/far, demo/near';
  assert.equal([code, err], [0, `${what}; --with-secrets includes them`]);
  assert.equal(JSON.parse(await printed(run('export --with-secrets'))), document);
});

withDocument('export writes a new file that only its owner can read, and creates no folder', async () => {
  const { code, out, err } = await run('export --with-secrets --file out.json');
  assert.equal([code, out, err], [0, '', `wrote ${folder('out.json')}, 3 instances`]);
  assert.equal(JSON.parse(readFileSync(folder('out.json'), 'utf8')), document);
  if (process.platform !== 'win32') assert.is(statSync(folder('out.json')).mode & 0o777, 0o600);
  for (const taken of ['out.json', 'gateway.db', '.']) {
    const line = `stagedoor: ${resolve(folder(taken))} already exists`;
    assert.is(await complaint(run(`export --file ${taken}`)), line);
  }
  assert.equal(JSON.parse(readFileSync(folder('out.json'), 'utf8')), document);
  const why = `there is no folder ${folder('nope')}`;
  const line = `stagedoor: ${folder('nope', 'x.json')} cannot be written: ${why}`;
  assert.is(await complaint(run('export --file nope/x.json')), line);
  assert.is(existsSync(folder('nope')), false);
});

withDocument('export with secrets fails when the secret key is a different one', async () => {
  const env = { GATEWAY_SECRET_KEY: 'another-secret-'.repeat(3) };
  const unreadable = await complaint(run('export --with-secrets', env));
  assert.match(unreadable, /^stagedoor: demo\/far: [^\n]+; demo\/near: [^\n]+$/);
  const without = await run('export', env);
  assert.is(without.code, 0);
  assert.match(without.err, /^left out the environment variables and headers of demo\/far, demo\/near;/);
});

withDocument(
  'rekey moves secrets to another encryption key, which is the only one that is needed then',
  async () => {
    const [next, old] = ['next-key-'.repeat(4), readFileSync(folder('gateway.key'), 'utf8').trim()];
    const onlyNext = { GATEWAY_SECRET_KEY: 's'.repeat(32), GATEWAY_ENCRYPTION_KEY: next };
    const both = { ...onlyNext, GATEWAY_ENCRYPTION_KEY: `${next}, ${old}` };
    const unreadable = await run('rekey', onlyNext);
    assert.is(unreadable.code, 1);
    assert.match(unreadable.out, /^database +.*gateway\.db\n.* 0\n.* 0\ncannot be decrypted +2$/);
    const reason = 'cannot be read: encrypted with the key \\w{8}, which is not among the encryption keys';
    const lines = ['"env" of the instance demo/near', '"headers" of the instance demo/far'];
    assert.match(unreadable.err, new RegExp(`^${lines.map((line) => `${line} ${reason}`).join('\n')}$`));

    const { out } = await run('rekey', both);
    assert.match(out, /\nencrypted again +2\nalready current +0\ncannot be decrypted +0$/);
    const again = JSON.parse(await printed(run('rekey --json', both)));
    const counts = { done: 0, current: 2, unreadable: 0, reasons: [] };
    assert.equal(again, { database: folder('gateway.db'), ...counts });
    assert.equal(JSON.parse(await printed(run('export --with-secrets', onlyNext))), document);
  },
);

withDocument('rekey follows a secret from which the encryption key is derived', async () => {
  const [next, old] = ['next-key-'.repeat(4), readFileSync(folder('gateway.key'), 'utf8').trim()];
  assert.match(await printed(run('rekey', { GATEWAY_SECRET_KEY: `${next},${old}` })), /again +2\n/);
  const env = { GATEWAY_SECRET_KEY: next };
  assert.equal(JSON.parse(await printed(run('export --with-secrets', env))), document);
  assert.match(await complaint(run('export --with-secrets')), /^stagedoor: demo\/far: .* cannot be read: /);
});

test('rekey needs a database that outlives its gateway', async () => {
  assert.match(await complaint(run('rekey --database memory://')), 'exists only inside a running gateway');
});

test.run();
