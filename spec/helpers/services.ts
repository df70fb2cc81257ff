// The real servers that specs talk to. Each is looked for once per run, in this order: the URL in the environment
// (TEST_POSTGRESQL_URL, TEST_MARIADB_URL, TEST_REDIS_URL), the default port of this machine, a private one started from
// installed binaries, which ends with the run (STAGEDOOR_PRIVATE_SERVICES=1 leaves the second out). The looking is done by a supervisor process (services/supervisor.ts), because
// spec files are processes of their own and a private server must outlive the first one that asks.

import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { currentRunFolder } from '../runner/run-folder.ts';
import { executeSql } from './services/sql.ts';

/** A server that answers, or why there is none. `test.needs(service.url, service.skip)` makes the skip visible. */
export type Service =
  | { readonly url: string; readonly skip: '' }
  | { readonly url: undefined; readonly skip: string };

/** What a supervisor writes down; `error` is for a server that was named but does not answer. */
export type ServiceAnswer = { readonly url: string } | { readonly skip: string } | { readonly error: string };

export type ServiceName = 'postgresql' | 'mariadb' | 'redis';

/** A database of its own in a server. */
export interface FreshDatabase {
  readonly url: string;
  /** Ends what is still connected to it and deletes it. */
  drop(): Promise<void>;
}

const supervisorModule = fileURLToPath(new URL('services/supervisor.ts', import.meta.url));
/** Longer than a start of a private server takes on the slowest machine; see services/private-server.ts. */
const answerWithinMs = 90_000;
const lookAgainMs = 25;
// Taken before any spec can replace the global timers with simulated ones.
const { setTimeout: startTimer } = globalThis;

/** A PostgreSQL server whose user may create databases. */
export function postgresql(): Promise<Service> {
  return findService('postgresql');
}

/** A MariaDB or MySQL server whose user may create databases. */
export function mariadb(): Promise<Service> {
  return findService('mariadb');
}

/** A Redis server. Others may use it at the same time: keys need a prefix of their own. */
export function redis(): Promise<Service> {
  return findService('redis');
}

/** Creates an empty database with a random name in a PostgreSQL or MariaDB server. The caller drops it. */
export async function freshDatabase({ url }: { readonly url: string }): Promise<FreshDatabase> {
  const name = `stagedoor_spec_${randomBytes(8).toString('hex')}`;
  const own = new URL(url);
  own.pathname = `/${name}`;
  const isPostgresql = own.protocol.startsWith('postgres');
  await executeSql(url, isPostgresql ? `create database ${name}` : `create database \`${name}\``);
  return {
    url: own.href,
    drop: () =>
      executeSql(
        url,
        isPostgresql ? `drop database if exists ${name} with (force)` : `drop database if exists \`${name}\``,
      ),
  };
}

/**
 * Finds or starts a server. Rejects when a URL was given and nothing answers there, and, with
 * STAGEDOOR_REQUIRE_SERVICES=1 (which .ci/run sets), when there is none.
 */
export async function findService(
  name: ServiceName,
  environment: Readonly<Record<string, string | undefined>> = process.env,
): Promise<Service> {
  const answer = await answerOf(name, environment);
  if ('error' in answer) throw new Error(answer.error);
  if ('url' in answer) return { url: answer.url, skip: '' };
  if (environment.STAGEDOOR_REQUIRE_SERVICES === '1') throw new Error(`required here, but ${answer.skip}`);
  return { url: undefined, skip: answer.skip };
}

async function answerOf(
  name: ServiceName,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<ServiceAnswer> {
  const run = currentRunFolder(environment);
  const folder = join(run.path, name);
  if (await isFirst(folder)) {
    const supervisor = spawn(
      process.execPath,
      [supervisorModule, name, folder, String(run.ownerPid)],
      // A group of its own: the runner ends the group of each spec file.
      { stdio: 'ignore', detached: true, windowsHide: true, env: { ...environment } },
    );
    supervisor.unref();
  }
  const giveUpAtMs = performance.now() + answerWithinMs;
  while (performance.now() < giveUpAtMs) {
    const answer = await readAnswer(join(folder, 'answer.json'));
    if (answer !== undefined) return answer;
    await new Promise((resolve) => startTimer(resolve, lookAgainMs));
  }
  return { error: `${name}: its supervisor did not answer within ${answerWithinMs / 1000} s` };
}

/** The process that makes the folder starts the supervisor; the others wait for its answer. */
async function isFirst(folder: string): Promise<boolean> {
  try {
    await mkdir(folder);
    return true;
  } catch (thrown) {
    if (thrown instanceof Error && 'code' in thrown && thrown.code === 'EEXIST') return false;
    throw thrown;
  }
}

async function readAnswer(path: string): Promise<ServiceAnswer | undefined> {
  try {
    // Written by the supervisor, with this type, and moved into place as a whole.
    return JSON.parse(await readFile(path, 'utf8')) as ServiceAnswer;
  } catch (thrown) {
    if (thrown instanceof Error && 'code' in thrown && thrown.code === 'ENOENT') return undefined;
    throw thrown;
  }
}
