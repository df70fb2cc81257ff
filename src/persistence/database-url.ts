// Reads a database URL without connecting to anything and without loading a driver. Source: ADR 18.

import { isAbsolute, resolve } from 'node:path';
import type { Database, DatabaseAddress, DatabaseKind } from './database.ts';
import { mssql } from './databases/mssql.ts';
import { mysql } from './databases/mysql.ts';
import { oracle } from './databases/oracle.ts';
import { postgresql } from './databases/postgresql.ts';
import { sqlite } from './databases/sqlite.ts';
import { StoreOpenError } from './store-errors.ts';

/** The kinds of databases, in the order in which messages name them. */
export const DATABASES: readonly Database[] = [sqlite, postgresql, mysql, mssql, oracle];

export interface DatabaseDescription {
  readonly kind: DatabaseKind | 'memory';
  /** The place of the database. Memory ends with the process; only a server is shared by the gateways of several machines. */
  readonly place: 'memory' | 'file' | 'server';
  /** The URL without password and options; of a file, its absolute path. */
  readonly printable: string;
  /** The absolute path of the SQLite file; absent for memory and servers. */
  readonly file?: string;
}

export interface ParsedDatabaseUrl {
  readonly database: Database;
  readonly address: DatabaseAddress;
  readonly description: DatabaseDescription;
}

const MEMORY = ':memory:';

/**
 * The parts of a URL; undefined for `memory://`, which is not a database. `cwd`: base of a relative file. Throws
 * StoreOpenError.
 */
export function parseDatabaseUrl(url: string, cwd: string): ParsedDatabaseUrl | undefined {
  // A URL such as `postgresql+asyncpg` names a driver of another language.
  const [prefix = '', written = ''] = /^([a-z][a-z0-9]*)(?:\+[a-z0-9_.-]+)?:\/\//i.exec(url) ?? [];
  const name = written.toLowerCase();
  if (name === 'memory') return undefined;
  const database = DATABASES.find(({ schemes }) => schemes.includes(name));
  if (database === undefined) {
    const known = [...DATABASES.flatMap(({ schemes }) => schemes), 'memory'].map((scheme) => `${scheme}://`);
    throw new StoreOpenError(
      `a database is named by a URL such as sqlite:///gateway.db, which begins with one of ${known.join(', ')}`,
    );
  }
  const rest = url.slice(prefix.length);
  try {
    return database.isFile ? fileOf(database, rest, cwd) : serverOf(database, name, rest);
  } catch (thrown) {
    if (thrown instanceof StoreOpenError) throw thrown;
    throw new StoreOpenError(
      `the database URL cannot be read: it looks like ${example(database)}; special characters are written as %XX`,
      { cause: thrown },
    );
  }
}

export function describeDatabase(url: string, cwd: string): DatabaseDescription {
  return (
    parseDatabaseUrl(url, cwd)?.description ?? { kind: 'memory', place: 'memory', printable: 'memory://' }
  );
}

/** The host on which a database server listens; `localhost` for a socket file. Undefined for a file, and without a database. */
export function databaseHost(
  url: string,
  cwd: string,
): { readonly host: string; readonly port: number } | undefined {
  const { database, address } = parseDatabaseUrl(url, cwd) ?? {};
  if (database === undefined || address === undefined || database.isFile) return undefined;
  const { options, port } = address;
  const named = options.get('host');
  const isSocket = named?.startsWith('/') === true || options.has('socket');
  return { host: isSocket ? 'localhost' : (named ?? address.host), port };
}

function fileOf(database: Database, rest: string, cwd: string): ParsedDatabaseUrl {
  const [path = '', query = ''] = rest.split(/\?(.*)/s);
  const options = optionsOf(database, new URLSearchParams(query));
  if (path !== '' && !path.startsWith('/'))
    throw new StoreOpenError(
      `a SQLite URL has three slashes before a relative path and four before an absolute one: ` +
        `sqlite:///gateway.db, sqlite:////var/lib/stagedoor/gateway.db`,
    );
  const name = decodeURIComponent(path.slice(1));
  const isMemory = name === '' || name === MEMORY;
  const file = isMemory ? undefined : isAbsolute(name) ? name : resolve(cwd, name);
  return {
    database,
    address: { host: '', port: 0, user: '', password: '', name: file ?? MEMORY, options },
    description: {
      kind: database.kind,
      place: file === undefined ? 'memory' : 'file',
      printable: file ?? 'SQLite in memory',
      ...(file === undefined ? {} : { file }),
    },
  };
}

function serverOf(database: Database, scheme: string, rest: string): ParsedDatabaseUrl {
  // `user@/name`, as libpq and SQLAlchemy write a socket: a URL needs a host after a user.
  const parsed = new URL(`${scheme}://${rest.replace(/^([^/?#]*@)(?=[:/])/, '$1localhost')}`);
  const options = optionsOf(database, parsed.searchParams);
  const host = parsed.hostname === '' ? 'localhost' : parsed.hostname.replace(/^\[(.*)\]$/, '$1');
  const port = parsed.port === '' ? database.defaultPort : Number(parsed.port);
  const user = decodeURIComponent(parsed.username);
  const name = decodeURIComponent(parsed.pathname.replace(/^\//, ''));
  if (name === '' && !options.has('service_name'))
    throw new StoreOpenError(`the database URL names no database: it looks like ${example(database)}`);
  const authority = `${parsed.username === '' ? '' : `${parsed.username}@`}${parsed.hostname || 'localhost'}:${port}`;
  return {
    database,
    address: {
      host: decodeURIComponent(host),
      port,
      user,
      password: decodeURIComponent(parsed.password),
      name,
      options,
    },
    description: {
      kind: database.kind,
      place: 'server',
      printable: `${scheme}://${authority}/${name || options.get('service_name')}`,
    },
  };
}

function optionsOf({ label, urlOptions }: Database, query: URLSearchParams): ReadonlyMap<string, string> {
  for (const name of query.keys()) {
    if (urlOptions.includes(name)) continue;
    const known = urlOptions.length === 0 ? 'it takes none' : `it takes ${urlOptions.join(', ')}`;
    throw new StoreOpenError(`the URL of a ${label} database has the unknown option "${name}": ${known}`);
  }
  return new Map(query);
}

function example({ schemes, isFile, defaultPort }: Database): string {
  return isFile ? 'sqlite:///gateway.db' : `${schemes[0]}://user:password@host:${defaultPort}/name`;
}
