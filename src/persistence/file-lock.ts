// A lock that the kernel drops when its process ends, however it ends. Node has no call for one, SQLite does: an exclusive
// transaction on an empty file. It holds between containers that share a volume, and children do not inherit it.

import { type ConnectOptions, failureOf } from './database.ts';
import { sqlite } from './databases/sqlite.ts';
import { makeFile } from './open.ts';
import { connectOrm } from './orm.ts';

/** A file, locked until it is released. It stays: to delete it would let two processes lock two files of one name. */
export interface FileLock {
  release(): Promise<void>;
}

/** Undefined when another process, or this one, has the lock. Throws what the file system or the driver throws. */
export async function lockFile(path: string): Promise<FileLock | undefined> {
  // Nothing but SQLite may open it: a second descriptor of this process would drop the lock when it is closed.
  await makeFile(path);
  const orm = await connectOrm({ ...sqlite, prepare: async () => {} }, connectTo(path));
  try {
    // A journal beside it would need room on the disk.
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
  return { address, statementTimeoutMs: 1_000, connectTimeoutMs: 1_000, connections: 1 };
}
