// Values as JSON in the tables. Comparison of columns and migrations: migrations.spec.ts; long values and empty texts on every
// database: spec/conformance.

import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { fromDocument, toDocument } from '../../../src/persistence/orm/entities.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('entities');

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
