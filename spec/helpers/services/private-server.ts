// Starts a private server from installed binaries: on a free port of the loopback address, in a scratch folder, as an
// unprivileged user, without durability. Each recipe names its programs and what to install. A server can be used if an attempt
// succeeds: a database is created and dropped, a key of Redis is set.

import { execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chownSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Redis } from 'ioredis';
import { freePort } from '../network/free-port.ts';
import { freshDatabase } from './services.ts';
import type { ServiceName } from './supervised.ts';

export interface PrivateServer {
  readonly url: string;
  /** Resolves when it has ended, for any reason. */
  readonly ended: Promise<unknown>;
  /** Stops it within 10 s, by force if necessary; keeps its files. */
  stop(): Promise<void>;
}

interface ServerLocation {
  readonly data: string;
  readonly port: number;
}

interface Program {
  readonly name: string;
  readonly args: (location: ServerLocation) => readonly string[];
}

interface Recipe {
  readonly install: string;
  readonly url: (port: number) => string;
  /** Fills the empty data folder. */
  readonly prepare?: Program;
  readonly serve: Program;
  /** The signal that stops it without saving anything. */
  readonly stop: NodeJS.Signals;
}

const recipes: Readonly<Record<ServiceName, Recipe>> = {
  postgresql: {
    install: 'PostgreSQL (Debian: apt-get install postgresql)',
    url: (port) => `postgresql://postgres@127.0.0.1:${port}/postgres`,
    prepare: {
      name: 'initdb',
      args: ({ data }) => [
        ...['-D', data, '-U', 'postgres', '--auth=trust'],
        ...['--encoding=UTF8', '--locale=C', '--no-sync', '--no-instructions'],
      ],
    },
    serve: {
      name: 'postgres',
      args: ({ data, port }) => [
        ...['-D', data, '-h', '127.0.0.1', '-p', String(port)],
        ...['-c', 'unix_socket_directories=', '-c', 'fsync=off', '-c', 'max_connections=200'],
      ],
    },
    stop: 'SIGQUIT',
  },
  mariadb: {
    install: 'MariaDB (Debian: apt-get install mariadb-server)',
    url: (port) => `mariadb://root@127.0.0.1:${port}/mysql`,
    prepare: {
      name: 'mariadb-install-db',
      args: ({ data }) => [
        ...['--no-defaults', `--datadir=${data}`],
        ...['--auth-root-authentication-method=normal', '--skip-test-db'],
      ],
    },
    serve: {
      name: 'mariadbd',
      args: ({ data, port }) => [
        ...['--no-defaults', `--datadir=${data}`, `--port=${port}`, '--bind-address=127.0.0.1'],
        // Relative to the data folder, because long socket paths are refused.
        ...['--socket=server.sock', '--pid-file=server.pid', '--skip-log-bin'],
        '--innodb-flush-log-at-trx-commit=0',
      ],
    },
    stop: 'SIGKILL',
  },
  redis: {
    install: 'Redis (Debian: apt-get install redis-server)',
    url: (port) => `redis://127.0.0.1:${port}`,
    serve: {
      name: 'redis-server',
      args: ({ data, port }) => [
        ...['--port', String(port), '--bind', '127.0.0.1'],
        ...['--dir', data, '--save', '', '--appendonly', 'no'],
      ],
    },
    stop: 'SIGKILL',
  },
};

/** Long enough for a busy machine; a closed port refuses at once. */
const connectWithinMs = 15_000;
const prepareWithinMs = 40_000;
const answerWithinMs = 40_000;
/** PostgreSQL gives its processes 5 s before it kills them; killed earlier, it would leave them behind. */
const stopWithinMs = 10_000;
const attempts = 3;
/** The user `nobody` on Linux; some servers refuse to run as root. */
const nobodyUid = 65_534;

/**
 * Starts a server in a new folder and resolves when it answers. Resolves with a sentence that says what to install when
 * programs are missing. Rejects when they are present but do not work.
 */
export async function startPrivate(
  name: ServiceName,
  makeFolder: () => string,
): Promise<PrivateServer | string> {
  const { prepare, serve, install } = recipes[name];
  const programs = findPrograms([...(prepare ? [prepare.name] : []), serve.name]);
  if (programs === undefined) {
    return `there is no ${name} server: install ${install} or set ${variableOf(name)}`;
  }
  const folder = makeFolder();
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await startOnce(name, programs, join(folder, `data-${attempt}`));
    } catch (thrown) {
      // Another process may have taken the free port meanwhile.
      if (attempt === attempts) throw thrown;
    }
  }
}

