// Starts a server of our own from installed binaries: on a free port of the loopback address, in a scratch folder, as a
// user without rights, with no regard for durability. Each recipe says which programs it needs and what to install.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { delimiter, join } from 'node:path';
import { removeFolder } from '../../runner/run-folder.ts';
import type { ServiceName } from '../services.ts';
import { answers, variableOf } from './find.ts';

export interface PrivateServer {
  readonly url: string;
  isRunning(): boolean;
  /** Ends it within 10 s, if need be by force, and removes its files. */
  stop(): Promise<void>;
}

interface Place {
  readonly data: string;
  readonly port: number;
}

interface Program {
  readonly name: string;
  readonly args: (place: Place) => readonly string[];
}

interface Recipe {
  readonly install: string;
  readonly url: (port: number) => string;
  /** Fills the empty data folder. */
  readonly prepare?: Program;
  readonly serve: Program;
  /** Ends it at once; nothing needs saving. */
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
        // Relative to the data folder: a long path to a socket is refused.
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

const prepareWithinMs = 40_000;
const answerWithinMs = 40_000;
/** A PostgreSQL gives its own processes 5 s before it uses force; ended before that, it would leave them behind. */
const stopWithinMs = 10_000;
const attempts = 3;
/** `nobody` on every Linux: the servers refuse to run as root, or should. */
const nobodyUid = 65_534;

/**
 * Starts a server in `folder` and resolves when it answers. Resolves with a sentence that says what to install when
 * programs are missing. Rejects when they are there and do not work. `onStart` is called before anything runs;
 * programs are looked for in `folders`.
 */
export async function startPrivate(
  name: ServiceName,
  folder: string,
  onStart: () => Promise<void>,
  folders: readonly string[] = programFolders(),
): Promise<PrivateServer | string> {
  const recipe = recipes[name];
  const programs = findPrograms(
    [...(recipe.prepare ? [recipe.prepare.name] : []), recipe.serve.name],
    folders,
  );
  if (programs === undefined) {
    return `there is no ${name} server: install ${recipe.install} or set ${variableOf(name)}`;
  }
  await onStart();
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await startOnce(name, programs, join(folder, `data-${attempt}`));
    } catch (thrown) {
      // Between choosing a free port and listening on it somebody else may have taken it.
      if (attempt === attempts) throw thrown;
    }
  }
}

async function startOnce(
  name: ServiceName,
  programs: ReadonlyMap<string, string>,
  data: string,
): Promise<PrivateServer> {
  const { prepare, serve, url, stop } = recipes[name];
  // A starting MariaDB deletes the temporary tables of every other one that shares its folder for temporary files.
  const temporary = `${data}-tmp`;
  const isRoot = process.getuid?.() === 0;
  for (const folder of [data, temporary]) {
    mkdirSync(folder, { mode: 0o700 });
    if (isRoot) chownSync(folder, nobodyUid, nobodyUid);
  }
  const place = { data, port: await freePort() };
  const run = (program: Program): Running =>
    new Running(programs.get(program.name) ?? program.name, program.args(place), {
      ...(isRoot ? { uid: nobodyUid, gid: nobodyUid } : {}),
      cwd: data,
      env: { PATH: process.env.PATH ?? '', HOME: data, TMPDIR: temporary, LANG: 'C.UTF-8' },
    });
  if (prepare !== undefined) {
    const preparing = run(prepare);
    if ((await preparing.endedWithin(prepareWithinMs)) !== 0) {
      await preparing.stop('SIGKILL');
      throw new Error(`its data folder could not be made: ${preparing.output}`);
    }
  }
  const running = run(serve);
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    await running.stop(signal);
    await Promise.all([data, temporary].map(removeFolder));
  };
  const giveUpAtMs = performance.now() + answerWithinMs;
  while (running.isRunning() && performance.now() < giveUpAtMs) {
    try {
      await answers(name, url(place.port));
      return { url: url(place.port), isRunning: () => running.isRunning(), stop: () => end(stop) };
    } catch {
      // It is still starting.
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
  await end('SIGKILL');
  throw new Error(`a private server did not answer within ${answerWithinMs / 1000} s: ${running.output}`);
}

/** A child of the supervisor with the end of what it printed. */
class Running {
  readonly #child: ChildProcess;
  readonly #ended: Promise<number | null>;
  #isRunning = true;
  #output = '';

  constructor(
    program: string,
    args: readonly string[],
    options: { readonly cwd: string; readonly env: Record<string, string>; uid?: number; gid?: number },
  ) {
    this.#child = spawn(program, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
    const keep = (text: string): void => {
      this.#output = (this.#output + text).slice(-2_000);
    };
    this.#child.stdout?.setEncoding('utf8').on('data', keep);
    this.#child.stderr?.setEncoding('utf8').on('data', keep);
    this.#child.once('error', ({ message }) => keep(message));
    this.#ended = once(this.#child, 'exit').then(
      ([code]) => this.#end(code),
      () => this.#end(-1),
    );
  }

  get output(): string {
    return this.#output;
  }

  isRunning(): boolean {
    return this.#isRunning;
  }

  /** Its exit code; undefined when the time is over before its end. */
  async endedWithin(limitMs: number): Promise<number | null | undefined> {
    let timer: NodeJS.Timeout | undefined;
    const limit = new Promise<undefined>((resolve) => {
      timer = setTimeout(() => resolve(undefined), limitMs);
    });
    const code = await Promise.race([this.#ended, limit]);
    clearTimeout(timer);
    return code;
  }

  async stop(signal: NodeJS.Signals): Promise<void> {
    this.#child.kill(signal);
    if ((await this.endedWithin(stopWithinMs)) !== undefined) return;
    this.#child.kill('SIGKILL');
    await this.#ended;
  }

  #end(code: number | null): number | null {
    this.#isRunning = false;
    return code;
  }
}

/** Programs of one recipe come from one folder when they can: two versions do not mix. Undefined when one is missing. */
function findPrograms(
  names: readonly string[],
  folders: readonly string[],
): ReadonlyMap<string, string> | undefined {
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

/** Debian keeps the servers' programs off the PATH, one folder per version; newest first. */
function debianPostgresql(): string[] {
  const root = '/usr/lib/postgresql';
  if (!existsSync(root)) return [];
  const versions = readdirSync(root).toSorted((one, other) => Number(other) - Number(one));
  return versions.map((version) => join(root, version, 'bin'));
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo; // it listens on a port, not on a pipe
  await once(server.close(), 'close');
  return port;
}
