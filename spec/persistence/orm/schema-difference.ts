// Compares a real schema with the entities.

import type { Orm } from '../../../src/persistence/orm/connection/orm.ts';

/** The statements that would adapt the database to the entities; '' if it matches them. */
export async function schemaDifference({ orm }: Orm): Promise<string> {
  const statements = await orm.schema.getUpdateSchemaSQL({ wrap: false, dropTables: false });
  return statements
    .split('\n')
    .filter((statement) => statement !== '' && !NO_DIFFERENCE.test(statement))
    .join('\n');
}

/** MariaDB reports the default NULL for a column without a default, which the driver for MySQL takes for a difference. */
const NO_DIFFERENCE = /^alter table `\w+` modify `\w+` \w+\(\d+\) null;$/;
