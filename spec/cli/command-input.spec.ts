import * as assert from 'uvu/assert';
import { CommandInput } from '../../src/cli/command.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('command input');
const bounds = { minimum: 1, maximum: 10 };

test('reads numbers within their bounds', () => {
  assert.is(withValue('10').number('n', bounds), 10);
  assert.is(withValue('2.5').number('n', { ...bounds, decimals: true }), 2.5);
  assert.is(new CommandInput([], new Map()).number('n', bounds), undefined);
});

test('refuses what is no such number and says what is expected', () => {
  for (const text of ['0', '11', '2.5', 'x', '', ' ', 'Infinity']) {
    assert.throws(
      () => withValue(text).number('n', bounds),
      (error: Error) => error.message === `--n must be a whole number from 1 to 10, not "${text}"`,
    );
  }
});

test('refuses a second value where one is meant', () => {
  assert.throws(() => withValue(['a', 'b']).text('n'), /--n can be given only once/);
});

test('takes the last of repeated switches', () => {
  assert.is(withValue([true, false]).switch('n'), false);
});

test('names a missing positional instead of making one up', () => {
  assert.throws(() => new CommandInput(['a'], new Map()).positional(1), /missing required argument/);
});

test.run();

function withValue(value: string | readonly (string | boolean)[]): CommandInput {
  return new CommandInput([], new Map([['n', value]]));
}
