// A lock that the kernel releases when its process ends in any way. Node has no API for such locks, so the lock is an exclusive
// transaction of SQLite on an empty file. It works between containers that share a volume, and child processes do not inherit it.

import { accessSync, constants } from 'node:fs';
import { type ConnectOptions, failureOf } from './database.ts';
import { sqlite } from './databases/sqlite.ts';
import { makeFile } from './open-store.ts';

/**
 * Locks a file; undefined when this or another process has the lock. Throws errors of the file system and of the driver. The
 * file is never deleted: otherwise two processes could lock two files of the same name.
 */
export async function lockFile(path: string): Promise<{ release(): Promise<void> } | undefined> {
  // Only SQLite may open it: closing a second descriptor of this process would release the lock.
  await makeFile(path);
  accessSync(path, constants.R_OK | constants.W_OK); // SQLite does not say why it cannot open a file
  const { connectOrm } = await import('./orm/connection/orm.ts'); // a gateway with its database in memory needs none
  const orm = await connectOrm({ ...sqlite, prepare: async () => {} }, connectTo(path));
  try {
    // A journal file would need space on the disk.
    await orm.connection.execute('pragma journal_mode = memory');
    await orm.connection.execute('begin exclusive');
  } catch (thrown) {
    orm.destroy();
    if (failureOf(sqlite, thrown) === 'conflict') return undefined;
    throw thrown;
  }
  return { release: () => orm.close() };
}

function connectTo(name: string): Omit<ConnectOptions, 'sockets'> {
  const address = { host: '', port: 0, user: '', password: '', name, options: new Map<string, string>() };
  return {
    address,
    statementTimeoutMs: 1_000,
    idleTransactionMs: 1_000,
    connectTimeoutMs: 1_000,
    connections: 1,
  };
}
