// The settings of a template as they are shown.

import * as assert from 'uvu/assert';
import { withoutSecretDefaults } from '../../src/templates/config-schema.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('config schema');

test('no default of a secret setting is shown, wherever the schema says that it is secret', () => {
  const $defs = {
    secret: { type: 'string', sensitive: true },
    valued: { type: 'string', default: 's3cr3t', examples: ['s3cr3t'] },
    plain: { type: 'string', default: 'shown' },
  };
  const properties = {
    own: { type: 'string', sensitive: true, default: 's3cr3t', examples: ['s3cr3t'] },
    byDefinition: { $ref: '#/$defs/secret', default: 's3cr3t' },
    byProperty: { $ref: '#/$defs/valued', sensitive: true },
    none: { $ref: '#/$defs/plain' },
  };
  const shown = JSON.stringify(withoutSecretDefaults({ type: 'object', properties, $defs }));
  assert.not.match(shown, 's3cr3t');
  assert.match(shown, '"plain":{"type":"string","default":"shown"}');
  assert.is(shown.match(/"default":"\*\*\*"/g)?.length, 3);
});

test.run();
