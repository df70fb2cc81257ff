import * as assert from 'uvu/assert';
import { isProfileTooLarge, isTooLong, shortKey, tooLongIn } from '../../src/protocol/client-bounds.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('client bounds');

test('a profile has at most 32 Ki units of JSON', () => {
  const around = JSON.stringify([{ x: '' }, {}]).length;
  const filled = (units: number) => ({ x: 'ü'.repeat(units - around) });
  assert.is(isProfileTooLarge(filled(32 * 1024), {}), false);
  assert.is(isProfileTooLarge(filled(32 * 1024 + 1), {}), true);
  assert.is(isProfileTooLarge({}, filled(32 * 1024 + 1)), true);
});

test('a cursor or URI has at most 8 KiB of UTF-8', () => {
  const table: readonly [text: string, isLong: boolean][] = [
    ['x'.repeat(8 * 1024), false],
    ['x'.repeat(8 * 1024 + 1), true],
    ['ü'.repeat(4 * 1024), false],
    ['ü'.repeat(4 * 1024 + 1), true],
    ['€'.repeat(2_731), true],
  ];
  for (const [text, isLong] of table) assert.is(isTooLong(text), isLong);
});

test('names what is too long in a request', () => {
  const long = 'x'.repeat(8 * 1024 + 1);
  assert.is(tooLongIn('tools/list', { cursor: long }), 'cursor');
  for (const method of ['resources/read', 'resources/subscribe', 'resources/unsubscribe']) {
    assert.is(tooLongIn(method, { uri: long }), 'uri');
  }
  assert.is(tooLongIn('tools/call', { uri: long }), undefined);
  assert.is(tooLongIn('resources/read', { uri: 'a:b', cursor: 1 }), undefined);
  assert.is(tooLongIn('ping', undefined), undefined);
});

test('a short key stands for texts of any length, and for their borders', () => {
  const key = shortKey('a'.repeat(10_000), 'b');
  assert.is(key.length, 43);
  assert.is(shortKey('a'.repeat(10_000), 'b'), key);
  assert.is.not(shortKey('ab', 'c'), shortKey('a', 'bc'));
});

test.run();
