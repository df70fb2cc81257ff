// Checks whether a server can be used, by an attempt: a database is created and dropped, a key of Redis is set.

import { randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import { freshDatabase } from '../services.ts';
import type { ServiceName } from './supervised.ts';

/** Long enough for a busy machine; a closed port refuses at once. */
const connectWithinMs = 15_000;

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
