// Makes the program as users install it: built, below a folder `node_modules`, with the dependencies of this repository. A clone
// that runs its sources needs more memory and starts later.

import { cp, mkdir, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runNode } from './children.ts';

/** The program, and the environment with which it is started. */
export interface Installed {
  readonly programPath: string;
  readonly environment: Readonly<Record<string, string>>;
}

const repository = fileURLToPath(new URL('..', import.meta.url));
/** Of the benchmark: always the same, so that Node's cache of compiled code, which goes by path, serves from the second start on. */
const benchPlace = join(repository, 'node_modules/.cache/stagedoor-bench');

/** `config`: what is built, a file of tools/. Its cache of compiled code is empty and used by nothing else. */
export async function installProgram(
  place = benchPlace,
  config = 'program.vite.config.ts',
): Promise<Installed> {
  const root = join(place, 'node_modules/stagedoor');
  const cache = join(place, 'cache');
  await Promise.all([root, cache].map((folder) => rm(folder, { recursive: true, force: true })));
  await mkdir(root, { recursive: true });
  const builder = join(repository, 'node_modules/vite/bin/vite.js');
  const project = join(repository, 'tools', config);
  const flags = ['--logLevel', 'error', '--outDir', join(root, 'dist/program')];
  await runNode([builder, 'build', '--config', project, ...flags]);
  for (const name of ['package.json', 'bin', 'templates', 'schemas', 'web/dist'])
    await cp(join(repository, name), join(root, name), { recursive: true }).catch(ignoreMissing);
  await symlink(join(repository, 'node_modules'), join(root, 'node_modules'), 'junction');
  return { programPath: join(root, 'bin/stagedoor.mjs'), environment: { XDG_CACHE_HOME: cache } };
}

/** The console may not be built. */
function ignoreMissing(error: NodeJS.ErrnoException): void {
  if (error.code !== 'ENOENT') throw error;
}
