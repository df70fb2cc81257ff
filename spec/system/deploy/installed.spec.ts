// The package of `npm pack`, unpacked below node_modules beside the packages that it declares, as after `npm install
// stagedoor`: it runs and needs nothing else; a program that embeds it runs and compiles. Its size is printed.

import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import * as assert from 'uvu/assert';
import { folderOfAll } from '../../helpers/folder.ts';
import { readmeOutput, readmeProgram } from '../../helpers/programs/readme-program.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('journey: the installed package', { timeoutMs: 180_000 });
const run = promisify(execFile);
const repository = fileURLToPath(new URL('../../..', import.meta.url));
const isWindows = process.platform === 'win32';
/** Uses the parts of the public API that have types of their own. */
const EMBEDDER = `
import { createGateway, GatewayError, openStore, watchRevision } from 'stagedoor';
import type { GatewayOptions, NodeOptions, Store, TemplateRules, ViewDefinition } from 'stagedoor';

const store: Store = await openStore('sqlite::memory:', { cwd: '.', migrations: 'apply' });
const node: NodeOptions = { id: 'here' };
const definitions: readonly TemplateRules[] = [{ id: 'defined' }];
const options: GatewayOptions = {
  store,
  node,
  definitions,
  storeChanges$: watchRevision(store),
  policy: { strategy: 'least_connections' },
  inspect: ({ type, actorRef, event }) => console.log(type, actorRef.sessionId, event?.type),
};
const gateway = await createGateway(options);
gateway.events$.subscribe(({ type }) => console.log(type));
gateway.on('instance.unhealthy').subscribe(({ instanceId, reason }) => console.log(instanceId, reason));
gateway.health$('t').subscribe(({ healthy, total }) => console.log(healthy, total));
const { definition } = await gateway.register('t', { handler: ({ method }) => ({ method }), id: 'a' }, { waitMs: 1_000 });
await gateway.register('t', { endpoint: 'http://127.0.0.1:9/mcp', weight: 2 }, { mayBeUnhealthy: true });
const { result } = await gateway.call('t', 'echo', { message: definition.id }, { timeoutMs: 5, signal: AbortSignal.timeout(5) });
await gateway.exchange('t', { method: 'ping' }).forEach(({ event }) => console.log(event.kind, result));
if (gateway.stats().clients.maxSessions > 0) throw new GatewayError('INTERNAL_ERROR', 'no');
const view: ViewDefinition = { id: 'v', from: [{ template: 't' }] };
console.log((await gateway.views.preview(view)).tools);
// @ts-expect-error: what the server uses is not part of the API
gateway.internals;
// @ts-expect-error: nor are the functions that it asks about other nodes
options.others;
// @ts-expect-error: nor are live values
gateway.eachServer(['t']);
await gateway.close({ graceMs: 0 });
`;
const folder = folderOfAll(test)();
let program = '';

