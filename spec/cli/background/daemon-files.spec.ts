// The file of a background gateway, which a folder from elsewhere may have, too.

import { writeFileSync } from 'node:fs';
import * as assert from 'uvu/assert';
import { filesIn, runningDaemon, writeDaemon } from '../../../src/cli/background/daemon-files.ts';
import { lockFile } from '../../../src/persistence/file-lock.ts';
import { folderOfEach } from '../../helpers/folder.ts';
import { suite } from '../../helpers/suite.ts';

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

test.run();
