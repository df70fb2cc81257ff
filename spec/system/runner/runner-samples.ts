// Runs the spec runner, as `npm run spec` does, on a folder of sample spec files.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

/** The start of every sample: a suite whose tests may take 300 ms. */
export const preamble = `import { suite } from ${JSON.stringify(new URL('../../helpers/suite.ts', import.meta.url).href)};
const test = suite('sample', { timeoutMs: 300 });
`;

const runner = fileURLToPath(new URL('../../run.ts', import.meta.url));

export interface SamplesRun {
  readonly code: number;
  readonly lines: readonly string[];
}

/**
 * Runs samples in `root`, given by path with the text after the preamble. `env` is added to that of this process, without `CI`: failed
 * files run once.
 */
export async function runSamples(
  root: string,
  files: Readonly<Record<string, string>>,
  args: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
): Promise<SamplesRun> {
  await mkdir(root, { recursive: true });
  for (const [name, body] of Object.entries(files)) await writeSample(join(root, name), preamble + body);
  const child = spawn(process.execPath, [runner, '--root', root, ...args], {
    stdio: ['ignore', 'pipe', 'ignore'],
    env: { ...process.env, CI: '', ...env },
  });
  const [output, [code]] = await Promise.all([text(child.stdout), once(child, 'close')]);
  return { code, lines: output.trimEnd().split('\n') };
}

/** Writes a file and the folders above it. */
export async function writeSample(file: string, content: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, content);
}