test.before(async () => {
  if (isWindows) return;
  const packed = await npm('pack', '--json', '--pack-destination', folder);
  const [{ filename, size, unpackedSize }] = JSON.parse(packed.slice(packed.indexOf('[')));
  const modules = join(folder, 'node_modules');
  await mkdir(join(modules, 'stagedoor'), { recursive: true });
  await run('tar', [
    '-xzf',
    join(folder, filename),
    '-C',
    join(modules, 'stagedoor'),
    '--strip-components=1',
  ]);
  const { dependencies } = JSON.parse(await npm('pkg', 'get', 'name', 'dependencies'));
  for (const name of Object.keys(dependencies)) {
    await mkdir(dirname(join(modules, name)), { recursive: true });
    await symlink(join(repository, 'node_modules', name), join(modules, name));
  }
  program = join(modules, 'stagedoor/bin/stagedoor.mjs');
  const { packages } = JSON.parse(await readFile(join(repository, 'package-lock.json'), 'utf8'));
  const needed = Object.entries<{ dev?: boolean }>(packages).filter(
    ([path, { dev }]) =>
      path.startsWith('node_modules/') &&
      !dev &&
      !/\/node-(linux|win)-|^node_modules\/@stagedoor\//.test(path),
  );
  // Packages of other systems are not installed.
  const sizes = await Promise.all(needed.map(([path]) => ownSize(join(repository, path)).catch(() => 0)));
  const installed = unpackedSize + sizes.reduce((sum, bytes) => sum + bytes, 0);
  const mb = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`;
  process.stdout.write(
    `package ${mb(size)}, unpacked ${mb(unpackedSize)}, with its dependencies ${mb(installed)}\n`,
  );
});

const installed = test.needs(!isWindows, 'links need a privilege on Windows');

installed('prints its version in a recent Node', async () => {
  const { version } = JSON.parse(await npm('pkg', 'get', 'name', 'version'));
  assert.is((await run(process.execPath, [program, '--version'])).stdout, `${version}\n`);
});

installed('names the command that adds a driver that it lacks', async () => {
  const env = { PATH: process.env.PATH, HOME: folder, GATEWAY_DATABASE_URL: 'mssql://h/x' };
  const failed = await run(process.execPath, [program, 'db', 'migrate'], { cwd: folder, env }).catch(
    ({ stderr }) => stderr,
  );
  assert.match(
    failed,
    /SQL Server is not installed: run "npm install --prefix .* @mikro-orm\/mssql@[\d.]+"$/m,
  );
});

installed('drivers of databases use the MikroORM that the program contains', async () => {
  const script = `
    import { shareInlined } from './node_modules/stagedoor/bin/inlined-packages.mjs';
    shareInlined('node_modules/stagedoor/dist/program');
    const { AbstractSqlDriver } = await import('./node_modules/stagedoor/dist/program/mikro-orm-sql.js');
    for (const [name, driver] of [['sqlite', 'SqliteDriver'], ['mysql', 'MySqlDriver'], ['postgresql', 'PostgreSqlDriver']])
      console.log((await import('@mikro-orm/' + name))[driver].prototype instanceof AbstractSqlDriver);`;
  await writeFile(join(folder, 'drivers.mjs'), script);
  const { stdout } = await run(process.execPath, ['drivers.mjs'], { cwd: folder });
  assert.is(stdout, 'true\n'.repeat(3));
});

installed('starts the demo and answers requests', async () => {
  const child = execFile(process.execPath, [program, 'gateway', 'start', '--demo', '--port', '0'], {
    cwd: folder,
    env: { PATH: process.env.PATH, HOME: folder },
  });
  const ended = once(child, 'close');
  try {
    let out = '';
    for await (const text of child.stdout ?? []) {
      out += text;
      if (/listening on/.test(out)) break;
    }
    const [, url = ''] = /listening on .*?(http[^\s)]+)/.exec(out) ?? [];
    assert.is((await fetch(`${url}/livez`)).status, 200);
    assert.match(await (await fetch(`${url}/openapi.json`)).text(), '"openapi":');
    // Files of the package that are not modules.
    for (const path of [
      '/console/',
      '/docs/assets/swagger-ui-bundle.js',
      '/redoc/assets/redoc.standalone.js',
    ])
      assert.is((await fetch(url + path)).status, 200, path);
  } finally {
    child.kill('SIGTERM');
  }
  assert.equal(await ended, [0, null]);
});

test.needs(
  !isWindows && Number.parseInt(process.versions.node, 10) >= 24,
  'it needs `await using` and links',
)('runs the program of README.md as printed', async () => {
  await writeFile(join(folder, 'package.json'), '{ "type": "module" }');
  await writeFile(join(folder, 'gateway.js'), readmeProgram);
  const { stdout, stderr } = await run(process.execPath, ['gateway.js'], { cwd: folder });
  assert.equal([stdout, stderr], [readmeOutput, '']);
});

installed('compiles in a strict program, and needs no types but those of rxjs and typebox', async () => {
  await writeFile(join(folder, 'package.json'), '{ "type": "module" }');
  await writeFile(join(folder, 'embed.ts'), EMBEDDER);
  await writeFile(join(folder, 'gateway.js'), readmeProgram);
  const options = ['--strict', '--exactOptionalPropertyTypes', '--skipLibCheck', 'false', '--noEmit'];
  const target = ['--target', 'es2024', '--module', 'nodenext', '--types', 'node', '--listFiles'];
  const script = ['--checkJs', '--lib', 'es2024,esnext.disposable', 'gateway.js'];
  const types = ['--typeRoots', join(repository, 'node_modules/@types')];
  const { stdout } = await run(
    process.execPath,
    [
      join(repository, 'node_modules/typescript/bin/tsc'),
      ...options,
      ...target,
      ...types,
      ...script,
      'embed.ts',
    ],
    { cwd: folder, maxBuffer: 16 * 1024 * 1024 },
  ).catch((failed) => {
    throw new Error(failed.stdout.replace(/^\/.*\n/gm, ''));
  });
  // The compiler, the types of Node, and their dependencies.
  const packages = [...stdout.matchAll(/.*node_modules\/((?:@[^/\n]+\/)?[^/\n]+)/g)].map(([, name]) => name);
  const own = packages.filter(
    (name) => !/^(?:@typescript\/.*|typescript|@types\/node|undici-types|buffer)$/.test(name ?? ''),
  );
  assert.equal([...new Set(own)].sort(), ['rxjs', 'stagedoor', 'typebox']);
});

test.run();

async function npm(...words: string[]): Promise<string> {
  const { stdout } = await run('npm', words, { cwd: repository, maxBuffer: 16 * 1024 * 1024 });
  return stdout;
}

/** Bytes of the files of a package, without those of the packages below it. */
async function ownSize(path: string): Promise<number> {
  const entries = await readdir(path, { withFileTypes: true });
  const sizes = entries
    .filter((entry) => entry.name !== 'node_modules')
    .map((entry) => {
      const file = join(path, entry.name);
      return entry.isDirectory() ? ownSize(file) : stat(file).then(({ size }) => size);
    });
  return (await Promise.all(sizes)).reduce((sum, bytes) => sum + bytes, 0);
}
