// From a URL to a store, and every way in which that fails. Reachable servers: spec/system/databases.

import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, copyFile, mkdir, readdir, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import * as assert from 'uvu/assert';
import { PACKAGE_ROOT } from '../../src/domain/package-root.ts';
import { addingCommand } from '../../src/persistence/open-failures.ts';
import { migrationStatus, openStore } from '../../src/persistence/open-store.ts';
import { definition } from '../helpers/backends/profiles.ts';
import { until } from '../helpers/eventually.ts';
import { folderOfEach } from '../helpers/folder.ts';
import { freePort } from '../helpers/network/free-port.ts';
import { codeOf } from '../helpers/outcome.ts';
import { suite } from '../helpers/suite.ts';
import { connect } from './connect-options.ts';
import { failureOf } from './open-failure.ts';

const test = suite('openStore', { timeoutMs: 60_000 });
const folder = folderOfEach(test);
const apply = () => ({ cwd: folder(), migrations: 'apply' }) as const;
const require = (cwd = folder()) => ({ cwd, migrations: 'require' }) as const;

test('returns the memory store for memory://, which has no migrations', async () => {
  const store = await openStore('memory://', require());
  assert.is(store.kind, 'memory');
  assert.equal(await migrationStatus('memory://', { cwd: '/' }), { applied: [], pending: [], unknown: [] });
});

test('creates a SQLite file of the URL for its owner only, and opens it again', async () => {
  const store = await openStore('sqlite:///gateway.db', apply());
  await store.templates.save({ name: 'demo', loadBalancer: {} });
  await store.close();
  const file = folder('gateway.db');
  assert.is((await stat(file)).mode & 0o777, 0o600);
  const again = await openStore(`sqlite:///${file}`, require('/elsewhere'));
  assert.is((await again.templates.list()).length, 1);
  await again.close();
  await chmod(file, 0o640);
  await (await openStore('sqlite:///gateway.db', apply())).close();
  assert.is((await stat(file)).mode & 0o777, 0o640, 'the rights of an existing file are kept');
});

test('opens a file in several turns of the event loop, so that others are served between its steps', async () => {
  const url = 'sqlite:///turns.db';
  await (await openStore(url, apply())).close(); // loads the modules, and applies the migrations
  let turns = 0;
  let isOpen = false;
  const count = (): void => {
    if (existsSync(folder('turns.db-wal'))) turns += 1;
    if (!isOpen) setImmediate(count);
  };
  setImmediate(count);
  const store = await openStore(url, apply());
  isOpen = true;
  await store.close();
  assert.ok(turns >= 2, `${turns} turns since its journal was there`);
});

test('reports once that it created a database, and nothing for an existing one', async () => {
  const notices: string[] = [];
  const options = { ...apply(), onNotice: (line: string) => void notices.push(line) };
  const stores = await Promise.all([1, 2, 3].map(() => openStore('sqlite:///gatway.db', options)));
  stores.push(await openStore('sqlite:///gatway.db', options), await openStore('sqlite://', options));
  await Promise.all(stores.map((store) => store.close()));
  assert.equal(notices, [`created the database "${folder('gatway.db')}"`]);
});

test('warns of a copy of an open file without its journal, and not of one with it', async () => {
  const warnings: string[] = [];
  const options = { ...apply(), onWarning: (line: string) => void warnings.push(line) };
  const store = await openStore('sqlite:///gateway.db', options);
  await store.templates.save({ name: 'demo', loadBalancer: {} });
  await copyFile(folder('gateway.db'), folder('bare.db'));
  for (const end of ['', '-wal']) await copyFile(folder(`gateway.db${end}`), folder(`whole.db${end}`));
  await store.close();
  await copyFile(folder('gateway.db'), folder('stopped.db'));
  const whole = await openStore('sqlite:///whole.db', options);
  const stopped = await openStore('sqlite:///stopped.db', options);
  for (const copy of [whole, stopped]) assert.is((await copy.templates.list()).length, 1);
  assert.equal(warnings, []);
  const bare = await openStore('sqlite:///bare.db', options);
  assert.is(warnings.length, 1);
  assert.match(String(warnings[0]), /bare\.db was not empty and had no tables: .*-wal/);
  for (const copy of [whole, stopped, bare]) await copy.close();
});

test('tells an older build from a newer version', async () => {
  for (const [name, words] of [
    ['Migration20250101000000_first', 'was made by an older build before the first release'],
    ['Migration29991231000000_later', 'was changed by a newer version'],
  ] as const) {
    const url = `sqlite:///${folder(`${name}.db`)}`;
    await (await openStore(url, apply())).close();
    const { connection, close } = await connect(url);
    await connection.execute(`insert into stagedoor_migrations (name) values ('${name}')`);
    await close();
    assert.match(await failureOf(openStore(url, apply())), words);
  }
});

