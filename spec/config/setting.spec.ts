// A row of the table is kept as it was written.

import * as assert from 'uvu/assert';
import { boolean, setting } from '../../src/config/setting-types.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('setting');

test('is the row it was given', () => {
  const row = { key: 'a.b', variable: 'A_B', kind: boolean, default: true, doc: 'What it does.' };
  assert.is(setting(row), row);
});

test.run();
