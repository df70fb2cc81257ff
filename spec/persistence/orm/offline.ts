// An ORM without a database, for specs of statements.

import { MikroORM, type Options } from '@mikro-orm/sql';
import { offlineOptions } from '../../../mikro-orm.config.ts';
import type { DatabaseKind } from '../../../src/persistence/database.ts';
import { DATABASES } from '../../../src/persistence/database-url.ts';
import { tablesFor } from '../../../src/persistence/orm/entities.ts';

/** The tables are those of `orm`. */
export async function offline(kind: DatabaseKind) {
  const database = DATABASES.find((each) => each.kind === kind);
  if (database === undefined) throw new Error(`no database ${kind}`);
  const tables = tablesFor(kind);
  const options: Options = { ...(await offlineOptions(database)), entities: Object.values(tables) };
  const orm = new MikroORM(options);
  return { database, orm, tables };
}

export const KINDS = DATABASES.map(({ kind }) => kind);
