// The migrations of each database. The name of a migration is known without loading it.

import type { DatabaseKind } from '../database.ts';
import type { MigrationEntry } from './entry.ts';
import { migrations as mssql } from './mssql/index.ts';
import { migrations as mysql } from './mysql/index.ts';
import { migrations as oracle } from './oracle/index.ts';
import { migrations as postgresql } from './postgresql/index.ts';
import { migrations as sqlite } from './sqlite/index.ts';

/** In the order in which they are applied. */
export const MIGRATIONS: Readonly<Record<DatabaseKind, readonly MigrationEntry[]>> = {
  sqlite,
  postgresql,
  mysql,
  mssql,
  oracle,
};
