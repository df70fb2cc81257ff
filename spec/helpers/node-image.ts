// A base image made of this machine: the Node that runs the specs, npm, a shell and a few programs, with their libraries.
// It stands for the image that deploy/Dockerfile names where no registry of images can be reached.

import { execFile } from 'node:child_process';
import { chmod, copyFile, cp, mkdir, realpath, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { Podman } from './podman.ts';

const run = promisify(execFile);
/** What the Dockerfile, npm and the specs start. */
const PROGRAMS = ['sh', 'env', 'mkdir', 'ln', 'chown', 'rm'];
const NPM = 'usr/local/lib/node_modules/npm';
const IMAGE = 'localhost/stagedoor-node:1';

/** Imports the image and gives its name. */
export async function importNodeImage(engine: Podman): Promise<string> {
  const root = join(engine.folder, 'node-image');
  const bin = join(root, 'usr/local/bin');
  await mkdir(bin, { recursive: true });
  for (const name of ['proc', 'sys', 'dev', 'tmp', 'root', 'etc', 'var']) await mkdir(join(root, name));
  await chmod(join(root, 'tmp'), 0o1777);
  await writeFile(
    join(root, 'etc/passwd'),
    'root:x:0:0::/root:/bin/sh\nnode:x:1000:1000::/home/node:/bin/sh\n',
  );
  await copyFile(process.execPath, join(bin, 'node'));
  await cp(dirname(dirname(await realpath(await which('npm')))), join(root, NPM), { recursive: true });
  for (const name of ['npm', 'npx']) {
    await writeFile(join(bin, name), `#!/bin/sh\nexec node /${NPM}/bin/${name}-cli.js "$@"\n`, {
      mode: 0o755,
    });
  }
  await mkdir(join(root, 'bin'));
  await symlink('../bin', join(root, 'usr/bin'));
  const programs = await Promise.all(PROGRAMS.map(which));
  for (const [index, name] of PROGRAMS.entries())
    await copyFile(programs[index] ?? '', join(root, 'bin', name));
  const links = await Promise.all([...programs, process.execPath].map((file) => run('ldd', [file])));
  const libraries = links.flatMap(({ stdout }) => stdout.match(/\/\S+/g) ?? []);
  const files = [...new Set(libraries)].map((file) => file.slice(1));
  const archive = join(engine.folder, 'node-image.tar');
  await run('tar', ['-cf', archive, '-C', root, '.']);
  await run('tar', ['-rhf', archive, '-C', '/', ...files]);
  await engine.podman('import', archive, IMAGE);
  return IMAGE;
}

async function which(program: string): Promise<string> {
  return (await run('sh', ['-c', `command -v ${program}`])).stdout.trim();
}
