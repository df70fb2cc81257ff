// Compares a real schema with the entities.

import type { Orm } from '../../src/persistence/orm.ts';

/** The statements that would make the database what the entities say; '' when it is. */
export async function schemaDifference({ orm }: Orm): Promise<string> {
  const statements = await orm.schema.getUpdateSchemaSQL({ wrap: false, dropTables: false });
  return statements
    .split('\n')
    .filter((statement) => statement !== '' && !NO_DIFFERENCE.test(statement))
    .join('\n');
}

/** MariaDB says that a column without a default has the default NULL: the driver for MySQL takes that for a difference. */
const NO_DIFFERENCE = /^alter table `\w+` modify `\w+` \w+\(\d+\) null;$/;
