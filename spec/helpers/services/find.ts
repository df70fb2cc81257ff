// Checks whether a server can be used, and finds the default one of this machine. The check is an attempt: a database is
// created and dropped, a Redis is pinged.

import { randomBytes } from 'node:crypto';
import { userInfo } from 'node:os';
import { Redis } from 'ioredis';
import { accepts } from '../http-raw.ts';
import { freshDatabase } from '../services.ts';
import type { ServiceName } from './supervised.ts';

const ports = { postgresql: 5432, mariadb: 3306, redis: 6379 } as const;
/** Long enough for a busy machine; a closed port refuses at once. */
const connectWithinMs = 15_000;

/** The variable with the URL of a server: TEST_POSTGRESQL_URL, TEST_MARIADB_URL, TEST_REDIS_URL. */
export function variableOf(name: ServiceName): string {
  return `TEST_${name.toUpperCase()}_URL`;
}

/** The server on its default port of 127.0.0.1, if it accepts one of the usual credentials; else undefined. */
export async function findDefault(name: ServiceName): Promise<string | undefined> {
  const address = { host: '127.0.0.1', port: ports[name], timeout: connectWithinMs };
  if (!(await accepts(address))) return undefined;
  for (const url of usualUrls(name)) {
    try {
      await answers(name, url);
      return url;
    } catch {
      // Tries the next credentials; when none works, the server counts as missing.
    }
  }
  return undefined;
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

function usualUrls(name: ServiceName): string[] {
  const at = `127.0.0.1:${ports[name]}`;
  if (name === 'redis') return [`redis://${at}`];
  if (name === 'mariadb') return [`mariadb://root@${at}/mysql`];
  const users = new Set(['postgres', 'root', userInfo().username]);
  return [...users].map((user) => `postgresql://${encodeURIComponent(user)}@${at}/postgres`);
}
