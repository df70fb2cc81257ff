// One process at a time is a certain node of a database file: two of them would run every program twice. A file beside the
// database tells the process id of the holder; one that is left over from a crash is taken over.
// On a database server node ids hold the port, which the operating system gives to one process only.

import { open, readFile, unlink } from 'node:fs/promises';
import { ConfigError } from './config/config-error.ts';

/** A node of a database file, held. */
export interface NodeClaim {
  /** Lets it go. Idempotent. */
  release(): Promise<void>;
}

/** Attempts to take over what others leave behind at the same moment. */
const ATTEMPTS = 5;

/** Throws ConfigError, one line, when a living process has it. */
export async function claimNode(databaseFile: string, nodeId: string): Promise<NodeClaim> {
  const path = `${databaseFile}.${encodeURIComponent(nodeId)}.pid`;
  for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
    if (await write(path)) return { release: () => release(path) };
    const holder = await holderOf(path);
    if (holder !== undefined && holder !== process.pid && isAlive(holder)) {
      throw new ConfigError(
        `process ${holder} runs as the node "${nodeId}" on this database already: stop it, or start this one with ` +
          `another --node-id (if it is no stagedoor, delete ${path})`,
      );
    }
    await remove(path);
  }
  throw new ConfigError(
    `${path}: several gateways start at once as the node "${nodeId}"; give each its own --node-id`,
  );
}

async function write(path: string): Promise<boolean> {
  try {
    const file = await open(path, 'wx', 0o600);
    await file.writeFile(`${process.pid}\n`).finally(() => file.close());
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw new ConfigError(`${path} cannot be written (${codeOf(error)})`, error);
  }
}

/** Undefined when it is gone, or not finished. */
async function holderOf(path: string): Promise<number | undefined> {
  const text = await readFile(path, 'utf8').catch(() => ''); // whoever had it has just let it go
  return /^\d+\n$/.test(text) ? Number(text) : undefined;
}

/** In a container every gateway may have the id 1; then the file is that of its predecessor. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) === 'EPERM'; // it lives, and belongs to somebody else
  }
}

async function release(path: string): Promise<void> {
  if ((await holderOf(path)) === process.pid) await remove(path);
}

async function remove(path: string): Promise<void> {
  await unlink(path).catch((error: unknown) => {
    if (codeOf(error) !== 'ENOENT') throw error;
  });
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
}
