// The real servers that specs use. Each is searched once per run: the URL in the environment (TEST_POSTGRESQL_URL,
// TEST_MARIADB_URL, TEST_REDIS_URL), else a private one that is started from installed binaries and ends with the run.

import { randomBytes } from 'node:crypto';
import { executeSql } from './sql.ts';
import { answerVariable, type ServiceAnswer, type ServiceName, SupervisedServers } from './supervised.ts';

/** A server, or the reason why there is none. `test.needs(service.url, service.skip)` reports the skip. */
export type Service =
  | { readonly url: string; readonly skip: '' }
  | { readonly url: undefined; readonly skip: string };

/** A new database in a server. */
export interface FreshDatabase {
  readonly url: string;
  /** Ends its connections and deletes it. */
  drop(): Promise<void>;
}

/** The servers of a spec file that is started by hand. */
const ownServers = new SupervisedServers();

/** A PostgreSQL server whose user may create databases. */
export function postgresql(): Promise<Service> {
  return findService('postgresql');
}

/** A MariaDB or MySQL server whose user may create databases. */
export function mariadb(): Promise<Service> {
  return findService('mariadb');
}

/** A Redis server. Others may use it at the same time: use a unique prefix for keys. */
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

async function findService(name: ServiceName): Promise<Service> {
  const preset = process.env[answerVariable(name)];
  return serviceOf(preset === undefined ? await ownServers.find(name) : JSON.parse(preset));
}

/**
 * Converts an answer. Throws when a URL was given and its server does not answer, and, with STAGEDOOR_REQUIRE_SERVICES=1
 * (which .ci/run sets), when there is no server.
 */
export function serviceOf(
  answer: ServiceAnswer,
  environment: Readonly<Record<string, string | undefined>> = process.env,
): Service {
  if ('error' in answer) throw new Error(answer.error);
  if ('url' in answer) return { url: answer.url, skip: '' };
  if (environment.STAGEDOOR_REQUIRE_SERVICES === '1') throw new Error(`required here, but ${answer.skip}`);
  return { url: undefined, skip: answer.skip };
}
