// Values as JSON in the tables. Comparison of columns and migrations: migrations.spec.ts; long values and empty texts on every
// database: spec/conformance.

import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { fromDocument, toDocument } from '../../src/persistence/entities.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('entities');

test('escape non-ASCII characters, control characters and quotes in JSON', () => {
  assert.is(toDocument("it's 'ü' 😀\n"), '"it\\u0027s \\u0027\\u00fc\\u0027 \\ud83d\\ude00\\n"');
  assert.is(toDocument('\x7f\u2028'), '"\\u007f\\u2028"');
});

test('store any value as printable ASCII without a quote, and read it back', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.string({ unit: 'binary' }), (value, text) => {
      const document = toDocument([value, text, { [text]: value }]);
      assert.match(document, /^[\x20-\x26\x28-\x7e]*$/);
      // JSON has no -0.
      assert.equal(fromDocument(document), JSON.parse(JSON.stringify([value, text, { [text]: value }])));
    }),
  );
});

test.run();
