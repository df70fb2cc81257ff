// The folder for compiled code, and the folders that are refused: those that other users own or can write to.

import { execFile } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { promisify } from 'node:util';
import * as assert from 'uvu/assert';
import { folderOfEach } from '../../helpers/folder.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the compile cache');
const module = new URL('../../../bin/compile-cache.mjs', import.meta.url).href;
const script = `
  import { keepCompiledCode } from ${JSON.stringify(module)};
  process.stdout.write(String(keepCompiledCode()));
  await import(process.argv[1]);`;
const folder = folderOfEach(test);
test.before.each(() => {
  writeFileSync(folder('program.mjs'), `export const text = ${JSON.stringify('x'.repeat(10_000))};`);
});
const kept = (): string => folder('stagedoor', 'compiled');

test('stores compiled code in a folder for this user only', async () => {
  assert.is(await run(), 'true');
  assert.is.not(readdirSync(kept()).length, 0);
  if (process.platform !== 'win32') assert.is(statSync(kept()).mode & 0o077, 0);
  assert.is(await run(), 'true');
});

test.needs(process.platform !== 'win32', 'Windows has no such modes')(
  'stores nothing in a folder that others can write to',
  async () => {
    mkdirSync(kept(), { recursive: true });
    chmodSync(kept(), 0o777);
    assert.is(await run(), 'false');
    assert.equal(readdirSync(kept()), []);
  },
);

test('is not used where no folder can be created', async () => {
  writeFileSync(folder('stagedoor'), 'a file, not a folder');
  assert.is(await run(), 'false');
  assert.is(existsSync(kept()), false);
});

test('is not in the current folder, whatever the variables say', async () => {
  assert.is(await run('.'), 'false');
  assert.is(await run('', { HOME: '' }), 'false');
  assert.equal(readdirSync(folder()), ['program.mjs']);
});

test.needs(process.platform === 'linux', 'only Linux has /proc')(
  'is not used, without a wait, below a folder in which nobody can create one',
  async () => assert.is(await run('/proc/none/cache'), 'false'),
);

test.run();

async function run(cache = folder(), more: NodeJS.ProcessEnv = {}): Promise<string> {
  const parameters = ['--input-type=module', '-e', script, folder('program.mjs')];
  const { NODE_DISABLE_COMPILE_CACHE: _, ...environment } = process.env;
  const env = { ...environment, XDG_CACHE_HOME: cache, ...more };
  const place = { cwd: folder(), env, timeout: 20_000 };
  const { stdout } = await promisify(execFile)(process.execPath, parameters, place);
  return stdout;
}
