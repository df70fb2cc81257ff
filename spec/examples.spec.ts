// The examples, that of README.md among them, are programs that readers copy, so they are run as such.

import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { guideProgram, readmeOutput, readmeProgram } from './helpers/programs/readme-program.ts';
import { suite } from './helpers/suite.ts';

const test = suite('examples', { timeoutMs: 30_000 });
const canDispose = Number.parseInt(process.versions.node, 10) >= 24;

test('embed.ts calls a function as a backend and prints results and events', () => {
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

// Its text is passed on standard input, so that the clone is unchanged; imports are still resolved from the working folder.
test.needs(canDispose, 'the Node of this run has no `await using`')(
  'the program of README.md runs as printed in a clone',
  () => {
    const words = ['--conditions=stagedoor-source', '--input-type=module', '-'];
    const cwd = fileURLToPath(new URL('..', import.meta.url));
    const { status, stdout, stderr } = spawnSync(process.execPath, words, {
      ...{ cwd, input: readmeProgram, encoding: 'utf8', timeout: 20_000 },
    });
    assert.equal([status, stderr, stdout], [0, '', readmeOutput]);
  },
);

test('the page about embedding has the program of README.md', () => {
  assert.match(readmeProgram, 'createGateway');
  assert.is(guideProgram, readmeProgram);
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
