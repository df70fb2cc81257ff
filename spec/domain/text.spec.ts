import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { cutText, isCleanText } from '../../src/domain/text.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('text');

test('is clean without NUL characters and lone surrogates', () => {
  assert.equal(['', 'Grüße', '😀', '\u0001'].map(isCleanText), [true, true, true, true]);
  assert.equal(['\0', 'a\0b', '\ud800', '\udc00\ud800'].map(isCleanText), [false, false, false, false]);
});

test('is cut to its place, in front of a character that does not fit', () => {
  assert.equal(
    [cutText('abc', 3), cutText('abcd', 3), cutText('ab😀', 3), cutText('a😀b', 3), cutText('😀', 0)],
    ['abc', 'abc', 'ab', 'a😀', ''],
  );
});

test('stays the beginning of itself, and proper, wherever it is cut', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.nat(20), (text, units) => {
      const cut = cutText(text, units);
      assert.ok(text.startsWith(cut) && cut.isWellFormed());
      assert.ok(cut.length <= units && cut.length >= Math.min(text.length, units) - 1);
    }),
  );
});

test.run();
