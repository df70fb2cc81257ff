// `--help` of the measurements that npm starts: it names their options, and measures nothing.

import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import * as assert from 'uvu/assert';
import { suite } from '../../helpers/suite.ts';

const test = suite('help of the measurements', { timeoutMs: 60_000 });
const run = promisify(execFile);
const PROGRAMS = {
  bench: 'bench/run.ts',
  chaos: 'bench/chaos.ts',
  cluster: 'bench/cluster.ts',
  simulate: 'spec/cluster/rules/long-run.ts',
  views: 'bench/views.ts',
} as const;

for (const [name, file] of Object.entries(PROGRAMS))
  test(`npm run ${name} -- --help`, async () => {
    const path = fileURLToPath(new URL(`../../../${file}`, import.meta.url));
    const { stdout, stderr } = await run(process.execPath, [path, '--help']);
    assert.is(stderr, '');
    assert.is(stdout.split('\n')[0]?.startsWith(`npm run ${name}`), true, stdout);
  });

test.run();
