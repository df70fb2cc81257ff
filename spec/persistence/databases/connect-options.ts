// What databases are asked for their options with.

import type { ConnectOptions, Database, Failure } from '../../../src/persistence/database.ts';
import { parseDatabaseUrl } from '../../../src/persistence/database-url.ts';
import { Sockets } from '../../../src/persistence/mikro-orm-patches.ts';

/** Options for a URL, with limits of 4 s, 5 s and 10 connections. */
export function connectOptions(url: string): ConnectOptions {
  const address = parseDatabaseUrl(url, '/srv')?.address;
  if (address === undefined) throw new Error('this URL has no address');
  return {
    address,
    statementTimeoutMs: 4_000,
    connectTimeoutMs: 5_000,
    connections: 10,
    sockets: new Sockets(),
  };
}

/** What a database makes of errors: by code, by number, or by message. */
export function failuresOf(
  { failure }: Database,
  errors: readonly (string | number | { readonly message: string })[],
): (Failure | undefined)[] {
  return errors.map((error) =>
    failure({
      code: typeof error === 'string' ? error : '',
      number: typeof error === 'number' ? error : 0,
      isFatal: false,
      message: typeof error === 'object' ? error.message : '',
    }),
  );
}

/** The statements that the database runs on a new connection. */
export async function statementsOnConnect(database: Database, url: string): Promise<string[]> {
  const statements: string[] = [];
  const connection = {
    callTimeout: 0,
    executeQuery: async ({ sql }: { readonly sql: string }) => statements.push(sql),
    execute: async (sql: string) => statements.push(sql),
    close: () => {},
  };
  await database.options(connectOptions(url)).onCreateConnection?.(connection);
  return statements;
}
