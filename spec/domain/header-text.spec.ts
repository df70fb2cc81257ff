// Texts on their way through a header.

import * as assert from 'uvu/assert';
import { decodeHeader, encodeHeader } from '../../src/domain/text.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('header text');

test('is written so that it is read again', () => {
  for (const text of [
    'add',
    'a b',
    '',
    ' x',
    'x ',
    'grüße 日本',
    'a\nb',
    '=?base64?YQ==?=',
    '=?base64?=',
    '🎭',
  ]) {
    const written = encodeHeader(text);
    assert.match(written, /^[\x20-\x7e]+$/);
    assert.is(decodeHeader(written), text, text);
  }
  assert.is(encodeHeader('plain text'), 'plain text');
  assert.is(decodeHeader('=?base64?='), '=?base64?=');
});

test('is nothing when its encoding is not canonical', () => {
  for (const value of ['=?base64?Z3LDvMOfZQ?=', '=?base64?Z3!LD?=', '=?base64?/w==?=']) {
    assert.is(decodeHeader(value), undefined, value);
  }
});

test.run();
