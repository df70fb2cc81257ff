// Reads the failure of opening a store.

import * as assert from 'uvu/assert';
import { StoreOpenError } from '../../src/persistence/open-store.ts';
import { messageOf } from '../helpers/outcome.ts';

/** The message of the StoreOpenError; asserts that it does not contain the password. */
export async function failureOf(opening: Promise<unknown>): Promise<string> {
  const message = await messageOf(opening, StoreOpenError);
  assert.not.match(message, 's3cret');
  return message;
}
