import * as assert from 'uvu/assert';
import { headerOf } from '../../src/protocol/headers.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('headers');

test('come without the space around them', () => {
  assert.is(headerOf({ x: ' \t a b\t ' }, 'x'), 'a b');
  assert.is(headerOf({ x: ' \t ' }, 'x'), '');
});

test('that came twice are both', () => {
  assert.is(headerOf({ x: ['1', '2'] }, 'x'), '1, 2');
});

test('may be missing', () => {
  assert.is(headerOf({}, 'x'), undefined);
});

test('are trimmed in linear time', () => {
  const value = `a${' '.repeat(60_000)}b`;
  assert.is(headerOf({ x: value }, 'x'), value);
});

test.run();
