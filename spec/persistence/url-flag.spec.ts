// Options of database URLs that are on or off.

import * as assert from 'uvu/assert';
import { booleanOption } from '../../src/persistence/database.ts';
import { UrlError } from '../../src/persistence/store-errors.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('URL flag');
const read = (value: string, standard = false) => booleanOption(new Map([['tls', value]]), 'tls', standard);

test('reads every usual way to say yes or no', () => {
  for (const value of ['true', 'TRUE', 'yes', 'Yes', '1']) assert.is(read(value), true, value);
  for (const value of ['false', 'False', 'no', 'NO', '0']) assert.is(read(value, true), false, value);
});

test('has a standard for what is not there, and for nothing else', () => {
  assert.equal(
    [booleanOption(new Map(), 'tls', true), booleanOption(new Map(), 'tls', false)],
    [true, false],
  );
  for (const value of ['', 'on', 'require', 'truely', '2']) {
    assert.throws(
      () => read(value),
      (thrown: unknown) => thrown instanceof UrlError && thrown.message === 'tls is true or false',
      value,
    );
  }
});

test.run();
