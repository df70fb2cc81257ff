// Texts: cut, and encoded in headers.

import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { cutText, decodeHeader, encodeHeader } from '../../src/domain/text.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('text');

test('is cut to a well-formed prefix at any length', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.nat(20), (text, units) => {
      const cut = cutText(text, units);
      assert.ok(text.startsWith(cut) && cut.isWellFormed());
      assert.ok(cut.length <= units && cut.length >= Math.min(text.length, units) - 1);
    }),
  );
});

test('is encoded in a header and decoded to the same text', () => {
  const texts = ['add', 'a b', '', ' x', 'x ', 'grüße 日本', 'a\nb', '=?base64?YQ==?=', '=?base64?=', '🎭'];
  for (const text of texts) {
    const written = encodeHeader(text);
    assert.match(written, /^[\x20-\x7e]+$/);
    assert.is(decodeHeader(written), text, text);
  }
  assert.is(encodeHeader('plain text'), 'plain text');
  assert.is(decodeHeader('=?base64?='), '=?base64?=');
});

test('is undefined when its encoding in a header is not canonical', () => {
  const values = ['=?base64?Z3LDvMOfZQ?=', '=?base64?Z3!LD?=', '=?base64?/w==?='];
  assert.equal(values.map(decodeHeader), [undefined, undefined, undefined]);
});

test.run();
