// How the console writes values: texts of backends are shortened.

import * as assert from 'uvu/assert';
import { shortened } from '../../web/src/format.ts';
import { suite } from '../helpers/suite.ts';

const texts = suite('texts in the console');

texts('a long text of a backend is cut where a browser would need seconds to break it into lines', () => {
  assert.is(shortened('a short text'), 'a short text');
  assert.is(shortened('A'.repeat(100_000)), `${'A'.repeat(4_000)} …`);
});

texts.run();
