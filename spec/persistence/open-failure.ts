// Reads how the opening of a store failed.

import * as assert from 'uvu/assert';
import { StoreOpenError } from '../../src/persistence/open.ts';
import { messageOf } from '../helpers/outcome.ts';

/** The message of the StoreOpenError that it rejects with: one line, without a password. */
export async function failureOf(opening: Promise<unknown>): Promise<string> {
  const message = await messageOf(opening, StoreOpenError);
  assert.not.match(message, 's3cret');
  return message;
}
