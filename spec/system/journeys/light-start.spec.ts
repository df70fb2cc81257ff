// The modules of a gateway before its first call: none of the packages that few gateways need, or that are needed rarely. Each
// of them takes 1 to 20 MB, and one import at the wrong place loads it again. A command that asks a gateway loads one package.

import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { until } from '../../helpers/eventually.ts';
import { AS_IT_COMES, Program, sourceBinPath } from '../../helpers/programs/program.ts';
import { suite } from '../../helpers/suite.ts';
import { startRawServer } from '../../transports/raw-server.ts';
import { initialized, serving } from '../../transports/scripted-server.ts';

const test = suite('a light start', { timeoutMs: 90_000 });

/** Needed for: clusters, pages, forms, a login, Redis, YAML files, the tables of the command line, other databases. */
const LATER = [
  ...[
    'koa2-swagger-ui',
    'swagger-ui-dist',
    'redoc',
    'undici',
    'prom-client',
    'koa-body',
    'rate-limiter-flexible',
    'ioredis',
    'yaml',
    '@opentelemetry/api',
  ],
  ...['@mikro-orm/postgresql', '@mikro-orm/mysql', '@mikro-orm/mssql', '@mikro-orm/oracledb'],
];

/** Node's own `fetch`: 14 MB, loaded also by a mere `import` of node:http. */
const FETCH = 'NativeModule internal/deps/undici/undici';

/** Stands among the loaded modules where the first port was opened. */
const PORT = 'a port is open';

/** Runs first in the program: writes all loaded modules, of Node their names, of others their URLs, when it ends. */
const listModules = (file: string): string => `
  import { writeFileSync } from 'node:fs';
  import { registerHooks } from 'node:module';
  import { Server } from 'node:net';
  const loaded = [];
  const { listen } = Server.prototype;
  Server.prototype.listen = function (...place) {
    loaded.push('${PORT}');
    return listen.apply(this, place);
  };
  registerHooks({ load: (url, context, next) => { loaded.push(url); return next(url, context); } });
  process.on('exit', () =>
    writeFileSync(${JSON.stringify(file)}, [...loaded, ...process.moduleLoadList].join('\\n')));`;

for (const kind of ['without instances', 'with an instance that is reached by HTTP']) {
  test(`loads no package that is needed only later: ${kind}`, async () => {
    const asked: string[] = [];
    const server = await startRawServer(serving({ initialize: initialized }, asked));
    const folder = await mkdtemp(join(tmpdir(), 'stagedoor-light-'));
    const registry = join(folder, 'registry.json');
    const instances = kind === 'without instances' ? [] : [{ id: 'one', endpoint: server.url }];
    await writeFile(registry, JSON.stringify({ templates: { some: { instances } } }));
    const program = new Program(['gateway', 'start', '--port', '0'], {
      // The build has few modules.
      bin: sourceBinPath,
      env: {
        ...AS_IT_COMES,
        MCP_GATEWAY_REGISTRY_FILE: registry,
        NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(listModules('modules.txt'))}`,
      },
    });
    try {
      const url = await program.url();
      await until(async () => (await fetch(`${url}/readyz`)).status === 200, 'it is ready');
      assert.is(asked.includes('initialize'), instances.length > 0);
      program.signal('SIGTERM');
      assert.equal(await program.end(), { code: 0, signal: null });

      const loaded = readFileSync(join(program.home, 'modules.txt'), 'utf8').split('\n');
      const packages = packagesOf(loaded);
      // Otherwise nothing was recorded.
      assert.ok(packages.has('koa') && packages.has('@mikro-orm/sqlite'), `${packages.size} packages`);
      const found = LATER.filter((name) => packages.has(name));
      assert.equal(found, []);
      // The first password is hashed by another thread while the rest is loaded.
      assert.ok([...packages].indexOf('bcrypt') < [...packages].indexOf('koa'));
      // Hundreds of modules in one turn: no request waits for them.
      const isOfStore = (address: string) =>
        /\/(?:@mikro-orm\/sql|@mikro-orm\/sqlite|kysely)\//.test(address);
      assert.ok(loaded.findLastIndex(isOfStore) < loaded.indexOf(PORT));
      assert.ok(loaded.includes('NativeModule http'));
      assert.not.ok(loaded.includes(FETCH));
      assert.not.ok(loaded.some((address) => address.includes('/typebox/build/value/')));
      assert.not.ok(loaded.some((address) => address.includes('/protocol/tool-search/')));
      // On SQLite there are no other nodes.
      assert.not.ok(
        loaded.some((address) => /\/cluster\/(?:rules|node-table|channel\/peer-(?!tls))/.test(address)),
      );
    } finally {
      await program.remove();
      await server.close();
      await rm(folder, { recursive: true });
    }
  });
}

test('a command that asks a gateway loads the package for command lines, and no other', async () => {
  const program = new Program(['instance', 'list', '--url', 'http://127.0.0.1:1'], {
    bin: sourceBinPath,
    env: { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(listModules('modules.txt'))}` },
  });
  try {
    assert.equal(await program.end(), { code: 1, signal: null });
    const loaded = readFileSync(join(program.home, 'modules.txt'), 'utf8').split('\n');
    assert.equal([...packagesOf(loaded)], ['cac']);
  } finally {
    await program.remove();
  }
});

