// Reads how the opening of a store failed.

import * as assert from 'uvu/assert';
import { StoreOpenError } from '../../src/persistence/open.ts';

/** The message of the StoreOpenError that it rejects with: one line, without a password. */
export async function failureOf(opening: Promise<unknown>): Promise<string> {
  const failure = await opening.then(
    () => new Error('it was opened'),
    (thrown: unknown) => thrown,
  );
  assert.instance(failure, StoreOpenError, String(failure));
  const message = failure instanceof Error ? failure.message : '';
  assert.not.match(message, /s3cret|\n/);
  return message;
}
