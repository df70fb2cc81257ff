// How many workers a gateway has.

import { availableParallelism } from 'node:os';
import type { Config } from '../../config/config.ts';
import { describeDatabase } from '../../persistence/database-url.ts';
import { UsageError } from '../failures.ts';

/** Each process of SQLite waits for the writes of all others. */
const MAX_ON_SQLITE = 8;

/** Throws UsageError for several workers on a database in memory, which no process shares. */
export function workerCount({ workers, databaseUrl, folder }: Config): number {
  if (workers === 1) return 1;
  const { kind, file } = describeDatabase(databaseUrl, folder);
  const isInMemory = kind === 'memory' || (kind === 'sqlite' && file === undefined);
  if (workers === 'auto') {
    const cores = availableParallelism();
    return isInMemory ? 1 : kind === 'sqlite' ? Math.min(cores, MAX_ON_SQLITE) : cores;
  }
  if (isInMemory)
    throw new UsageError(
      `${workers} workers need a database that they share, and this one is in memory: choose one with --database, or --workers 1`,
    );
  return workers;
}
