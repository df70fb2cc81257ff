// The public API in a Node that is too old, simulated by a version number that is replaced before any import.

import { spawnSync } from 'node:child_process';
import * as assert from 'uvu/assert';
import { suite } from '../../helpers/suite.ts';

const test = suite('the public API');
const index = new URL('../../../src/index.ts', import.meta.url).href;

test('refuses an old Node with one sentence, before other modules are evaluated', () => {
  const { status, stderr } = importWith('20.20.2');
  assert.is(status, 1);
  assert.match(
    stderr,
    /^Error: stagedoor needs Node 22\.18 or later; this is Node 20\.20\.2; type: npx -y node@24 <file>$/m,
  );
  assert.match(stderr, /at .*required-node\.ts/);
});

test('accepts Node 22.18 and later', () => {
  for (const version of ['22.18.0', '23.0.0', process.versions.node]) {
    assert.is(importWith(version).status, 0, version);
  }
});

test.run();

function importWith(version: string) {
  const script = `
    Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } });
    await import('${index}');`;
  return spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' });
}
