// Relative imports of a clone: which are taken as they are written, and which Node finds as before.

import { execFile } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import * as assert from 'uvu/assert';
import { folderOfEach } from '../../helpers/folder.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('relative imports of a clone');
const hook = new URL('../../../bin/relative-imports.mjs', import.meta.url).href;
const folder = folderOfEach(test);

/** `export const x = …`, with a type that has to be stripped. */
const typed = (name: string): string => `export const ${name}: string = import.meta.url;`;

test('sources and .mjs files are what their names say, without a look-up', async () => {
  write(
    'src/main.ts',
    `export { a } from './a.ts'; export { b } from '../lib/b.mjs'; export { l } from './link.mjs';`,
  );
  write('src/a.ts', typed('a'));
  write('lib/b.mjs', `export const b = import.meta.url;`);
  write('lib/target.mjs', `export const l = import.meta.url;`);
  link('src/link.mjs', 'lib/target.mjs');
  const { a = '', b = '', l = '' } = await exportsOf('src/main.ts');
  assert.match(a, /\/src\/a\.ts$/);
  assert.match(b, /\/lib\/b\.mjs$/);
  // Node would have looked for its real path.
  assert.match(l, process.platform === 'win32' ? /\.mjs$/ : /\/src\/link\.mjs$/);
});

test('of other files the package says what they are', async () => {
  write('src/main.ts', `export { c } from '../old/c.js'; export { d } from '../old/d.mjs';`);
  write('old/package.json', '{ "type": "commonjs" }');
  write('old/c.js', `exports.c = require.resolve('./e.ts');`);
  write('old/d.mjs', `import typed from './e.ts'; export const d = typed.e;`);
  write('old/e.ts', `const e: string = 'as CommonJS'; module.exports = { e };`);
  const { c = '', d } = await exportsOf('src/main.ts');
  assert.match(c, /e\.ts$/);
  assert.is(d, 'as CommonJS');
});

test('a file that is missing is named', async () => {
  write('src/main.ts', `export { a } from './missing.ts';`);
  const { failure = '' } = await exportsOf('src/main.ts');
  assert.match(failure, /missing\.ts/);
});

test.run();

function write(name: string, text: string): void {
  mkdirSync(dirname(folder(name)), { recursive: true });
  writeFileSync(folder(name), text);
}

function link(name: string, target: string): void {
  if (process.platform === 'win32') write(name, `export { l } from '../${target}';`);
  else symlinkSync(folder(target), folder(name));
}

async function exportsOf(name: string): Promise<Record<string, string>> {
  write('package.json', '{ "type": "module" }');
  const script = `
    import { pathToFileURL } from 'node:url';
    import { takeRelativeImports } from ${JSON.stringify(hook)};
    takeRelativeImports(process.argv[1]);
    const loaded = await import(pathToFileURL(process.argv[2])).catch((error) => ({ failure: error.message }));
    process.stdout.write(JSON.stringify(loaded));`;
  const parameters = ['--input-type=module', '-e', script, folder(), folder(name)];
  const { stdout } = await promisify(execFile)(process.execPath, parameters, { timeout: 20_000 });
  return JSON.parse(stdout);
}
