// The migrations of each database. The name of a migration is known without loading it.

import type { Migration } from '@mikro-orm/migrations';
import type { DatabaseKind } from '../database.ts';
import { migrations as mssql } from './mssql/index.ts';
import { migrations as mysql } from './mysql/index.ts';
import { migrations as oracle } from './oracle/index.ts';
import { migrations as postgresql } from './postgresql/index.ts';
import { migrations as sqlite } from './sqlite/index.ts';

export interface MigrationEntry {
  /** As it is recorded in the database. */
  readonly name: string;
  load(): Promise<new (...parameters: ConstructorParameters<typeof Migration>) => Migration>;
}

/** In the order in which they are applied. */
export const MIGRATIONS: Readonly<Record<DatabaseKind, readonly MigrationEntry[]>> = {
  sqlite,
  postgresql,
  mysql,
  mssql,
  oracle,
};
