// Texts: clean, cut, in headers, as points in time, and the last words of a program.

import fc from 'fast-check';
import * as assert from 'uvu/assert';
import {
  cutText,
  decodeHeader,
  encodeHeader,
  isCleanText,
  lastWords,
  timestampOf,
} from '../../src/domain/text.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('text');

test('is clean without NUL characters and lone surrogates', () => {
  assert.equal(['', 'Grüße', '😀', '\u0001'].map(isCleanText), [true, true, true, true]);
  assert.equal(['\0', 'a\0b', '\ud800', '\udc00\ud800'].map(isCleanText), [false, false, false, false]);
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

test('is written to a header so that it is read again', () => {
  const texts = ['add', 'a b', '', ' x', 'x ', 'grüße 日本', 'a\nb', '=?base64?YQ==?=', '=?base64?=', '🎭'];
  for (const text of texts) {
    const written = encodeHeader(text);
    assert.match(written, /^[\x20-\x7e]+$/);
    assert.is(decodeHeader(written), text, text);
  }
  assert.is(encodeHeader('plain text'), 'plain text');
  assert.is(decodeHeader('=?base64?='), '=?base64?=');
});

test('is nothing when its encoding in a header is not canonical', () => {
  const values = ['=?base64?Z3LDvMOfZQ?=', '=?base64?Z3!LD?=', '=?base64?/w==?='];
  assert.equal(values.map(decodeHeader), [undefined, undefined, undefined]);
});

test('is a timestamp with Z or an offset, to the minute or finer', () => {
  const table: [text: string, at: string][] = [
    ['2030-01-31T12:00:00Z', '2030-01-31T12:00:00.000Z'],
    ['2030-01-31t12:00z', '2030-01-31T12:00:00.000Z'],
    ['2030-01-31 12:00:00.25+01:00', '2030-01-31T11:00:00.250Z'],
    ['2030-01-31T23:30:00-0130', '2030-02-01T01:00:00.000Z'],
    ['2028-02-29T00:00:00Z', '2028-02-29T00:00:00.000Z'],
    ['2030-01-31T12:00:00.123456789Z', '2030-01-31T12:00:00.123Z'],
  ];
  for (const [text, at] of table) assert.is(new Date(timestampOf(text)).toISOString(), at, text);
});

test('is no timestamp where place or time are left open, nor of days and times that do not exist', () => {
  for (const text of [
    ...['', 'tomorrow', '2030-01-31', '2030-01-31T12:00:00', '1900000000', '2030-1-31T12:00:00Z'],
    ...['2027-02-30T00:00:00Z', '2027-02-29T00:00:00Z', '2027-13-01T00:00:00Z', '2027-00-10T00:00:00Z'],
    ...['2027-01-31T25:00:00Z', '2027-01-31T12:60:00Z', '2027-01-31T12:00:00+99:00', ' 2027-01-31T12:00:00Z'],
  ])
    assert.ok(Number.isNaN(timestampOf(text)), text);
});

/** What Node writes when its script is not there. */
const NODE = [
  ...['node:internal/modules/cjs/loader:1386', '  throw err;', '  ^'],
  "Error: Cannot find module '/srv/server.js'",
  ...['    at Module._resolveFilename (node:internal/modules/cjs/loader:1383:15)'],
  ...['    at node:internal/main:33:47 {', "  code: 'MODULE_NOT_FOUND',", '  requireStack: []', '}'],
  'Node.js v24.21.0',
];

test('of a program that ends has the error in its last words, however long its stack', () => {
  const words = ["Error: Cannot find module '/srv/server.js'", "  code: 'MODULE_NOT_FOUND',"];
  assert.equal(lastWords(NODE, 3), [...words, '  requireStack: []']);
});

test('of a program that ends is its last lines where there is no stack, or nothing else', () => {
  assert.equal(lastWords(['a', 'b', 'File "x", line 3', 'at last'], 2), ['File "x", line 3', 'at last']);
  assert.equal(lastWords(['    at one', '    at two'], 1), ['    at two']);
  assert.equal(lastWords([], 5), []);
});

test.run();