test('names the table and the id of a damaged row in one line, without its values', async () => {
  const url = `sqlite:///${folder('x.db')}`;
  const store = await openStore(url, apply());
  await store.templates.save({ name: 'demo', loadBalancer: {} });
  await store.instances.save(definition('one', { template: 'demo' }));
  const { connection, close } = await connect(url);
  await connection.execute(`update instances set metadata = '{"planted": tru'`);
  await connection.execute(`update templates set load_balancer = 'planted'`);
  await connection.execute(`insert into settings (name, value) values ('known', 'planted')`);
  await connection.execute(`insert into audit_call_blocks (id, calls, entries) values ('b1', 1, '{planted')`);
  await close();
  for (const [read, row] of [
    [store.instances.list(), '"demo/one" of the table instances'],
    [store.templates.list(), '"demo" of the table templates'],
    [store.settings.read('known'), '"known" of the table settings'],
    [store.audit.list({ limit: 1 }), '"b1" of the table audit_call_blocks'],
  ] as const) {
    const message = await failureOf(read);
    assert.match(message, `the row ${row} is damaged: `);
    assert.not.match(message, /planted|\n/);
  }
  await store.close();
});

test('fails with DATABASE_UNAVAILABLE while its file is moved or replaced', async () => {
  const store = await openStore('sqlite:///gateway.db', apply());
  const [file, aside] = [folder('gateway.db'), folder('aside.db')];
  const demo = { name: 'demo', loadBalancer: {} };
  await rename(file, aside);
  assert.is(await codeOf(store.templates.save(demo)), 'DATABASE_UNAVAILABLE');
  assert.is(await codeOf(store.ping()), 'DATABASE_UNAVAILABLE');
  await copyFile(aside, file);
  assert.is(await codeOf(store.templates.save(demo)), 'DATABASE_UNAVAILABLE');
  await rename(aside, file);
  await store.templates.save(demo);
  assert.equal(await store.templates.list(), [demo]);
  await store.close();
});

test('creates nothing and migrates nothing without migrations: apply', async () => {
  assert.match(await failureOf(openStore('sqlite:///x.db', require())), 'there is no database');
  assert.match(await failureOf(migrationStatus('sqlite:///x.db', { cwd: folder() })), 'there is no database');
  assert.equal(await readdir(folder()), []);
  await writeFile(folder('x.db'), '');
  assert.match(await failureOf(openStore('sqlite:///x.db', require())), 'has no tables yet');
  const { applied, pending } = await migrationStatus('sqlite:///x.db', { cwd: folder() });
  assert.equal([applied.length, pending.length > 0], [0, true]);
});

test('names the problem of a file, and the remedy', async () => {
  await mkdir(folder('folder'));
  await writeFile(folder('text'), 'this is not a database, but longer than the header of one '.repeat(20));
  for (const [url, words] of [
    ['sqlite:///missing/x.db', 'does not exist: create it first'],
    ['sqlite:///folder', 'is a folder'],
    ['sqlite:///text', 'not a SQLite database: restore a backup'],
  ] as const)
    assert.match(await failureOf(openStore(url, apply())), words);
});

