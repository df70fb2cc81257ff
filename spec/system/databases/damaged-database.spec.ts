// A SQLite file whose pages were overwritten: a start and commands that read them end with exit code 1 and one line that names the
// file and the remedy; a running gateway answers 503.

import { copyFile, open, stat } from 'node:fs/promises';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { loadConfig } from '../../../src/config/config.ts';
import { openStore } from '../../../src/persistence/open-store.ts';
import { startServer } from '../../../src/server/server.ts';
import { caller, statusAndCode } from '../../helpers/clients/caller.ts';
import { folderOfAll } from '../../helpers/folder.ts';
import { AS_IT_COMES, runProgram } from '../../helpers/programs/program.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('journey: damaged database', { timeoutMs: 60_000 });
const PAGE = 4096;
const folder = folderOfAll(test)();
const intact = join(folder, 'intact.db');
const file = join(folder, 'gateway.db');
test.before(async () => {
  const store = await openStore(`sqlite:///${intact}`, { cwd: folder, migrations: 'apply' });
  await store.templates.save({ name: 'files', loadBalancer: {} });
  await store.close();
});
test.before.each(() => copyFile(intact, file));

const line =
  `the database ${file} is damaged, or not a SQLite database: ` +
  'restore a backup of it and of the files beside it, or move it away';

for (const page of [0, 2])
  test(`a start and an export report in one line that the file is damaged from page ${page} on`, async () => {
    await damage(page);
    for (const words of [
      ['gateway', 'start', '--port', '0'],
      ['db', 'export'],
    ])
      await refuses(words, line);
  });

test('damage while the gateway runs is answered with 503', async () => {
  const url = `sqlite:///${file}`;
  const config = loadConfig({
    flags: { port: '0', host: '127.0.0.1', database: url },
    env: { GATEWAY_AUTH_ENABLED: 'false' },
    cwd: folder,
  });
  const server = await startServer(config);
  try {
    const anybody = caller(server.urls[0] ?? '');
    assert.is((await anybody('GET /health')).status, 200);
    // Another process changes pages, so that they are not in the memory of the gateway.
    const other = await openStore(url, { cwd: folder, migrations: 'require' });
    await other.templates.save({ name: 'more', loadBalancer: {} });
    await other.close();
    await damage(2);
    const instance = { id: 'one', endpoint: 'http://127.0.0.1:9/mcp' };
    const answer = await anybody('POST /gateway/register', { template_name: 'far', instance });
    assert.equal(statusAndCode(answer), [503, 'DATABASE_UNAVAILABLE'], JSON.stringify(answer.body));
    assert.not.match(JSON.stringify(answer.body), folder, 'no path for callers');
  } finally {
    await server.close();
  }
});

test.run();

/** Overwrites all pages from this one on. */
async function damage(firstPage: number): Promise<void> {
  const { size } = await stat(file);
  const handle = await open(file, 'r+');
  await handle.write(Buffer.alloc(size - firstPage * PAGE, 0xa5), 0, null, firstPage * PAGE);
  await handle.close();
}

/** Asserts exit code 1 and this one line; the log has nothing above the level info. */
async function refuses(words: readonly string[], line: string): Promise<void> {
  const { code, out, err } = await runProgram(words, { folder, env: AS_IT_COMES });
  assert.equal([code, out], [1, ''], err);
  const said = err.split('\n').filter((each) => each !== '' && !/^(?:migrating |\{"level":30,)/.test(each));
  assert.equal(said, [`stagedoor: ${line}`], words.join(' '));
}
