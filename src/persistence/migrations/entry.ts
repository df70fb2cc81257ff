// A migration in the tables of migrations: its name is known without loading it.

import type { Migration } from '@mikro-orm/migrations';

export interface MigrationEntry {
  /** As it is recorded in the database. */
  readonly name: string;
  load(): Promise<new (...parameters: ConstructorParameters<typeof Migration>) => Migration>;
}
