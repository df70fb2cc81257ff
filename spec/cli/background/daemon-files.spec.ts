// The file of a background gateway, which a folder from elsewhere may have, too.

import { writeFileSync } from 'node:fs';
import * as assert from 'uvu/assert';
import { commandAt, filesIn, runningDaemon, writeDaemon } from '../../../src/cli/background/daemon-files.ts';
import { startDaemon } from '../../../src/cli/background/start-daemon.ts';
import { CommandFailure } from '../../../src/cli/failures.ts';
import { lockFile } from '../../../src/persistence/file-lock.ts';
import { load } from '../../helpers/config.ts';
import { folderOfEach } from '../../helpers/folder.ts';
import { messageOf } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { recordingTerminal } from '../recording-terminal.ts';

const test = suite('files of a background gateway');
const folder = folderOfEach(test);

test('a file of another form names no gateway', async () => {
  const files = filesIn(folder());
  const lock = await lockFile(files.lock); // it runs
  const daemon = { pid: 7, url: 'http://127.0.0.1:1', words: ['gateway', 'start'], folder: '/', graceMs: 1 };
  writeDaemon(files, daemon);
  assert.equal(await runningDaemon(files), daemon);
  for (const start of [
    ...[
      'null',
      '[]',
      '{}',
      '{"words":"x","folder":"/","graceMs":1}',
      '{"words":[1],"folder":"/","graceMs":1}',
    ],
    ...['{"words":[],"folder":{},"graceMs":1}', '{"words":[],"folder":"/","graceMs":"long"}'],
    '{"words":[],"folder":"/","graceMs":1,"nodeId":{"toString":1}}',
  ]) {
    writeFileSync(files.pid, `7\nhttp://127.0.0.1:1\n${start}\n`);
    assert.is(await runningDaemon(files), undefined, start);
  }
  await lock?.release();
});

test('a printed command names its gateway unless commands without --url look there first', () => {
  const at = (url: string, env = {}) =>
    commandAt('instance list', url, { env, folder: folder() }).replace(/^.*instance list/, '');
  const usual = 'http://127.0.0.1:8080';
  for (const url of [usual, 'https://127.0.0.1:8080', 'https://localhost:8080']) assert.is(at(url), '');
  for (const url of ['http://127.0.0.1:8000', 'http://10.0.0.1:8080']) assert.is(at(url), ` --url ${url}`);
  const env = { STAGEDOOR_URL: 'https://mcp.example.com/' };
  assert.is(at('https://mcp.example.com', env), ' --url https://mcp.example.com');
  assert.is(at(usual, env), ` --url ${usual}`);
  const daemon = { pid: 7, url: 'http://127.0.0.1:9000', words: [], folder: '/', graceMs: 1 };
  writeDaemon(filesIn(folder()), daemon);
  assert.is(at(daemon.url), '');
  assert.is(at(usual), ` --url ${usual}`);
});

// Without its option `gateway stop` looks in the folder of the database, or of the user: another gateway may run there.
test('a printed command stops the gateway of a state folder that was chosen, in its own folder, too', async () => {
  const files = filesIn(folder());
  const lock = await lockFile(files.lock); // it runs
  writeDaemon(files, { pid: 7, url: 'http://127.0.0.1:1', words: [], folder: '/', graceMs: 1 });
  const advice = async (yaml: string) => {
    const work = startDaemon(load({ yaml }), [], recordingTerminal());
    return /gateway stop(.*)"/.exec(await messageOf(work, CommandFailure))?.[1];
  };
  const option = ` --state-dir ${folder()}`;
  const [database, chosen] = [`database_url: sqlite:///${folder()}/a.db`, `state_dir: ${folder()}`];
  assert.is(await advice(database), option);
  const before = process.cwd();
  process.chdir(folder());
  try {
    assert.is(await advice(database), '');
    assert.is(await advice(chosen), option);
  } finally {
    process.chdir(before);
  }
  await lock?.release();
});

test.run();
