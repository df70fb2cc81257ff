// Texts: cut, and encoded in headers.

import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { cutText, decodeHeader, encodeHeader, lastWords } from '../../src/domain/text.ts';
import { collectGarbage } from '../helpers/garbage.ts';
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

test('does not keep the whole text in memory when it is cut', () => {
  collectGarbage();
  const before = process.memoryUsage().heapUsed;
  const cuts = Array.from({ length: 32 }, (_, at) => cutText(`${at}${'x'.repeat(1_000_000)}`, 100));
  collectGarbage();
  const kept = process.memoryUsage().heapUsed - before;
  assert.ok(kept < 4_000_000, `${kept} bytes for ${cuts.length} texts`);
});

test('the last words of npm about a package that does not exist name it', () => {
  const npm = (kind: string) => [
    `npm ${kind} code E404`,
    `npm ${kind} 404 Not Found - GET https://registry.example/serverr - Not found`,
    `npm ${kind} 404`,
    `npm ${kind} 404  The requested resource 'serverr@*' could not be found or you do not have permission to access it.`,
    `npm ${kind} 404`,
    `npm ${kind} 404 Note that you can also install from a`,
    `npm ${kind} 404 tarball, folder, http url, or git url.`,
    `npm ${kind} A complete log of this run can be found in: /home/ada/.npm/_logs/debug-0.log`,
  ];
  for (const kind of ['error', 'ERR!']) {
    const lines = npm(kind);
    assert.equal(lastWords(lines, 3), [lines[0], lines[1], lines[3]]);
  }
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