/** Waits until the heap of an idle process is small, then keeps 20 MB alive that change at 10 MB a second: the young generation grows. */
const growYoungGeneration = `
  import { getHeapSpaceStatistics } from 'node:v8';
  const megabytes = () => getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space').space_size / 2 ** 20;
  const kept = [];
  let turn = 0;
  setInterval(() => {
    if (turn === 0 && megabytes() > 8) return;
    kept[turn++ % 40] = Array.from({ length: 6_000 }, (_, index) => ({ index, list: [turn] }));
    if (turn === 200) process.stdout.write('young generation: ' + megabytes() + ' MB\\n');
  }, 50).unref();`;

test('keeps the young generation at 32 MB', async () => {
  const program = new Program(['gateway', 'start', '--port', '0'], {
    env: { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(growYoungGeneration)}` },
  });
  try {
    await program.sees(/young generation: 32 MB/, 40_000);
  } finally {
    await program.remove();
  }
});

test('collects its garbage once it is idle, after the start and after load', async () => {
  const trace = `import { setFlagsFromString } from 'node:v8'; setFlagsFromString('--trace-gc');`;
  const program = new Program(['gateway', 'start', '--port', '0'], {
    env: { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(trace)}` },
  });
  try {
    const url = await program.url();
    await program.sees(/Mark-Compact.*testing/);
    // Load; then the event loop is idle for 30 seconds.
    const busyUntilMs = performance.now() + 2_000;
    const ask = async () => {
      while (performance.now() < busyUntilMs) await (await fetch(`${url}/openapi.json`)).text();
    };
    await Promise.all(Array.from({ length: 16 }, ask));
    await program.sees(/(?:Mark-Compact.*testing[\s\S]*){2}/, 50_000);
  } finally {
    await program.remove();
  }
});

/** Runs first in the program: notes when a flag of V8 is set. */
const noteFlags = (file: string): string => `
  import { appendFileSync } from 'node:fs';
  import { syncBuiltinESMExports } from 'node:module';
  import v8 from 'node:v8';
  const set = v8.setFlagsFromString;
  v8.setFlagsFromString = (flag) => {
    appendFileSync(${JSON.stringify(file)}, flag);
    set(flag);
  };
  syncBuiltinESMExports();`;

test('keeps new objects in the young generation before it opens its first instance', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'stagedoor-light-'));
  const [registry, flags] = [join(folder, 'registry.json'), join(folder, 'flags.txt')];
  let flagsAtOpening: string | undefined;
  const serve = serving({ initialize: initialized });
  const server = await startRawServer((request, response) => {
    flagsAtOpening ??= existsSync(flags) ? readFileSync(flags, 'utf8') : '';
    serve(request, response);
  });
  await writeFile(
    registry,
    JSON.stringify({ templates: { some: { instances: [{ id: 'one', endpoint: server.url }] } } }),
  );
  const program = new Program(['gateway', 'start', '--port', '0'], {
    env: {
      ...AS_IT_COMES,
      MCP_GATEWAY_REGISTRY_FILE: registry,
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(noteFlags(flags))}`,
    },
  });
  try {
    await program.url();
    await until(() => flagsAtOpening !== undefined, 'the instance is opened');
    assert.match(flagsAtOpening ?? '', '--no-allocation-site-pretenuring');
  } finally {
    await program.remove();
    await server.close();
    await rm(folder, { recursive: true });
  }
});

test.run();

/** The names of the packages of these modules. */
function packagesOf(loaded: readonly string[]): ReadonlySet<string> {
  return new Set(
    loaded.flatMap((address) => /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(address)?.[1] ?? []),
  );
}