test('names the address of a server that cannot be reached', async () => {
  const port = await freePort();
  for (const scheme of ['postgresql', 'mysql', 'mssql', 'oracle']) {
    const message = await failureOf(openStore(`${scheme}://ada:s3cret@127.0.0.1:${port}/name`, apply()));
    assert.match(
      message,
      new RegExp(`at 127\\.0\\.0\\.1:${port} cannot be reached \\(.+\\): is it running`),
      scheme,
    );
  }
  const unknown = await failureOf(openStore('postgresql://ada:s3cret@no-such-host.invalid/x', apply()));
  assert.match(unknown, /no-such-host\.invalid:5432 cannot be reached \(.*ENOTFOUND/);
});

test('names the package to install when a driver is missing', async () => {
  const { stdout } = await inChild(`
    registerHooks({ resolve: (specifier, context, next) => {
      if (specifier === '@mikro-orm/postgresql')
        throw Object.assign(new Error('Cannot find package ' + specifier), { code: 'ERR_MODULE_NOT_FOUND' });
      return next(specifier, context);
    } });
    const { openStore } = await import(open);
    await openStore('postgresql://h/x', { cwd: '/', migrations: 'apply' })
      .catch(({ name, message }) => console.log(name, message));
  `);
  assert.match(
    stdout,
    'StoreOpenError the driver for PostgreSQL is not installed: run "npm ci --include=dev"',
  );
});

test('the command that adds a driver puts it beside the packages of the program that lacks it, with the version of its MikroORM', async () => {
  const [project, global] = [folder('my project'), folder('global')];
  for (const root of [project, global])
    await mkdir(join(root, 'node_modules/stagedoor/dist'), { recursive: true });
  await writeFile(join(project, 'package.json'), '{}');
  const moduleIn = (root: string) => pathToFileURL(join(root, 'node_modules/stagedoor/dist/open.js')).href;
  const { peerDependencies } = JSON.parse(await readFile(new URL('package.json', PACKAGE_ROOT), 'utf8'));
  const driver = '@mikro-orm/mssql';
  const added = `${driver}@${peerDependencies[driver]}`;
  assert.is(addingCommand(driver, moduleIn(project)), `npm install --prefix '${project}' ${added}`);
  const own = join(global, 'node_modules/stagedoor');
  assert.is(
    addingCommand(driver, moduleIn(global)),
    `npm install --prefix ${own} --omit=dev --save-prod ${added}`,
  );
});

test('loads only the driver of the URL, and only when it is opened', async () => {
  const { stdout } = await inChild(`
    const loaded = [];
    registerHooks({ resolve: (specifier, context, next) => {
      const found = next(specifier, context);
      const name = /node_modules\\/((?:@[^/]+\\/)?[^/]+)\\//.exec(found.url)?.[1];
      if (/mikro|^pg$|mysql|tedious|oracledb|sqlite|kysely/.test(name ?? '')) loaded.push(name);
      return found;
    } });
    const { openStore } = await import(open);
    await openStore('memory://', { cwd: '/', migrations: 'apply' });
    console.log('before', JSON.stringify(loaded));
    await (await openStore('sqlite://', { cwd: '/', migrations: 'apply' })).close();
    console.log('after', JSON.stringify([...new Set(loaded)].sort()));
  `);
  assert.equal(stdout.split('\n'), [
    'before []',
    'after ["@mikro-orm/core","@mikro-orm/migrations","@mikro-orm/sql","@mikro-orm/sqlite","better-sqlite3","kysely"]',
    '',
  ]);
});

test('waits for a process that has locked the file', async () => {
  const url = 'sqlite:///x.db';
  await (await openStore(url, apply())).close();
  const orm = await connect(`sqlite:////${folder('x.db')}`);
  await orm.connection.execute('pragma locking_mode = exclusive');
  await orm.connection.execute('begin exclusive');
  await orm.connection.execute('commit');
  const opening = openStore(url, apply());
  let isOpen = false;
  void opening.then(() => {
    isOpen = true;
  });
  for (let left = 20; left > 0; left -= 1) await new Promise((resolve) => setImmediate(resolve));
  assert.is(isOpen, false);
  await orm.close();
  await (await opening).close();
});

test('does not load the migrator when the tables are up to date', async () => {
  await (await openStore('sqlite:///x.db', apply())).close();
  const { stdout } = await inChild(`
    registerHooks({ resolve: (specifier, context, next) => {
      if (specifier === '@mikro-orm/migrations') console.log('the migrator was loaded');
      return next(specifier, context);
    } });
    const { openStore } = await import(open);
    await (await openStore('sqlite:///x.db', { cwd: ${JSON.stringify(folder())}, migrations: 'apply' })).close();
  `);
  assert.is(stdout, '');
});

/** Runs the text as a module in a process of its own. */
async function inChild(text: string): Promise<{ readonly stdout: string }> {
  const open = new URL('../../src/persistence/open-store.ts', import.meta.url).href;
  const module = `import { registerHooks } from 'node:module'; const open = ${JSON.stringify(open)};\n${text}`;
  return promisify(execFile)(process.execPath, ['--input-type=module', '--eval', module], {
    cwd: fileURLToPath(new URL('../..', import.meta.url)),
  });
}

test('the URL of a database at the port of another one names the address as a possible fault', async () => {
  const greeting = Buffer.from('4a0000000a31312e342e332d4d61726961444200', 'hex');
  const server = await silentServer(greeting);
  const url = `postgresql://ada:secret@${server.address}/gateway`;
  const { message } = Object(await openStore(url, apply()).catch((thrown: unknown) => thrown));
  assert.match(
    message,
    /^PostgreSQL at 127\.0\.0\.1:\d+ cannot be reached \(received invalid .*: is .* the address right\?$/,
  );
  server.close();
});

/** A server that answers nothing, after its greeting if it has one. */
async function silentServer(greeting?: Buffer) {
  const open = new Set<Socket>();
  const reached = Promise.withResolvers<void>();
  const server = createServer((socket) => {
    open.add(socket);
    socket.on('error', () => {}).on('close', () => open.delete(socket));
    socket.resume();
    if (greeting !== undefined) socket.write(greeting);
    reached.resolve();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = Object(server.address());
  const close = () => {
    server.close();
    for (const socket of open) socket.destroy();
  };
  return { address: `127.0.0.1:${port}`, open, reached: reached.promise, close };
}

test('an aborted opening waits no longer for a silent server, and leaves no connection to it', async () => {
  for (const scheme of ['postgresql', 'mysql', 'mssql', 'oracle']) {
    const [server, other] = [await silentServer(), await silentServer()];
    const openAt = async ({ address, reached }: typeof server, signal?: AbortSignal) => {
      const opening = openStore(`${scheme}://ada:secret@${address}/gateway`, { ...apply(), signal });
      const failure = opening.catch((thrown: unknown) => thrown);
      await reached;
      return { failure };
    };
    const stop = new AbortController();
    const patient = await openAt(other); // began earlier, and waits as long as it may
    const opening = await openAt(server, stop.signal);
    const reason = new Error('the start was cancelled');
    stop.abort(reason);
    assert.is(await Promise.race([opening.failure, patient.failure]), reason, scheme);
    await until(() => server.open.size === 0, `the connection of ${scheme} is closed`);
    for (const each of [server, other]) each.close();
    await patient.failure;
  }
});

test.run();
