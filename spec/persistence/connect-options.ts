// Connections to databases by their URLs, for specs that look below the store.

import type { ConnectOptions } from '../../src/persistence/database.ts';
import { type ParsedDatabaseUrl, parseDatabaseUrl } from '../../src/persistence/database-url.ts';
import { Sockets } from '../../src/persistence/orm/connection/mikro-orm-patches.ts';
import { connectOrm, type Orm } from '../../src/persistence/orm/connection/orm.ts';

/** The parsed URL of a database other than memory. */
export function parsed(url: string): ParsedDatabaseUrl {
  const found = parseDatabaseUrl(url, '/srv');
  if (found === undefined) throw new Error('this URL has no address');
  return found;
}

/** Options for a URL, with limits of 4 s, 3 s, 5 s and 10 connections. */
export function connectOptions(url: string): ConnectOptions {
  return {
    address: parsed(url).address,
    statementTimeoutMs: 4_000,
    idleTransactionMs: 3_000,
    connectTimeoutMs: 5_000,
    connections: 10,
    sockets: new Sockets(),
  };
}

/** Connects with these options. */
export function connect(url: string): Promise<Orm> {
  return connectOrm(parsed(url).database, connectOptions(url));
}
