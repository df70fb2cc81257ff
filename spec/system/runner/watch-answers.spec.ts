// The watch over all answers works: a wrong answer must fail the file. Right answers, and those of other servers, occur in all
// other specs; the rules of the check are in answer-check.spec.ts.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { folderOfAll } from '../../helpers/folder.ts';
import { suite } from '../../helpers/suite.ts';
import { runFile } from '../../runner/spec-process.ts';

const test = suite('the watch over all answers', { timeoutMs: 60_000 });
const here = (name: string): string => JSON.stringify(new URL(name, import.meta.url).href);
const folder = folderOfAll(test)();
test.before(async () => {
  await writeFile(join(folder, 'package.json'), '{ "type": "module" }');
});

/** Runs a spec of one test with an app, and returns its failures. */
async function failuresOf(body: string): Promise<readonly string[]> {
  const file = join(folder, 'sample.spec.ts');
  await writeFile(
    file,
    `import { suite } from ${here('../../helpers/suite.ts')};
     import { startApp } from ${here('../../helpers/http/app.ts')};
     const test = suite('sample');
     test('asks', async () => { const app = await startApp(); ${body}; await app.close(); });
     test.run();`,
  );
  return (await runFile(file, { timeoutMs: 30_000, graceMs: 2_000 })).failures;
}

test('fails a file for an answer that violates its schema, although no test checks it', async () => {
  const failures = await failuresOf(
    `Object.defineProperty(app.gateway, 'databaseStatus', { value: async () => 'on holiday' });
     await app.ask('GET', '/gateway/health')`,
  );
  assert.is(failures.length, 1);
  const found = failures[0] ?? '';
  assert.match(found, /^not as the API description says: GET \/gateway\/health 200: \/database must /);
});

test('records wrong answers of programs for the spec that started them', async () => {
  const file = join(folder, 'strange answers');
  const program = join(folder, 'program.ts');
  await writeFile(
    program,
    `import { startApp } from ${here('../../helpers/http/app.ts')};
     const app = await startApp();
     Object.defineProperty(app.gateway, 'databaseStatus', { value: async () => 'on holiday' });
     await app.ask('GET', '/gateway/health');
     await app.ask('GET', '/livez');
     await app.close();`,
  );
  const watch = `${new URL('../../helpers/api/watch-program.ts', import.meta.url).href}?${encodeURIComponent(file)}`;
  const child = spawn(process.execPath, ['--import', watch, program], { stdio: 'inherit' });
  assert.equal(await once(child, 'exit'), [0, null]);
  const lines = (await readFile(file, 'utf8')).trim().split('\n');
  assert.is(lines.length, 1);
  assert.match(lines[0] ?? '', /^GET \/gateway\/health 200: \/database must /);
});

test.run();
