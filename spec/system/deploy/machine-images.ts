// Images made from programs of this machine and their libraries: Node with npm and a shell, PostgreSQL, Redis. They replace the
// images named in deploy/Dockerfile and deploy/compose.yaml where no image registry can be reached.

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, copyFile, cp, mkdir, readdir, realpath, symlink, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { Podman } from '../../helpers/containers/podman.ts';

const run = promisify(execFile);
/** Programs that the Dockerfile, npm and the specs start. */
const PROGRAMS = ['sh', 'env', 'mkdir', 'ln', 'chown', 'rm'];
const NPM = 'usr/local/lib/node_modules/npm';
const AS_IT_IS = { recursive: true, verbatimSymlinks: true };
/** The id of the user and group `node`, and of the servers. */
const USER = 1000;

/** The contents of an image besides the programs that every image has. */
interface Contents {
  /** Programs or libraries; copied to the same path, with the libraries they need. */
  readonly files?: readonly string[];
  /** Folders of this machine, copied to the same path. */
  readonly folders?: readonly string[];
  /** Adds more files to the root folder of the image. */
  readonly fill?: (root: string) => Promise<void>;
  /** Dockerfile lines: `USER 1000`. */
  readonly settings?: readonly string[];
}

/** Imports the Node image and returns its name. `packages`: a folder whose `node_modules` is added. */
export async function importNodeImage(
  engine: Podman,
  name = 'localhost/stagedoor-node:1',
  packages?: string,
): Promise<string> {
  const npm = dirname(dirname(await realpath(await which('npm'))));
  const fill = async (root: string) => {
    const bin = join(root, 'usr/local/bin');
    await mkdir(bin, { recursive: true });
    await copyFile(process.execPath, join(bin, 'node'));
    await cp(npm, join(root, NPM), { recursive: true });
    for (const program of ['npm', 'npx']) {
      const script = `#!/bin/sh\nexec node /${NPM}/bin/${program}-cli.js "$@"\n`;
      await writeFile(join(bin, program), script, { mode: 0o755 });
    }
    if (packages !== undefined)
      await cp(join(packages, 'node_modules'), join(root, 'node_modules'), AS_IT_IS);
  };
  // Only its libraries: the program itself is in /usr/local/bin.
  const libraries = await librariesOf(process.execPath);
  return importImage(engine, name, { files: [...libraries, ...besideLibc(libraries)], fill });
}

/** Imports a PostgreSQL image that supports the variables of the compose file. */
export async function importPostgresImage(engine: Podman, name: string): Promise<void> {
  const [version = ''] = (await readdir('/usr/lib/postgresql')).sort().reverse();
  const bin = `/usr/lib/postgresql/${version}/bin`;
  const data = '/var/lib/postgresql/data';
  const fill = async (root: string) => {
    await writeFile(join(root, 'start'), POSTGRES_START, { mode: 0o755 });
    for (const folder of [data, '/var/run/postgresql']) await openFolder(root, folder);
  };
  await importImage(engine, name, {
    files: ['initdb', 'postgres', 'pg_ctl', 'pg_isready', 'psql'].map((program) => join(bin, program)),
    folders: [`/usr/lib/postgresql/${version}/lib`, `/usr/share/postgresql/${version}`],
    fill,
    settings: [
      ...[`USER ${USER}`, `ENV PATH=${bin}:/bin`, `ENV PGDATA=${data}/own`, `VOLUME ${data}`],
      'ENTRYPOINT ["/start"]',
    ],
  });
}

/** On the first start, creates the database with a server that has no TCP port. */
const POSTGRES_START = `#!/bin/sh
set -e
if [ ! -e "$PGDATA/PG_VERSION" ]; then
  initdb --username "$POSTGRES_USER" --pwfile "$POSTGRES_PASSWORD_FILE" --auth-host scram-sha-256 --no-sync >&2
  echo 'host all all all scram-sha-256' >> "$PGDATA/pg_hba.conf"
  pg_ctl start --wait --options '-c listen_addresses= -F' >&2
  psql --username "$POSTGRES_USER" --dbname postgres --command "CREATE DATABASE \\"$POSTGRES_DB\\"" >&2
  pg_ctl stop --wait >&2
fi
exec postgres -c 'listen_addresses=*' "$@"
`;

/** Imports a Redis image. */
export async function importRedisImage(engine: Podman, name: string): Promise<void> {
  const files = await Promise.all(['redis-server', 'redis-cli'].map(which));
  await importImage(engine, name, { files, settings: [`USER ${USER}`, 'ENV PATH=/usr/bin:/bin'] });
}

async function importImage(
  engine: Podman,
  name: string,
  { files = [], folders = [], fill, settings = [] }: Contents,
): Promise<string> {
  const root = join(engine.folder, 'images', name.replaceAll(/\W/g, '-'));
  for (const folder of ['proc', 'sys', 'dev', 'tmp', 'root', 'etc', 'var', 'bin', 'usr'])
    await mkdir(join(root, folder), { recursive: true });
  await chmod(join(root, 'tmp'), 0o1777);
  await openFolder(root, '/home/node');
  const users = ['root:x:0:0::/root:/bin/sh', `node:x:${USER}:${USER}::/home/node:/bin/sh`];
  await writeFile(join(root, 'etc/passwd'), `${users.join('\n')}\n`);
  const programs = await Promise.all(PROGRAMS.map(which));
  for (const program of programs) await copyFile(program, join(root, 'bin', basename(program)));
  await mkdir(join(root, 'usr/bin'), { recursive: true });
  await symlink('../../bin/env', join(root, 'usr/bin/env')); // the first line of scripts
  await fill?.(root);
  const libraries = (await Promise.all([...programs, ...files].map(librariesOf))).flat();
  const kept = [...new Set([...libraries, ...files, ...folders])].map((file) => file.slice(1));
  const archive = `${root}.tar`;
  await run('tar', ['-cf', archive, '-C', root, '.']);
  await run('tar', ['-rhf', archive, '-C', '/', ...kept]);
  const changes = settings.flatMap((line) => ['--change', line]);
  await engine.podman('import', ...changes, archive, name);
  return name;
}

/** A folder of the image that every user may write to. */
async function openFolder(root: string, path: string): Promise<void> {
  await mkdir(join(root, path), { recursive: true });
  await chmod(join(root, path), 0o777);
}

async function librariesOf(file: string): Promise<string[]> {
  return (await run('ldd', [file])).stdout.match(/\/\S+/g) ?? [];
}

/** Parts of the C library that native packages load but Node does not; real images have them. */
function besideLibc(libraries: readonly string[]): string[] {
  const libc = libraries.find((file) => basename(file) === 'libc.so.6');
  const realTime = libc === undefined ? '' : join(dirname(libc), 'librt.so.1');
  return existsSync(realTime) ? [realTime] : [];
}

async function which(program: string): Promise<string> {
  return (await run('sh', ['-c', `command -v ${program}`])).stdout.trim();
}
