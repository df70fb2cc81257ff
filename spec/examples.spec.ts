// The examples are programs that readers copy, so they are run as such.

import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { suite } from './helpers/suite.ts';

const test = suite('examples', { timeoutMs: 30_000 });

test('embed.ts calls a function as a backend and hears what happens', () => {
  const { status, stdout, stderr } = runExample('embed.ts');
  assert.equal([status, stderr], [0, '']);
  assert.equal(stdout.trimEnd().split('\n'), [
    'sky of weather is healthy',
    'sky answered with a result',
    '{"content":[{"type":"text","text":"Rain in Bergen."}]}',
    'notifications/message: looking at the sky over Oslo',
    '{"content":[{"type":"text","text":"Rain in Oslo."}]}',
    'sky answered with a result',
    'TOOL_NOT_FOUND: "weather" has no tool named "earthquake".',
    '1 of 1 healthy, 3 requests',
  ]);
});

test.run();

/** Runs an example from the sources: the condition makes `import 'stagedoor'` mean src/index.ts. */
function runExample(name: string) {
  const file = fileURLToPath(new URL(`../examples/${name}`, import.meta.url));
  return spawnSync(process.execPath, ['--conditions=stagedoor-source', file], {
    encoding: 'utf8',
    timeout: 20_000,
  });
}
