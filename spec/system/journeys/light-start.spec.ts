// The modules of a gateway before its first call: none of the packages that few gateways need, or that are needed rarely. Each
// of them takes 1 to 20 MB, and one import at the wrong place loads it again.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { AS_IT_COMES, Program } from '../../helpers/program.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('a start without instances', { timeoutMs: 60_000 });

/** Needed for: instances that are reached by HTTP, pages, forms, a login, Redis, YAML files, the tables of the command line, other databases. */
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

/** Runs first in the program: writes all loaded modules, of Node their names, of others their URLs, when it ends. */
const listModules = (file: string): string => `
  import { writeFileSync } from 'node:fs';
  import { registerHooks } from 'node:module';
  const loaded = [];
  registerHooks({ load: (url, context, next) => { loaded.push(url); return next(url, context); } });
  process.on('exit', () =>
    writeFileSync(${JSON.stringify(file)}, [...loaded, ...process.moduleLoadList].join('\\n')));`;

test('loads no package that is needed only later', async () => {
  const program = new Program(['gateway', 'start', '--port', '0'], {
    env: {
      ...AS_IT_COMES,
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(listModules('modules.txt'))}`,
    },
  });
  try {
    const url = await program.url();
    assert.is((await fetch(`${url}/readyz`)).status, 200);
    program.signal('SIGTERM');
    assert.equal(await program.end(), { code: 0, signal: null });

    const loaded = readFileSync(join(program.home, 'modules.txt'), 'utf8').split('\n');
    const packages = new Set(
      loaded.map((address) => /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(address)?.[1]),
    );
    // Otherwise nothing was recorded.
    assert.ok(packages.has('koa') && packages.has('@mikro-orm/sqlite'), `${packages.size} packages`);
    const found = LATER.filter((name) => packages.has(name));
    assert.equal(found, []);
    assert.ok(loaded.includes('NativeModule http'));
    assert.not.ok(loaded.includes(FETCH));
    assert.not.ok(loaded.some((address) => address.includes('/typebox/build/value/')));
  } finally {
    await program.remove();
  }
});

test.run();
