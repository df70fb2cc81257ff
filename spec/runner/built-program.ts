// The program that specs of the system tier and the conformance run start, as users install it. It is built for each run in a folder
// of its own: it is never an old one, and no other run changes it. A start of it takes half as long as one of the sources.

import { rmSync } from 'node:fs';
import { chmod, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { installProgram } from '../../bench/installed.ts';

/** The variable in which the runner passes the path of the program to its processes; by hand, that of another program. */
export const PROGRAM_VARIABLE = 'STAGEDOOR_SPEC_PROGRAM';

/** Builds the program, unless another one was chosen, or coverage is wanted, which counts lines of sources. */
export async function buildProgram(): Promise<void> {
  if (process.env[PROGRAM_VARIABLE] || process.env.NODE_V8_COVERAGE) return;
  const folder = await mkdtemp(join(tmpdir(), 'stagedoor-program-'));
  await chmod(folder, 0o755); // some specs start it as another user
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  const { programPath } = await installProgram(folder, 'watched-program.vite.config.ts');
  process.env[PROGRAM_VARIABLE] = programPath;
}
