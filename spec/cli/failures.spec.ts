import * as assert from 'uvu/assert';
import { CommandFailure, UsageError } from '../../src/cli/failures.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('failures');

test('keep their name, message and cause', () => {
  for (const Failure of [UsageError, CommandFailure]) {
    const cause = new Error('why');
    const failure = new Failure('what', { cause });
    assert.equal([failure.name, failure.message, failure.cause], [Failure.name, 'what', cause]);
  }
});

test.run();