async function startOnce(
  name: ServiceName,
  programs: ReadonlyMap<string, string>,
  data: string,
): Promise<PrivateServer> {
  const { prepare, serve, url: urlAt, stop } = recipes[name];
  // A starting MariaDB deletes the temporary tables of all others that use the same temporary folder.
  const temporary = `${data}-tmp`;
  const isRoot = process.getuid?.() === 0;
  for (const folder of [data, temporary]) {
    mkdirSync(folder, { mode: 0o700 });
    if (isRoot) chownSync(folder, nobodyUid, nobodyUid);
  }
  const location = { data, port: await freePort() };
  const options = {
    ...(isRoot ? { uid: nobodyUid, gid: nobodyUid } : {}),
    cwd: data,
    env: { PATH: process.env.PATH ?? '', HOME: data, TMPDIR: temporary, LANG: 'C.UTF-8' },
  };
  const lineOf = ({ name, args }: Program) => [programs.get(name) ?? name, args(location)] as const;
  if (prepare !== undefined) {
    const limits = { timeout: prepareWithinMs, killSignal: 'SIGKILL' } as const;
    await promisify(execFile)(...lineOf(prepare), { ...options, ...limits });
  }
  const child = spawn(...lineOf(serve), { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  const keep = (text: string): void => {
    output = (output + text).slice(-2_000);
  };
  for (const channel of [child.stdout, child.stderr]) channel.setEncoding('utf8').on('data', keep);
  let isRunning = true;
  const ended = once(child, 'exit').then(
    () => (isRunning = false),
    (error) => {
      isRunning = false;
      keep(String(error));
    },
  );
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    child.kill(signal);
    await Promise.race([ended, delay(stopWithinMs, undefined, { ref: false })]);
    child.kill('SIGKILL');
    await ended;
  };
  const url = urlAt(location.port);
  const giveUpAtMs = performance.now() + answerWithinMs;
  while (isRunning && performance.now() < giveUpAtMs) {
    try {
      await answers(name, url);
      return { url, ended, stop: () => end(stop) };
    } catch {
      await delay(50); // it is still starting
    }
  }
  await end('SIGKILL');
  throw new Error(`a private server did not answer within ${answerWithinMs / 1000} s: ${output}`);
}

/** The variable with the URL of a server: TEST_POSTGRESQL_URL, TEST_MARIADB_URL, TEST_REDIS_URL. */
export function variableOf(name: ServiceName): string {
  return `TEST_${name.toUpperCase()}_URL`;
}

/** Rejects unless the server can be used as specs use it. */
export async function answers(name: ServiceName, url: string): Promise<void> {
  if (name !== 'redis') return (await freshDatabase({ url })).drop();
  const client = new Redis(url, {
    lazyConnect: true,
    connectTimeout: connectWithinMs,
    commandTimeout: connectWithinMs,
    retryStrategy: () => null,
  });
  // The command rejects with the same error; without a listener it would also be printed.
  client.on('error', () => undefined);
  try {
    const key = `stagedoor_spec_${randomBytes(8).toString('hex')}`;
    await client.connect();
    await client.set(key, '1', 'PX', 1_000);
  } finally {
    client.disconnect();
  }
}

/** Finds the programs of a recipe, in one folder if possible so that versions do not mix. Undefined when one is missing. */
function findPrograms(names: readonly string[]): ReadonlyMap<string, string> | undefined {
  const folders = programFolders();
  const together = folders.find((folder) => names.every((name) => existsSync(join(folder, name))));
  const found = new Map<string, string>();
  for (const name of names) {
    const folder = together ?? folders.find((candidate) => existsSync(join(candidate, name)));
    if (folder === undefined) return undefined;
    found.set(name, join(folder, name));
  }
  return found;
}

function programFolders(): string[] {
  const path = (process.env.PATH ?? '').split(delimiter).filter(Boolean);
  return [...debianPostgresql(), ...path, '/usr/sbin', '/usr/local/sbin', '/opt/homebrew/bin'];
}

/** Debian's folders of server programs, which are not on the PATH: one per version, newest first. */
function debianPostgresql(): string[] {
  const root = '/usr/lib/postgresql';
  if (!existsSync(root)) return [];
  const versions = readdirSync(root).toSorted((one, other) => Number(other) - Number(one));
  return versions.map((version) => join(root, version, 'bin'));
}
