// The column types the tables are made of, per database. Everything that a value must survive is decided here: comparison
// by code points, lengths in bytes or characters, long documents, milliseconds.

import { p } from '@mikro-orm/core';
import type { DatabaseKind } from '../database.ts';
import { ClobType } from './clob-type.ts';

/** Longest free text of a short column, in UTF-16 units; row mappings cut at it. */
export const TEXT_LENGTH = 512;

/** Builders of columns for one database. */
export type Columns = ReturnType<typeof columnsFor>;

export function columnsFor(kind: DatabaseKind) {
  const { collation, document, bytesPerCharacter } = DIALECTS[kind];
  const isOracle = kind === 'oracle';
  return {
    /** Text that identifies: ASCII, compared and ordered by code points. */
    id: (length: number) => {
      const column = p.string().length(length);
      return collation === '' ? column : column.collation(collation);
    },
    /** Short text of any script. Oracle takes the empty one for null, hence nullable where it may be empty. */
    text: (length = TEXT_LENGTH) => p.string().length(length * bytesPerCharacter),
    /** JSON or sealed text, ASCII only, megabytes if need be. */
    document: () => (isOracle ? p.text().type(ClobType) : p.text().columnType(document)),
    number: () => p.integer(),
    /** Counts for ever. Oracle's integers have ten digits; of longer ones a comparison of schemas never has enough. */
    counter: () => p.bigint('number').columnType(isOracle ? 'number(10, 0)' : 'bigint'),
    /** 0 or 1: the type boolean is unknown to Oracle before 23. */
    flag: () => p.integer(),
    /** To the millisecond: MySQL would drop the rest of the second without a length. */
    time: () => p.datetime().length(3),
  };
}

interface Dialect {
  /** Binary comparison; '' where the database, or the table (MySQL), does that anyway. */
  readonly collation: string;
  readonly document: string;
  /** Lengths are counted in bytes by Oracle, in characters by the others. */
  readonly bytesPerCharacter: number;
}

const DIALECTS: Readonly<Record<DatabaseKind, Dialect>> = {
  sqlite: { collation: '', document: 'text', bytesPerCharacter: 1 },
  postgresql: { collation: 'C', document: 'text', bytesPerCharacter: 1 },
  mysql: { collation: '', document: 'longtext', bytesPerCharacter: 1 },
  // Documents are ASCII, so that they need no N'...': varchar takes half the room of nvarchar.
  mssql: { collation: 'Latin1_General_BIN2', document: 'varchar(max)', bytesPerCharacter: 1 },
  oracle: { collation: '', document: 'clob', bytesPerCharacter: 3 },
};
