// The number of workers of a gateway.

import { statfsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname } from 'node:path';
import type { Config } from '../../config/config.ts';
import { describeDatabase } from '../../persistence/database-url.ts';
import { UsageError } from '../failures.ts';

/** The most workers on a SQLite file: each process waits for the writes of all others. */
const MAX_ON_SQLITE = 8;

/**
 * The file systems whose locks SQLite cannot trust, by the numbers of Linux. Other systems have other numbers, or
 * none. Source: ADR 174.
 */
const NETWORK_FILE_SYSTEMS: ReadonlyMap<number, string> = new Map([
  [0x6969, 'NFS'],
  [0x517b, 'SMB'],
  [0xff534d42, 'SMB'],
  [0xfe534d42, 'SMB'],
  [0x01021997, '9P'],
  [0x5346414f, 'AFS'],
  [0x00c36400, 'Ceph'],
  [0x0bd00bd0, 'Lustre'],
]);

/**
 * The number of workers for these settings. Throws UsageError for several workers on a database in memory, which no
 * process shares, or on a SQLite file in a network file system. `fileSystemOf`: the number of the file system of a
 * folder. Default: the number that the system gives.
 */
export function workerCount(
  { workers, databaseUrl, folder }: Pick<Config, 'workers' | 'databaseUrl' | 'folder'>,
  fileSystemOf = (path: string): number => statfsSync(path).type,
): number {
  if (workers === 1) return 1;
  const { place, file } = describeDatabase(databaseUrl, folder);
  const isInMemory = place === 'memory';
  const network = file === undefined ? undefined : networkOf(dirname(file), fileSystemOf);
  if (workers === 'auto') {
    const cores = availableParallelism();
    if (isInMemory || network !== undefined) return 1;
    return place === 'file' ? Math.min(cores, MAX_ON_SQLITE) : cores;
  }
  if (isInMemory)
    throw new UsageError(
      `${workers} workers need a database that they share, and this one is in memory: choose one with --database, or --workers 1`,
    );
  if (network !== undefined)
    throw new UsageError(
      `${workers} workers cannot share a SQLite file on ${network}, which does not keep the locks of several processes: choose a file on a local disk or a database server with --database, or --workers 1`,
    );
  return workers;
}

/** The name of the network file system of a folder; undefined for a local one, and where that is not known. */
function networkOf(folder: string, fileSystemOf: (path: string) => number): string | undefined {
  if (process.platform !== 'linux') return undefined;
  try {
    return NETWORK_FILE_SYSTEMS.get(fileSystemOf(folder) >>> 0);
  } catch {
    return undefined; // the start says what is wrong with the folder
  }
}
