// Writes a long text to Oracle: a literal holds at most 4,000 bytes there, so it is put together of several.

import { raw, Type } from '@mikro-orm/core';

/** Shorter than the limit, should a character count as two. */
const LITERAL_CHARACTERS = 1_990;

/** A `clob` column of ASCII text. */
export class ClobType extends Type<string | null, unknown> {
  override convertToDatabaseValue(text: string | null): unknown {
    if (typeof text !== 'string' || text.length <= LITERAL_CHARACTERS) return text;
    const parts = Array.from({ length: Math.ceil(text.length / LITERAL_CHARACTERS) }, (_, index) =>
      text.slice(index * LITERAL_CHARACTERS, (index + 1) * LITERAL_CHARACTERS),
    );
    return raw(parts.map(() => 'to_clob(?)').join(' || '), parts);
  }

  override getColumnType(): string {
    return 'clob';
  }
}
