// Column types per database.

import * as assert from 'uvu/assert';
import { suite } from '../helpers/suite.ts';
import { offline } from './offline.ts';

const test = suite('columns');

const EXPECTED = {
  sqlite: [
    '`name` text not null',
    '`value` text not null',
    '`id` text not null primary key',
    '`at` datetime not null',
    '`status` integer not null',
    '`actor` text not null',
    '`counter` bigint not null',
  ],
  postgresql: [
    '"name" varchar(128) collate "C" not null',
    '"value" text not null',
    '"id" varchar(64) collate "C" not null',
    '"at" timestamptz(3) not null',
    '"status" int not null',
    '"actor" varchar(512) not null',
    '"counter" bigint not null',
  ],
  mysql: [
    '`name` varchar(128) not null',
    '`value` longtext not null',
    '`id` varchar(64) not null',
    '`at` datetime(3) not null',
    '`status` int not null',
    '`actor` varchar(512) not null',
    '`counter` bigint not null',
    'default character set utf8mb4 collate utf8mb4_bin',
  ],
  mssql: [
    '[name] nvarchar(128) collate Latin1_General_BIN2 not null',
    '[value] varchar(max) not null',
    '[id] nvarchar(64) collate Latin1_General_BIN2 not null',
    '[at] datetime2(3) not null',
    '[status] int not null',
    '[actor] nvarchar(512) not null',
    '[counter] bigint not null',
  ],
  oracle: [
    '"name" varchar2(128) not null',
    '"value" clob not null',
    '"id" varchar2(64) not null',
    '"at" timestamp(3) with time zone not null',
    '"status" number(10, 0) not null',
    '"actor" varchar2(1536) not null',
    '"counter" number(10, 0) not null',
  ],
} as const;

for (const [kind, columns] of Object.entries(EXPECTED)) {
  test(`${kind}: long documents, milliseconds, ids that are told apart by case`, async () => {
    // The keys above are kinds.
    const { orm } = await offline(kind as keyof typeof EXPECTED);
    const sql = await orm.schema.getCreateSchemaSQL({ wrap: false });
    assert.equal(
      columns.filter((column) => !sql.includes(column)),
      [],
    );
  });
}

test.run();
