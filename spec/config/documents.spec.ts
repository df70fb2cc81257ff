// What the command line learns of the settings. That docs/reference/configuration.md is not stale is in spec/config.spec.ts.

import * as assert from 'uvu/assert';
import { settingFlags } from '../../src/config/settings.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('documents of the settings');

test('lists every flag for the command line, switches apart', () => {
  const flags = settingFlags();
  assert.equal(
    flags.filter(({ takesValue }) => !takesValue).map(({ flag }) => flag),
    ['sync', 'auth', 'audit-calls', 'audit-arguments'],
  );
  assert.ok(flags.some(({ flag, doc }) => flag === 'health-interval' && doc.endsWith('default 30')));
});

test.run();
