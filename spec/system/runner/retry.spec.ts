// With CI=true a failed spec file of either tier is run once more, alone, when all others have ended; these tests show that
// this hides nothing. Source: docs/adr/0213-the-spec-runner-and-its-tiers.md.

import { writeFile } from 'node:fs/promises';
import * as assert from 'uvu/assert';
import { folderOfEach } from '../../helpers/folder.ts';
import { suite } from '../../helpers/suite.ts';
import { runSamples, type SamplesRun } from './runner-samples.ts';

const test = suite('the retry of a flaky spec file', { timeoutMs: 60_000 });
const passes = `test('a', () => {}); test.run();`;
const fails = `test('fine', () => {}); test('a', () => { throw new Error('no such luck'); }); test.run();`;
/** Fails unless it has been run before. */
const failsOnce = `
import { existsSync, writeFileSync } from 'node:fs';
const seen = new URL(import.meta.url + '.seen');
test('fine', () => {});
test('a', () => {
  if (existsSync(seen)) return;
  writeFileSync(seen, '');
  console.log('a hint');
  throw new Error('an accident');
});
test.run();`;
const root = folderOfEach(test);

test.before.each(async () => {
  await writeFile(root('package.json'), '{ "type": "module" }');
});

test('up to three files that fail and then pass count as passed, and are listed as flaky', async () => {
  const flakyOnes = ['system/a', 'system/c', 'd'].map((name) => [`${name}.spec.ts`, failsOnce]);
  const { code, lines } = await run({ ...Object.fromEntries(flakyOnes), 'system/b.spec.ts': passes });
  assert.is(code, 0);
  assert.is(lines.at(-1), '7 passed, 0 failed, 0 skipped');
  const [first = '', second = '', ...more] = lines.filter((line) => line.includes(' system/a.spec.ts  '));
  assert.match(first, /^FAIL system\/a\.spec\.ts {2}1 passed, 1 failed {2}\d+ ms$/);
  assert.match(second, /^ok {3}system\/a\.spec\.ts {2}2 passed, at its second attempt {2}\d+ ms$/);
  assert.equal(more, []);
  assert.match(lines.join('\n'), /^ok {3}d\.spec\.ts {2}2 passed, at its second attempt {2}/m);
  const flaky = lines.slice(lines.indexOf('flaky:'));
  assert.ok(flaky.includes('---- d.spec.ts'));
  assert.ok(flaky.includes('---- system/a.spec.ts'));
  assert.match(flaky.join('\n'), /"a".*an accident.*output of the file:.*a hint/s);
  assert.is(lines.indexOf('---- system/a.spec.ts'), lines.lastIndexOf('---- system/a.spec.ts'), 'shown once');
});

test('a file that fails twice counts as failed, with its output', async () => {
  const { code, lines } = await run({ 'system/a.spec.ts': fails, 'system/b.spec.ts': passes });
  assert.is(code, 1);
  assert.is(lines.at(-1), '2 passed, 1 failed, 0 skipped');
  assert.match(lines.join('\n'), /FAIL system\/a\.spec\.ts {2}1 passed, 1 failed, at its second attempt {2}/);
  assert.ok(lines.includes('---- system/a.spec.ts'));
  assert.match(lines.join('\n'), 'no such luck');
  assert.not.ok(lines.includes('flaky:'));
});

for (const [what, names, closing, CI] of [
  ['four failed files', ['system/a', 'system/b', 'c', 'd'], '4 passed, 4 failed, 0 skipped', 'true'],
  ['without CI=true', ['system/a'], '1 passed, 1 failed, 0 skipped', ''],
] as const)
  test(`${what}: no file is repeated`, async () => {
    const files = names.map((name) => [`${name}.spec.ts`, failsOnce]);
    const { code, lines } = await run(Object.fromEntries(files), [], { CI });
    assert.equal([code, lines.at(-1)], [1, closing]);
    assert.not.match(lines.join('\n'), 'attempt');
    assert.not.ok(lines.includes('flaky:'));
  });

test.run();

function run(
  files: Readonly<Record<string, string>>,
  args: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
): Promise<SamplesRun> {
  return runSamples(root(), files, ['.spec', ...args], { CI: 'true', ...env });
}
