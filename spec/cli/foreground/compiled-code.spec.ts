// With a cache of compiled code, a release writes it at once; at the first start the cache is written at its end.

import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import * as assert from 'uvu/assert';
import { folderOfAll } from '../../helpers/folder.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('releasing compiled code');
const folder = folderOfAll(test);

const subject = new URL('../../../src/cli/foreground/compiled-code.ts', import.meta.url).href;

/** Loads modules in a new process, with or without a cache; returns its number of files before and after the release. */
function loadAndRelease(modules: readonly string[], cache: string | undefined): number[] {
  const script = `
    import { readdirSync } from 'node:fs';
    import { getCompileCacheDir } from 'node:module';
    import { releaseCompiledCode } from '${subject}';
    for (const name of ${JSON.stringify(modules)}) await import(name);
    const cache = getCompileCacheDir();
    const count = () => (cache === undefined ? -1 : readdirSync(cache).length);
    const before = count();
    releaseCompiledCode();
    console.log(JSON.stringify([before, count()]));`;
  const { NODE_COMPILE_CACHE: _, NODE_DISABLE_COMPILE_CACHE: __, ...rest } = process.env;
  const env = cache === undefined ? rest : { ...rest, NODE_COMPILE_CACHE: cache };
  const entry = folder('entry.mjs');
  writeFileSync(entry, script);
  return JSON.parse(execFileSync(process.execPath, [entry], { env, encoding: 'utf8' }));
}

test('leaves an empty cache to the end of the process, writes any other at once, and does nothing without a cache', () => {
  const modules = ['one', 'other'].map((name) => folder(`${name}.mjs`));
  for (const file of modules) writeFileSync(file, 'export const answer = () => 42;\n');
  assert.equal(loadAndRelease(modules.slice(1), undefined), [-1, -1]);
  assert.equal(loadAndRelease(modules.slice(1), folder('cache')), [0, 0]);
  const [before = 0, after = 0] = loadAndRelease(modules, folder('cache'));
  assert.ok(before > 0 && after > before, `${before} files before, ${after} after`);
});

test.run();
